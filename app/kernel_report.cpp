#include "app/kernel_report.hpp"

#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "app/ledger_json.hpp"
#include "app/output.hpp"

namespace flash::app {
namespace {

using Json = nlohmann::ordered_json;
using cuda::VirtualDevice;
using cuda::Watched;

/// "cuda/03_online_softmax/forward.cu:77 (cuda/common/tile.hpp:43)" apart: the kernel's line, and the line of a helper
/// that is inlined there.
struct Place {
  std::string file;
  Index line = 0;
  std::string helper;
};

Place place(const std::string& where) {
  Place at{where, 0, ""};
  if (const std::size_t bracket = where.find(" ("); bracket != std::string::npos) {
    at.file = where.substr(0, bracket);
    at.helper = where.substr(bracket + 2, where.size() - bracket - 3);
  }
  if (const std::size_t colon = at.file.rfind(':'); colon != std::string::npos) {
    std::from_chars(at.file.data() + colon + 1, at.file.data() + at.file.size(), at.line);
    at.file.resize(colon);
  }
  return at;
}

Json lines_json(const gpu::Counts& counts) {
  Json lines = Json::array();
  for (const auto& [where, n] : counts.lines) {
    if (n.accesses == 0) continue;  // of another pass
    const Place at = place(where);
    Json line = {{"file", at.file}, {"line", at.line}, {"text", source_text(at.file, at.line)}};
    if (!at.helper.empty()) line["helper"] = at.helper;
    line["accesses"] = n.accesses;
    line["wavefronts"] = n.wavefronts;
    line["least_wavefronts"] = n.least_wavefronts;
    line["sectors"] = n.sectors;
    line["least_sectors"] = n.least_sectors;
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace

Json counted_json(const sim::Ledger& ledger, const VirtualDevice& device, const Watched& watched) {
  return {{"hbm", hbm_json(ledger)},
          {"sram",
           {{"capacity_bytes", device.limits().smem_per_cta},
            {"read_bytes", watched.counts.smem_read},
            {"write_bytes", watched.counts.smem_written}}},
          {"extra_hbm", extra_hbm_json(ledger)}};
}

Json vgpu_json(const VirtualDevice& device, const Watched& watched) {
  const gpu::Config& config = device.config();
  const gpu::Counts& n = watched.counts;
  Json reports = Json::array();
  for (const gpu::Report& r : watched.reports) reports.push_back({{"kind", r.kind}, {"text", r.text}});
  Json instructions = Json::object();
  for (const auto& [instruction, times] : n.instructions)
    if (times > 0) instructions[instruction] = times;
  return {{"arch", fmt::format("sm_{}", config.arch)},
          {"sms", config.sms},
          {"completion", name(config.completion)},
          {"seed", config.seed},
          {"reports", reports},
          {"ctas", n.ctas},
          {"instructions", instructions},
          {"barriers", n.barriers},
          {"wavefronts", n.wavefronts},
          {"least_wavefronts", n.least_wavefronts},
          {"sectors", n.sectors},
          {"least_sectors", n.least_sectors},
          {"nominal_cycles", n.cycles},
          {"lines", lines_json(n)}};
}

std::string vgpu_text(const VirtualDevice& device, const Watched& watched) {
  const gpu::Config& config = device.config();
  const gpu::Counts& n = watched.counts;
  const auto count = [](std::uint64_t value) { return grouped(static_cast<long long>(value)); };
  std::string text = fmt::format(
      "  shared memory {} bytes read, {} written; {} wavefronts, {} without bank conflicts\n"
      "  global memory {} sectors of 32 bytes, {} had they been used whole\n"
      "  executed      {} CTAs, {} barriers\n",
      count(n.smem_read), count(n.smem_written), count(n.wavefronts), count(n.least_wavefronts), count(n.sectors),
      count(n.least_sectors), count(n.ctas), count(n.barriers));
  for (const auto& [instruction, times] : n.instructions)
    if (times > 0) text += fmt::format("{:>16}  {}\n", count(times), instruction);
  return text + fmt::format("  checked       {} reports (completion {}, seed {})\n", watched.reports.size(),
                            name(config.completion), config.seed);
}

static std::string reports_heading(const Stage& stage, std::size_t reports) {
  return fmt::format("flashsteps: the virtual GPU has {} {} on the kernels of stage {}", reports,
                     reports == 1 ? "report" : "reports", stage.id);
}

std::string reports_text(const Stage& stage, const std::vector<gpu::Report>& reports) {
  if (reports.empty()) return "";
  std::string text = reports_heading(stage, reports.size()) + ":\n";
  for (const gpu::Report& r : reports) text += fmt::format("[{}] {}\n", r.kind, r.text);
  return text;
}

std::string reports_text(const Stage& stage, const VirtualDevice& device) {
  std::string text;
  std::size_t reports = 0, pass = 0;
  for (const Watched& watched : device.watched()) {
    const char* direction = pass++ == 0 ? "forward" : "backward";
    for (const gpu::Report& r : watched.reports) {
      text += fmt::format("[{}] {}: {}\n", r.kind, direction, r.text);
      ++reports;
    }
  }
  if (reports == 0) return "";
  return reports_heading(stage, reports) + ", so there are no outputs:\n" + text;
}

}  // namespace flash::app

#include "notebooks-cling/library/kernels.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "app/ledger_json.hpp"
#include "app/output.hpp"
#include "app/table.hpp"
#include "cuda/common/execute.hpp"
#include "cuda/common/on_device.hpp"
#include "cuda/common/tensors.hpp"
#include "cuda/common/virtual_device.hpp"
#include "notebooks-cling/library/kernel_cells.hpp"
#include "stages/common/check.hpp"
// Last: it brings CUDA's words.
#include "cuda/common/module.hpp"

namespace flash::notebook {

namespace {

using app::grouped;
using app::Table;

/// So that kernels of the build are found from any program.
[[maybe_unused]] const int kernels_are_found = setenv("FLASH_KERNELS", FLASH_BUILD_DIR "/kernels", 0);

std::vector<const cuda::Module*> modules_named(const std::vector<std::string>& names) {
  std::vector<const cuda::Module*> modules;
  for (const std::string& name : names) modules.push_back(&kernel_named(name));
  if (modules.empty()) throw Refused("a virtual GPU without a kernel was asked for; name one, such as \"03/forward\"");
  return modules;
}

gpu::Config for_modules(gpu::Config config, const std::vector<const cuda::Module*>& modules) {
  for (const cuda::Module* module : modules) config.arch = std::max(config.arch, cuda::arch(*module));
  return config;
}

std::string_view stage_of(const cuda::Module& module) {
  const std::string_view name = module.name;
  return name.substr(0, name.find('/'));
}

bool is_backward(const cuda::Module& module) { return std::string_view(module.name).ends_with("backward"); }

constexpr int most_warps = 32;  ///< of a CTA, on any GPU

/// "mma.sync.aligned.m16n8k8.f16" is mma.
std::string kind_of(const std::string& name) {
  return name.starts_with("bar") ? "barrier" : name.substr(0, name.find('.'));
}

/// "warps 0 to 3"
std::string words_of_warps(int warps) { return warps == 1 ? "warp 0" : fmt::format("warps 0 to {}", warps - 1); }

void require_warp(int warp, int warps) {
  if (warp >= 0 && warp < warps) return;
  throw Refused(fmt::format(
      "warp {} was asked for, but {} has {}; take {}", warp, warps == most_warps ? "a kernel" : "the kernel that runs",
      words_of_warps(warps) + (warps == most_warps ? " at most" : ""), warps == 1 ? "it" : "one of them"));
}

/// What the machine has under that name, or a sentence that names what it has.
trace::Matrix found(const std::optional<gpu::Matrix>& m, const std::string& title, const std::string& asked,
                    const std::vector<std::string>& names, bool runs) {
  if (!m && !runs)
    throw Refused(fmt::format("{} asked for, but no kernel is running; step to a mark or a barrier first", asked));
  if (!m && names.empty())
    throw Refused(fmt::format("{} asked for, but the stopped kernel has none so far; step on", asked));
  if (!m)
    throw Refused(fmt::format("{} asked for, but the stopped kernel has {}; take one of them, or step on", asked,
                              fmt::join(names, ", ")));
  trace::Matrix result{.title = title,
                       .rows = m->rows,
                       .cols = m->cols,
                       .values = m->values,
                       .first_row = m->row0,
                       .first_col = m->col0};
  for (const bool known : m->known) result.unknown.push_back(!known);
  if (result.cols == 1) {  // a number for each row: they are shown in a line
    std::swap(result.rows, result.cols);
    std::swap(result.first_row, result.first_col);
    result.title += ", one for each row";
  }
  return result;
}

}  // namespace

struct Stepper::Parts {
  Parts(const std::vector<const cuda::Module*>& kernels, const Inputs& in, const Options& o, const gpu::Config& config)
      : modules(kernels),
        inputs(in),
        options(o),
        device(for_modules(config, modules), std::size_t{1} << 32),
        tensors(device, inputs, options, cuda::tensors_of(modules, !in.slopes.empty())) {
    device.machine().start([this] {
      for (const cuda::Module* module : modules) module->launch(tensors.problem(), nullptr);
    });
  }

  /// Where the machine stopped, in words.
  std::string stop(const std::optional<gpu::Event>& event) {
    if (event && event->kind == gpu::at_launch) return event->name + " begins\n";
    if (event) {
      const std::string value = event->kind == gpu::at_mark ? fmt::format(" {}", event->value) : "";
      const char* place = event->kind == gpu::at_barrier ? "behind" : "at";  // all have come, it may go on
      return fmt::format("warp {} is {} {}{}: {}\n", event->warp, place, event->name, value, event->where);
    }
    const auto& reports = device.machine().reports();
    return reports.empty() ? "the kernels have ended\n"
                           : fmt::format("no further; [{}] {}\n", reports.back().kind, reports.back().text);
  }

  using Is = std::function<bool(const gpu::Event&)>;
  using Name = std::function<std::string(const gpu::Event&)>;
  /// On to the first event of `kinds` for which `is` says true, of this warp or of any. @throws Refused for a warp that
  /// there isn't, and where the kernels end without it: that sentence names what was met on the way.
  std::string to(const std::string& asked, unsigned kinds, std::optional<int> warp, const Is& is, const Name& name) {
    gpu::Machine& machine = device.machine();
    if (warp) require_warp(*warp, machine.warps() > 0 ? machine.warps() : most_warps);
    std::vector<std::string> met;  // a few, each once
    bool launched = machine.warps() > 0;
    const std::optional<gpu::Event> event = machine.until([&](const gpu::Event& e) {
      if (e.kind == gpu::at_launch && warp && !std::exchange(launched, true)) require_warp(*warp, machine.warps());
      if (!(e.kind & kinds) || (warp && e.warp != *warp)) return false;
      if (is(e)) return true;
      if (std::ranges::find(met, name(e)) == met.end()) met.push_back(name(e));
      return false;
    });
    if (event || !machine.reports().empty()) return stop(event);
    constexpr std::size_t most = 8;
    const bool more = met.size() > most;
    met.resize(std::min(met.size(), most));
    throw Refused(fmt::format("{}{} was asked for, but it was not met and the kernels have ended{}; make a new Stepper",
                              asked, warp ? fmt::format(" of warp {}", *warp) : "",
                              met.empty()
                                  ? ", with none on the way"
                                  : fmt::format(", with {}{} on the way", fmt::join(met, ", "), more ? ", …" : "")));
  }

  std::vector<double> read(const std::string& name) {
    const std::vector<Eigen::half> values = tensors.read<Eigen::half>(name);
    return {values.begin(), values.end()};
  }

  std::vector<const cuda::Module*> modules;
  const Inputs inputs;
  const Options options;
  cuda::VirtualDevice device;
  cuda::OnDevice tensors;
};

Stepper::Stepper(const std::vector<std::string>& kernels, const Inputs& inputs, const Options& options,
                 gpu::Config config) {
  const std::vector<const cuda::Module*> modules = modules_named(kernels);
  for (const cuda::Module* module : modules)
    cuda::require_taken({&find_stage(stage_of(*module)), module, nullptr, nullptr, nullptr}, inputs, options);
  parts_ = std::make_unique<Parts>(modules, inputs, options, config);
}

Stepper::~Stepper() { parts_->device.machine().stop(); }

gpu::Machine& Stepper::machine() { return parts_->device.machine(); }

std::string Stepper::to_launch(const std::string& kernel) {
  return parts_->to(
      fmt::format("kernel \"{}\"", kernel), gpu::at_launch, {},
      [&](const gpu::Event& e) { return e.name.find(kernel) != std::string::npos; },
      [](const gpu::Event& e) { return e.name; });
}

std::string Stepper::to_mark(const std::string& name, std::int64_t value, int warp) {
  return parts_->to(
      fmt::format("mark \"{}\" {}", name, value), gpu::at_mark, warp,
      [&](const gpu::Event& e) { return e.name == name && e.value == value; },
      [](const gpu::Event& e) { return fmt::format("\"{}\" {}", e.name, e.value); });
}

std::string Stepper::to_barrier(int warp) {
  return parts_->to(
      "a barrier", gpu::at_barrier, warp, [](const gpu::Event&) { return true; },
      [](const gpu::Event& e) { return e.name; });
}

std::string Stepper::to_instruction(const std::string& name, int warp) {
  return parts_->to(
      fmt::format("instruction \"{}\"", name), gpu::at_instruction | gpu::at_async, warp,
      [&](const gpu::Event& e) { return e.name.starts_with(name); }, [](const gpu::Event& e) { return e.name; });
}

std::string Stepper::to_end() {
  machine().run();
  return parts_->stop({});
}

std::string Stepper::state() { return machine().state(); }

trace::Matrix Stepper::shared(const std::string& name) {
  return found(machine().shared_matrix(name), name + " in shared memory", fmt::format("the shared array {} was", name),
               machine().shared_names(), machine().warps() > 0);
}

trace::Matrix Stepper::registers(int warp, const std::string& name) {
  if (machine().warps() > 0) require_warp(warp, machine().warps());
  return found(machine().registers(warp, name), fmt::format("{} in the registers of warp {}", name, warp),
               fmt::format("the registers {} were", name), machine().register_names(warp), machine().warps() > 0);
}

std::string Stepper::reports() {
  std::string text;
  for (const gpu::Report& r : machine().reports()) text += fmt::format("[{}] {}\n", r.kind, r.text);
  return text.empty() ? "no reports\n" : text;
}

std::string Stepper::moved() {
  Table table;
  table.column("global memory", "", Table::Align::left)
      .column("read", "bytes")
      .column("written", "bytes")
      .column("added to", "bytes");
  for (const auto& [tensor, n] : machine().counts().tensors)
    if (n.read + n.written + n.rmw > 0)
      table.row({tensor, grouped(static_cast<Index>(n.read)), grouped(static_cast<Index>(n.written)),
                 grouped(static_cast<Index>(n.rmw))});
  return table.text();
}

std::string Stepper::bank_conflicts() {
  Table table;
  table.column("wavefronts").column("without conflicts").column("line", "", Table::Align::left);
  for (const auto& [where, n] : machine().counts().lines)
    if (n.wavefronts > n.least_wavefronts)
      table.row({grouped(static_cast<Index>(n.wavefronts)), grouped(static_cast<Index>(n.least_wavefronts)), where});
  const gpu::Counts& all = machine().counts();
  return fmt::format("{} wavefronts of shared memory, {} without bank conflicts\n",
                     grouped(static_cast<Index>(all.wavefronts)), grouped(static_cast<Index>(all.least_wavefronts))) +
         (all.wavefronts > all.least_wavefronts ? table.text() : "");
}

std::string Stepper::check() {
  machine().run();
  if (!machine().reports().empty()) return reports();
  const auto& modules = parts_->modules;
  const bool backward = std::ranges::any_of(modules, [](const cuda::Module* m) { return is_backward(*m); });
  const bool stores_scores = find_stage(stage_of(*modules.back())).lse == "S";
  const Reference right = reference(parts_->inputs, parts_->options, backward, stores_scores);
  Outputs got;
  got.lse = right.oracle.lse;  // not judged here
  got.o = parts_->read("O");
  if (backward) got.dq = parts_->read("dQ"), got.dk = parts_->read("dK"), got.dv = parts_->read("dV");
  if (!machine().reports().empty()) return reports();  // of outputs that nobody wrote
  Table table;
  table.column("output", "", Table::Align::left).column("error").column("tolerance").column("", "", Table::Align::left);
  for (const OutputCheck& o : flash::check(got, right, parts_->inputs, parts_->options).outputs)
    if (o.name != "lse")
      table.row(
          {o.name, fmt::format("{:.2g}", o.error), fmt::format("{:.2g}", o.tolerance), o.pass ? "ok" : o.message});
  return table.text();
}

trace::Timeline Stepper::timeline(double from, double to) {
  trace::Timeline result{"", "nominal cycles: the shape of the schedule, not a prediction", {}};
  const auto json = nlohmann::json::parse(machine().trace());
  std::map<std::pair<int, int>, trace::Lane> lanes;
  for (const auto& e : json.at("traceEvents")) {
    if (e.at("ph") != "X") continue;
    const double begin = e.at("ts"), end = begin + e.at("dur").get<double>();
    if (end <= from || begin >= to) continue;
    trace::Lane& lane = lanes[{e.at("pid"), e.at("tid")}];
    lane.name = fmt::format("CTA {}, warp {}", e.at("pid").get<int>() - 1, e.at("tid").get<int>());
    const std::string where = e.contains("args") ? e.at("args").at("where").get<std::string>() : "";
    lane.spans.push_back({kind_of(e.at("name")), std::max(begin, from), std::min(end, to), where});
  }
  for (auto& [key, lane] : lanes) result.lanes.push_back(std::move(lane));
  return result;
}

}  // namespace flash::notebook

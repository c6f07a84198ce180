#include "app/bench_traffic.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "app/child.hpp"
#include "app/counted.hpp"
#include "app/output.hpp"
#include "app/progress.hpp"
#include "app/table.hpp"
#include "cuda/common/on_device.hpp"
#include "cuda/common/tensors.hpp"

namespace flash::app {
namespace {

namespace fs = std::filesystem;

constexpr double kAllowed = 0.01;  ///< of the fill of the SMs

constexpr const char* kFill = "l1tex__m_xbar2l1tex_read_bytes.sum";
constexpr const char* kL2Sectors = "lts__t_sectors_op_read.sum";
constexpr const char* kDramRead = "dram__bytes_read.sum";
constexpr const char* kDramWritten = "dram__bytes_write.sum";
constexpr double sector_bytes = 32;

/// FlashAttention's own, one long head, and a causal one.
std::vector<BenchProblem> traffic_problems() {
  std::vector<BenchProblem> problems(3);
  problems[0].batch = 64, problems[0].heads = problems[0].kv_heads = 16, problems[0].n = 1024;
  problems[1].batch = 1, problems[1].heads = problems[1].kv_heads = 4, problems[1].n = 8192, problems[1].d = 128;
  problems[2].batch = 2, problems[2].heads = problems[2].kv_heads = 16, problems[2].n = 4096, problems[2].d = 128;
  problems[2].causal = true;
  return problems;
}

// ---- Nsight Compute

/// In PATH, or where NVIDIA's packages put it; the newest of several.
std::string find_ncu() {
  if (run_child({"ncu", "--version"}).started) return "ncu";
  std::vector<fs::path> found;
  std::error_code ignored;
  if (fs::exists("/usr/local/cuda/bin/ncu", ignored)) found.push_back("/usr/local/cuda/bin/ncu");
  for (const auto& folder : fs::directory_iterator("/opt/nvidia/nsight-compute", ignored))
    if (fs::exists(folder.path() / "ncu", ignored)) found.push_back(folder.path() / "ncu");
  if (found.empty())
    throw Refused(
        "--traffic was asked for, but it reads the card's counters by ncu, which is neither in PATH nor in "
        "/opt/nvidia; install Nsight Compute");
  return std::ranges::max(found).string();
}

/// This program's own command line for one problem.
std::vector<std::string> profiled(const Stage& stage, const BenchProblem& p, Index device) {
  std::vector<std::string> words{fs::read_symlink("/proc/self/exe").string(), "bench", stage.id, "--under-profiler"};
  const auto option = [&](const char* name, auto value) {
    words.insert(words.end(), {name, fmt::format("{}", value)});
  };
  option("--dtype", name(p.dtype));
  option("--n", p.n), option("--d", p.d), option("--batch", p.batch), option("--heads", p.heads);
  option("--device", device);
  if (p.causal) words.push_back("--causal");
  return words;
}

/// "a","b,c" → a | b,c
std::vector<std::string> csv_fields(const std::string& line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"')
      quoted = !quoted;
    else if (c == ',' && !quoted)
      fields.emplace_back();
    else if (c != '\r')
      fields.back() += c;
  }
  return fields;
}

/// "1,234.5" → 1234.5; NaN where it is no number
double counter_value(std::string text) {
  std::erase(text, ',');
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  return text.empty() || *end != '\0' ? std::nan("") : value;
}

/// Sums over all kernels, by the counter's name.
std::map<std::string, double> counter_sums(const std::string& csv) {
  std::map<std::string, double> sums;
  std::istringstream lines(csv);
  std::size_t name_at = 0, value_at = 0;
  for (std::string line; std::getline(lines, line);) {
    const std::vector<std::string> fields = csv_fields(line);
    const auto column = [&](const char* title) {
      return static_cast<std::size_t>(std::ranges::find(fields, title) - fields.begin());
    };
    if (column("Metric Name") < fields.size() && column("Metric Value") < fields.size())
      name_at = column("Metric Name"), value_at = column("Metric Value");
    else if (value_at > 0 && std::max(name_at, value_at) < fields.size())
      sums[fields[name_at]] += counter_value(fields[value_at]);
  }
  return sums;
}

std::string last_line(const std::string& text) {
  const std::size_t end = text.find_last_not_of('\n');
  if (end == std::string::npos) return "nothing";
  const std::size_t begin = text.rfind('\n', end);
  return text.substr(begin == std::string::npos ? 0 : begin + 1,
                     end + 1 - (begin == std::string::npos ? 0 : begin + 1));
}

Counted count_on_card(const std::string& ncu, const Stage& stage, const BenchProblem& p, Index device) {
  const char* const counters[] = {kFill, kL2Sectors, kDramRead, kDramWritten};
  std::vector<std::string> words{
      ncu,   "--clock-control", "none", "--cache-control", "none",      "--profile-from-start",
      "off", "--print-units",   "base", "--csv",           "--metrics", fmt::format("{}", fmt::join(counters, ","))};
  const std::vector<std::string> program = profiled(stage, p, device);
  words.insert(words.end(), program.begin(), program.end());
  const Child child = run_child(words);
  std::map<std::string, double> sums = counter_sums(child.output);
  for (const char* counter : counters)
    if (child.status != 0 || !sums.contains(counter) || !std::isfinite(sums[counter]))
      throw Refused(
          fmt::format("--traffic was asked for, but ncu did not count {} (exit status {}); its last words: {}", counter,
                      child.status, one_line(last_line(child.complaints.empty() ? child.output : child.complaints))));
  return {sums[kFill], sector_bytes * sums[kL2Sectors], sums[kDramRead], sums[kDramWritten]};
}

// ---- the ledger

/// Bytes of the CPU program with these tiles, or of the stage's main one for a step that is CUDA's alone. Without
/// arrays nothing is computed.
void count_bytes(TrafficRow& row) {
  const Stage& counted = row.stage->has(Side::cpu, Direction::forward) ? *row.stage : find_stage(row.stage->folder());
  Inputs in;
  in.shape = row.problem.shape(), in.dtype = row.problem.dtype;
  Options options = row.problem.options(false);
  if (row.tiles) options.br = row.tiles->Br, options.bc = row.tiles->Bc;
  RunConfig config;
  config.machine.count_only = true;
  const RunResult result = run(counted, in, options, config);
  for (const sim::LedgerLine& line : result.forward.ledger.lines()) {
    if (line.access != sim::Access::write) row.ledger_read += static_cast<double>(line.bytes);
    if (line.access != sim::Access::read) row.ledger_written += static_cast<double>(line.bytes);
  }
}

/// fp16 where the kernels don't take bf16, unless one of them is asked for.
void take_dtype(const cuda::Kernels& kernels, BenchProblem& p, const std::string& asked) {
  if (!asked.empty()) {
    p.dtype = asked == name(Format::bf16) ? Format::bf16 : Format::fp16;
    return;
  }
  const std::vector<Format> taken = cuda::dtypes(*kernels.forward);
  p.dtype = std::ranges::find(taken, Format::bf16) != taken.end() ? Format::bf16 : Format::fp16;
}

TrafficRow traffic_row(const Stage& stage, BenchProblem p, const Gpu& gpu, const std::string& dtype) {
  cuda::Kernels kernels = cuda::find_kernels(stage, cuda::Backend::gpu, false);
  kernels.device = gpu.device;
  take_dtype(kernels, p, dtype);
  Inputs in;
  in.shape = p.shape(), in.dtype = p.dtype;
  cuda::require_taken(kernels, in, p.options(false));
  cuda::require_room(kernels, in.shape, p.splits, false);
  TrafficRow row{&stage, p, cuda::tiles(*kernels.forward, *gpu.device, in, p.options(false)), 0, 0, {}};
  count_bytes(row);
  return row;
}

}  // namespace

bool TrafficRow::pass() const { return std::abs(off()) <= kAllowed; }
bool Traffic::pass() const { return std::ranges::all_of(rows, &TrafficRow::pass); }

Traffic measure_traffic(const std::vector<const Stage*>& stages, const BenchSetting& setting) {
  Traffic t;
  t.gpu = open_gpu(setting.device);
  t.driver = driver_text(*t.gpu.cuda);
  t.date = utc_now();
  const std::string ncu = find_ncu();
  for (const Stage* stage : stages)
    for (const BenchProblem& problem : traffic_problems())
      t.rows.push_back(traffic_row(*stage, problem, t.gpu, setting.dtype));
  Progress progress("bench --traffic", static_cast<int>(t.rows.size()));
  for (TrafficRow& row : t.rows) {
    progress.next(fmt::format("{}, d = {}, N = {}", row.stage->short_name(), row.problem.d, row.problem.n));
    row.counted = count_on_card(ncu, *row.stage, row.problem, setting.device);
  }
  return t;
}

void run_under_profiler(const Stage& stage, const BenchProblem& problem, Index device) {
  const Gpu gpu = open_gpu(device);
  cuda::Kernels kernels = cuda::find_kernels(stage, cuda::Backend::gpu, false);
  kernels.device = gpu.device;
  const Inputs in = large_inputs(problem);
  cuda::require_taken(kernels, in, problem.options(false));
  const cuda::OnDevice memory(*gpu.device, in, problem.options(false), cuda::tensors_of(cuda::modules(kernels), false));
  gpu.cuda->run_for_profiler(*gpu.device, *kernels.forward, memory.problem());
}

std::string traffic_text(const Traffic& t) {
  std::string text = fmt::format("{} (sm_{}), driver {}; {}, {}\n", t.gpu.facts.name, t.gpu.facts.arch, t.driver,
                                 t.gpu.cuda->compiler, t.date);
  text += paragraph("",
                    fmt::format("Forward kernels, launched once behind a cleared L2, by the card's counters. The fill "
                                "of the SMs ({}) has to be the ledger's reads with the kernel's tiles, within {:g} %; "
                                "what L2 was asked for and what DRAM gave is shown beside it. Writes to DRAM fall "
                                "short by what is still in L2.",
                                kFill, 100 * kAllowed),
                    columns);
  Table table;
  table.column("stage", "", Table::Align::left).column("problem", "", Table::Align::left);
  table.column("ledger", "bytes read").column("SM fill", "bytes").column("off", "%").column("L2 reads", "bytes");
  table.column("DRAM reads", "bytes").column("DRAM writes", "bytes");
  for (const TrafficRow& row : t.rows) {
    const BenchProblem& p = row.problem;
    const auto bytes = [](double n) { return grouped(std::llround(n)); };
    table.row(
        {row.stage->short_name(),
         fmt::format("{} {}x{} N {} d {}{}", name(p.dtype), p.batch, p.heads, p.n, p.d, p.causal ? " causal" : ""),
         bytes(row.ledger_read), bytes(row.counted.sm_fill), fmt::format("{:+.2f}", 100 * row.off()),
         bytes(row.counted.l2_read), bytes(row.counted.dram_read), bytes(row.counted.dram_written)});
  }
  return text + "\n" + table.text();
}

nlohmann::ordered_json traffic_json(const Traffic& t) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const TrafficRow& row : t.rows) {
    const BenchProblem& p = row.problem;
    rows.push_back({{"stage", row.stage->id},
                    {"problem",
                     {{"batch", p.batch},
                      {"heads", p.heads},
                      {"kv_heads", p.kv_heads},
                      {"n", p.n},
                      {"d", p.d},
                      {"dtype", name(p.dtype)},
                      {"causal", p.causal},
                      {"backward", false}}},
                    {"tiles", blocks_json(row.tiles)},
                    {"ledger", {{"read_bytes", row.ledger_read}, {"written_bytes", row.ledger_written}}},
                    {"sm_fill_bytes", row.counted.sm_fill},
                    {"off", row.off()},
                    {"l2_read_bytes", row.counted.l2_read},
                    {"dram_read_bytes", row.counted.dram_read},
                    {"dram_written_bytes", row.counted.dram_written},
                    {"pass", row.pass()}});
  }
  const cuda::GpuFacts& gpu = t.gpu.facts;
  return {
      {"date", t.date},
      {"gpu",
       {{"name", gpu.name}, {"arch", fmt::format("sm_{}", gpu.arch)}, {"sms", gpu.sms}, {"l2_bytes", gpu.l2_bytes}}},
      {"driver", t.driver},
      {"compiler", t.gpu.cuda->compiler},
      {"built_for", t.gpu.cuda->built_for},
      {"traffic", rows}};
}

}  // namespace flash::app

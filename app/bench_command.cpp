// `bench [STAGE …]`: how fast the kernels are on a GPU.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/bench.hpp"
#include "app/commands.hpp"
#include "app/counted.hpp"
#include "app/heading.hpp"
#include "app/memory.hpp"
#include "app/output.hpp"
#include "app/run_report.hpp"
#include "app/stage_name.hpp"
#include "app/table.hpp"

namespace flash::app {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kL2 = "not cleared: a timing finds what the one before left";
constexpr int least_rounds = 20;

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

double tflops(const Bench& b, const BenchRow& row) { return b.flops / median(row.seconds) * 1e-12; }

std::string direction(const BenchProblem& p) { return p.backward ? "backward" : "forward"; }

// ---- text

std::string text(const Bench& b) {
  const BenchProblem& p = b.problem;
  std::string all =
      fmt::format("{} (sm_{}), {} SMs, driver {}; {}, {}\n", b.gpu.facts.name, b.gpu.facts.arch, b.gpu.facts.sms,
                  b.driver, b.gpu.cuda->compiler, b.date) +
      paragraph(
          "",
          fmt::format("{}, fp16: batch {}, {} query heads, {} KV heads, N = {}, d = {}{}; {:.4g} TFLOP, which is "
                      "4·d for each visible (query, key) pair{}. Median of {} rounds, each of which times every stage "
                      "once; L2 ({}) {}; the clock is the SMs' right after each timing.",
                      sentence(direction(p)), p.batch, p.heads, p.kv_heads, p.n, p.d, p.causal ? ", causal" : "",
                      b.flops * 1e-12, p.backward ? ", times 2.5" : "", p.rounds,
                      decimal_bytes(static_cast<Index>(b.gpu.facts.l2_bytes)), kL2),
          columns);
  Table table;
  table.column("stage", "", Table::Align::left).column("time", "ms").column("least", "ms").column("most", "ms");
  table.column("speed", "TFLOP/s").column("clock", "MHz").column("tiles", "Br x Bc").column("launches", "each");
  std::string notes;
  for (const BenchRow& row : b.rows) {
    const std::string& stage = row.kernels.stage->id;
    if (!row.seconds.empty())
      table.row({stage, fmt::format("{:.4g}", 1e3 * median(row.seconds)),
                 fmt::format("{:.4g}", 1e3 * *std::ranges::min_element(row.seconds)),
                 fmt::format("{:.4g}", 1e3 * *std::ranges::max_element(row.seconds)),
                 fmt::format("{:.4g}", tflops(b, row)), fmt::format("{:.0f}", median(row.clock_mhz)),
                 row.tiles ? fmt::format("{} x {}", row.tiles->Br, row.tiles->Bc) : "none",
                 fmt::format("{}", row.launches)});
    if (!row.why_not.empty()) notes += paragraph("not timed: ", row.why_not, columns);
    if (!row.check.pass())
      notes += fmt::format("{} FAILS on a small problem, so nothing was timed:{}", stage, check_report(row.check));
  }
  return all + "\n" + table.text() + notes;
}

// ---- JSON

Json row_json(const Bench& b, const BenchRow& row) {
  Json checks = Json::object();
  for (const OutputCheck& c : row.check.outputs)
    checks[c.name] = {{"error", json_number(c.error)}, {"tolerance", json_number(c.tolerance)}, {"pass", c.pass}};
  Json json = {{"stage", row.kernels.stage->id},
               {"direction", direction(b.problem)},
               {"tiles", blocks_json(row.tiles)},
               {"check", checks}};
  if (!row.why_not.empty()) json["why"] = row.why_not;
  if (row.seconds.empty()) return json;
  json["launches"] = row.launches;
  json["seconds"] = {{"median", median(row.seconds)},
                     {"least", *std::ranges::min_element(row.seconds)},
                     {"most", *std::ranges::max_element(row.seconds)}};
  json["tflops"] = tflops(b, row);
  json["sm_clock_mhz"] = median(row.clock_mhz);
  return json;
}

Json json(const Bench& b) {
  const BenchProblem& p = b.problem;
  const cuda::GpuFacts& gpu = b.gpu.facts;
  Json rows = Json::array();
  for (const BenchRow& row : b.rows) rows.push_back(row_json(b, row));
  return {
      {"date", b.date},
      {"gpu",
       {{"name", gpu.name}, {"arch", fmt::format("sm_{}", gpu.arch)}, {"sms", gpu.sms}, {"l2_bytes", gpu.l2_bytes}}},
      {"driver", b.driver},
      {"compiler", b.gpu.cuda->compiler},
      {"built_for", b.gpu.cuda->built_for},
      {"problem",
       {{"batch", p.batch},
        {"heads", p.heads},
        {"kv_heads", p.kv_heads},
        {"n", p.n},
        {"d", p.d},
        {"dtype", "fp16"},
        {"causal", p.causal},
        {"backward", p.backward}}},
      {"flops", b.flops},
      {"rounds", p.rounds},
      {"l2", kL2},
      {"rows", rows}};
}

// ---- the command

struct BenchCommand {
  std::vector<std::string> stages;
  std::optional<Index> batch, heads, kv_heads, n, d, rounds, device;
  bool causal = false, backward = false, peers = false, traffic = false, json = false;
  std::string out;
};

/// Those named, else all that have the direction.
std::vector<const Stage*> stages_of(const BenchCommand& c) {
  std::vector<const Stage*> list;
  for (const std::string& name : c.stages) list.push_back(&stage_named(name));
  if (list.empty())
    for (const Stage& stage : main_stages())
      if (!c.backward || stage.has(Side::cuda, Direction::backward)) list.push_back(&stage);
  return list;
}

BenchProblem problem_of(const BenchCommand& c) {
  BenchProblem p;
  p.batch = c.batch.value_or(p.batch), p.heads = c.heads.value_or(p.heads);
  p.kv_heads = c.kv_heads.value_or(p.heads);
  p.n = c.n.value_or(p.n), p.d = c.d.value_or(p.d);
  p.causal = c.causal, p.backward = c.backward;
  require_shape({p.batch, p.heads, p.kv_heads, p.n, p.n, p.d, p.d});
  if (p.batch < 1 || p.n < 1)
    throw Refused(fmt::format("batch {} and N = {} were asked for, but nothing of size 0 can be timed; take 1 or more",
                              p.batch, p.n));
  const Index rounds = c.rounds.value_or(least_rounds);
  if (rounds < least_rounds || rounds > 100'000)
    throw Refused(fmt::format("--rounds {} was asked for, but a median takes {} to 100000; take one of these", rounds,
                              least_rounds));
  p.rounds = static_cast<int>(rounds);
  return p;
}

/// Adds the document to the file's "runs"; a new file has one. @throws Refused where the file is something else.
void add_to_measured(const std::string& file, const Json& document) {
  Json measured = {{"runs", Json::array()}};
  if (std::ifstream stream(file); stream) {
    measured = Json::parse(stream, nullptr, false);
    if (!measured.is_object() || measured.size() != 1 || !measured.contains("runs") || !measured["runs"].is_array())
      throw Refused(
          fmt::format("--out {} was asked for, but that file is no list of measured runs; name another", file));
  }
  measured["runs"].push_back(document);
  write_file(file, measured.dump(1) + "\n");
}

Status run_bench(const BenchCommand& c) {
  for (const auto& [option, given] : {std::pair{"--peers", c.peers}, {"--traffic", c.traffic}})
    if (given)
      throw Refused(fmt::format(
          "{} was asked for, but it waits for stage 05_fa2_partitioning, not built yet; leave it out", option));
  if (c.device && *c.device < 0)
    throw Refused(fmt::format("--device {} was asked for, but GPUs are counted from 0; take 0 or more", *c.device));
  if (!c.out.empty()) require_file_name(c.out);
  const Bench b = bench(stages_of(c), problem_of(c), c.device.value_or(0));
  const Json document = json(b);
  if (!c.out.empty()) add_to_measured(c.out, document);
  if (c.json)
    print_json(document);
  else
    print(text(b));
  if (b.checks_pass()) return ok;
  fmt::print(stderr, "flashsteps: a stage is not right on this GPU, so nothing was timed\n");
  return check_failed;
}

}  // namespace

void add_bench(CLI::App& program, int& status) {
  CLI::App* command = program.add_subcommand("bench", "times the kernels on a GPU");
  const auto c = std::make_shared<BenchCommand>();
  command->add_option("STAGE", c->stages, "stages to time, in turn (all)")->type_name("");
  const Heading problem(*command, "Problem: fp16, drawn at random");
  problem.whole("--n", c->n, "queries and keys (4096)");
  problem.whole("--d", c->d, "channels (64)");
  problem.whole("--batch", c->batch, "sequences (8)");
  problem.whole("--heads", c->heads, "query heads (32)");
  problem.whole("--kv-heads", c->kv_heads, "key and value heads (as many)");
  problem.flag("--causal", c->causal, "a query sees the keys up to its own");
  problem.flag("--backward", c->backward, "time the backward pass instead");
  const Heading timing(*command, "Timing");
  timing.whole("--rounds", c->rounds, "of which the median is taken (20)");
  timing.whole("--device", c->device, "which GPU (0)");
  timing.flag("--peers", c->peers, "beside other kernels (waits for stage 05)");
  timing.flag("--traffic", c->traffic, "hardware counters beside the ledger (waits for stage 05)");
  const Heading output(*command, "Output");
  output.flag("--json", c->json, "one JSON document (docs/schema/bench.schema.json)");
  output.text("--out", c->out, "FILE", "add the document to this file's list, such as docs/measured/CARD-DATE.json");
  command->footer("Example: flashsteps bench 02 03 04 --n 16384 --batch 1 --causal");
  command->callback([c, &status] { status = run_bench(*c); });
}

}  // namespace flash::app

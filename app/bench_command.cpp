// `bench [STAGE …]`: how fast the kernels are on a GPU, and what they move there.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/bench.hpp"
#include "app/bench_report.hpp"
#include "app/bench_traffic.hpp"
#include "app/commands.hpp"
#include "app/heading.hpp"
#include "app/memory.hpp"
#include "app/output.hpp"
#include "app/stage_name.hpp"

namespace flash::app {
namespace {

using Json = nlohmann::ordered_json;

constexpr int least_rounds = 20;

struct BenchCommand {
  std::vector<std::string> stages;
  std::optional<Index> batch, heads, kv_heads, n, d, splits, rounds, device;
  bool causal = false, backward = false, deterministic = false, sweep = false, decode = false;
  bool peers = false, traffic = false, under_profiler = false, json = false;
  std::string dtype, out;
};

// ---- what was asked

/// Has this build GPU kernels of the direction?
bool has_kernels(const Stage& stage, bool backward) {
  try {
    cuda::find_kernels(stage, cuda::Backend::gpu, backward);
    return true;
  } catch (const Refused&) {
    return false;
  }
}

/// Those named, else all that have the direction.
std::vector<const Stage*> stages_of(const BenchCommand& c) {
  std::vector<const Stage*> list;
  for (const std::string& name : c.stages) list.push_back(&stage_named(name));
  if (!list.empty()) return list;
  find_gpus();  // without one, that is what is to be said
  for (const Stage& stage : stages())
    if (has_kernels(stage, c.backward)) list.push_back(&stage);
  if (list.empty()) throw Refused("all stages' kernels were asked for, but this build has none for GPUs; build again");
  return list;
}

void require_together(const BenchCommand& c) {
  struct Pair {
    const char* one;
    bool has_one;
    const char* other;
    bool has_other;
  };
  const bool sizes = c.batch || c.heads || c.kv_heads;
  const Pair pairs[] = {
      {"--decode", c.decode, "--backward", c.backward},
      {"--decode", c.decode, "--causal", c.causal},
      {"--decode", c.decode, "--sweep", c.sweep},
      {"--sweep", c.sweep, "sizes of batch or heads", sizes},
      {"--traffic", c.traffic, "--backward", c.backward},
      {"--traffic", c.traffic, "--decode", c.decode},
      {"--traffic", c.traffic, "--sweep", c.sweep},
      {"--traffic", c.traffic, "--peers", c.peers},
      {"--traffic", c.traffic, "sizes", sizes || c.n || c.d},
  };
  for (const Pair& p : pairs)
    if (p.has_one && p.has_other)
      throw Refused(fmt::format("{} was asked with {}, but not both at once; leave one out", p.one, p.other));
  if (c.deterministic && !c.backward)
    throw Refused("--deterministic was asked without --backward, but forward passes always are; add --backward");
  if (c.splits && !c.decode) throw Refused("--splits was asked without --decode, whose keys it divides; add --decode");
  if (!c.dtype.empty() && c.dtype != name(Format::fp16) && c.dtype != name(Format::bf16))
    throw Refused(
        fmt::format("--dtype {} was asked for, but kernels are timed in fp16 or bf16; take one of these", c.dtype));
  if (c.device && *c.device < 0)
    throw Refused(fmt::format("--device {} was asked for, but GPUs are counted from 0; take 0 or more", *c.device));
}

BenchSetting setting_of(const BenchCommand& c) {
  const Index rounds = c.rounds.value_or(least_rounds);
  if (rounds < least_rounds || rounds > 100'000)
    throw Refused(fmt::format("--rounds {} was asked for, but a median takes {} to 100000; take one of these", rounds,
                              least_rounds));
  return {static_cast<int>(rounds), c.device.value_or(0), c.peers, c.dtype};
}

BenchProblem problem_of(const BenchCommand& c) {
  BenchProblem p;
  if (c.decode) p.batch = 4, p.heads = 8, p.n = 65536, p.d = 128;
  p.batch = c.batch.value_or(p.batch), p.heads = c.heads.value_or(p.heads);
  p.kv_heads = c.kv_heads.value_or(p.heads);
  p.n = c.n.value_or(p.n), p.d = c.d.value_or(p.d);
  p.causal = c.causal, p.backward = c.backward, p.decode = c.decode, p.deterministic = c.deterministic;
  p.dtype = c.dtype == name(Format::fp16) ? Format::fp16 : Format::bf16;
  require_shape(p.shape());
  if (p.batch < 1 || p.n < 1)
    throw Refused(fmt::format("batch {} and N = {} were asked for, but nothing of size 0 can be timed; take 1 or more",
                              p.batch, p.n));
  p.splits = c.splits.value_or(p.splits);
  if (p.splits < 1 || p.splits > p.n)
    throw Refused(fmt::format("--splits {} was asked of {} keys; take 1 to {}", p.splits, p.n, p.n));
  return p;
}

/// The cells of the FlashAttention papers: as many tokens and channels in each.
std::vector<BenchProblem> sweep(const BenchCommand& c) {
  constexpr Index tokens = 16384, hidden = 2048;
  std::vector<BenchProblem> cells;
  for (const Index d : {64, 128, 256})
    for (const Index n : {1024, 4096, 16384})
      for (const bool causal : {false, true}) {
        if ((c.d && *c.d != d) || (c.n && *c.n != n) || (c.causal && !causal)) continue;
        BenchProblem& p = cells.emplace_back(problem_of(c));
        p.batch = tokens / n, p.heads = p.kv_heads = hidden / d, p.n = n, p.d = d, p.causal = causal;
      }
  if (cells.empty())
    throw Refused("a part of --sweep was asked for that it hasn't; take --d 64, 128 or 256, --n 1024, 4096 or 16384");
  return cells;
}

// ---- output

/// Adds the documents to the file's "runs"; a new file has these. @throws Refused where the file is something else.
void add_to_measured(const std::string& file, const std::vector<Json>& documents) {
  Json measured = {{"runs", Json::array()}};
  if (std::ifstream stream(file); stream) {
    measured = Json::parse(stream, nullptr, false);
    if (!measured.is_object() || measured.size() != 1 || !measured.contains("runs") || !measured["runs"].is_array())
      throw Refused(
          fmt::format("--out {} was asked for, but that file is no list of measured runs; name another", file));
  }
  for (const Json& document : documents) measured["runs"].push_back(document);
  write_file(file, measured.dump(1) + "\n");
}

void show(const BenchCommand& c, const std::vector<Json>& documents, const std::string& text) {
  if (!c.out.empty()) add_to_measured(c.out, documents);
  if (!c.json) return print(text);
  print_json(documents.size() == 1 ? documents.front() : Json{{"runs", documents}});
}

Status run_traffic(const BenchCommand& c) {
  const Traffic traffic = measure_traffic(stages_of(c), setting_of(c));
  show(c, {traffic_json(traffic)}, traffic_text(traffic));
  if (traffic.pass()) return ok;
  fmt::print(stderr, "flashsteps: what filled the SMs is not what the ledger says\n");
  return check_failed;
}

Status run_bench(const BenchCommand& c) {
  require_together(c);
  if (c.under_profiler) return run_under_profiler(*stages_of(c).front(), problem_of(c), c.device.value_or(0)), ok;
  if (!c.out.empty()) require_file_name(c.out);
  if (c.traffic) return run_traffic(c);
  const BenchSetting setting = setting_of(c);
  const std::vector<BenchProblem> cells = c.sweep ? sweep(c) : std::vector{problem_of(c)};
  const Benches benches = bench(stages_of(c), cells, setting);
  show(c, bench_json(benches), bench_text(benches));
  if (benches.checks_pass()) return ok;
  fmt::print(stderr, "flashsteps: a stage is not right on this GPU; what is wrong stands beside it\n");
  return check_failed;
}

}  // namespace

void add_bench(CLI::App& program, int& status) {
  CLI::App* command = program.add_subcommand("bench", "times the kernels on a GPU, and counts what they move there");
  const auto c = std::make_shared<BenchCommand>();
  command->add_option("STAGE", c->stages, "stages to time, in turn (all)")->type_name("");
  const Heading problem(*command, "Problem: drawn at random");
  problem.whole("--n", c->n, "queries and keys (4096; decoding 65536)");
  problem.whole("--d", c->d, "channels (64; decoding 128)");
  problem.whole("--batch", c->batch, "sequences (8; decoding 4)");
  problem.whole("--heads", c->heads, "query heads (32; decoding 8)");
  problem.whole("--kv-heads", c->kv_heads, "key and value heads (as many)");
  problem.text("--dtype", c->dtype, "NAME", "fp16 or bf16 (bf16 where all kernels asked for take it)");
  problem.flag("--causal", c->causal, "a query sees the keys up to its own");
  problem.flag("--backward", c->backward, "time the backward pass instead");
  problem.flag("--deterministic", c->deterministic, "with --backward: both ways, and 100 runs compared bit by bit");
  problem.flag("--decode", c->decode, "one query: bytes a second, beside a copy's");
  problem.whole("--splits", c->splits, "with --decode: parts of the keys that are worked on apart (1)");
  problem.flag(
      "--sweep", c->sweep,
      "16384 tokens, 2048 channels: d 64 to 256, N 1024 to 16384, causal or not; or a part: --d, --n, --causal");
  const Heading timing(*command, "Measuring");
  timing.whole("--rounds", c->rounds, "of which the median is taken (20)");
  timing.whole("--device", c->device, "which GPU (0)");
  timing.flag("--peers", c->peers,
              "beside the kernels of PyTorch, Triton, FA3 and FA4 that python3 (or FLASH_PYTHON) has");
  timing.flag("--traffic", c->traffic, "forward kernels by Nsight's counters beside the ledger, at three sizes");
  command->add_flag("--under-profiler", c->under_profiler)->group("");  // what --traffic runs
  const Heading output(*command, "Output");
  output.flag("--json", c->json, "one JSON document (docs/schema/bench.schema.json)");
  output.text("--out", c->out, "FILE", "add what was measured to this file's list, docs/measured/CARD-DATE.json");
  command->footer("Example: flashsteps bench 02 03 04 --n 16384 --batch 1 --causal");
  command->callback([c, &status] { status = run_bench(*c); });
}

}  // namespace flash::app

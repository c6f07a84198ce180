// `step STAGE`: a run, step by step, as a page that opens in a browser without a network.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "app/commands.hpp"
#include "app/heading.hpp"
#include "app/kernel_trace.hpp"
#include "app/output.hpp"
#include "app/run_report.hpp"
#include "app/stage_name.hpp"
#include "sim/trace/page.hpp"
#include "sim/trace/stage_recorder.hpp"
#include "stages/common/around_run.hpp"
#include "stages/common/sight.hpp"

namespace flash::app {
namespace {

using trace::Json;

struct StepCommand {
  RunOptions problem;
  std::string beside, out;
  std::optional<Index> head;
};

/// Without arrays and sizes of the user's own: what fits on a screen, in several tiles.
void take_small_defaults(RunOptions& typed) {
  const bool is_drawn = typed.q.empty() && typed.example.empty();
  if (typed.on != "cpu") {  // kernels have tiles of their own: two of keys
    if (is_drawn && !typed.n && !typed.nk && !typed.backward) typed.n = 32, typed.nk = 256;
    if (is_drawn && !typed.n) typed.n = 64;
    if (is_drawn && !typed.d) typed.d = 64;
    return;
  }
  require_programs(stage_named(typed.stage), Side::cpu, typed.backward);
  if (is_drawn && !typed.n) typed.n = 16;
  if (is_drawn && !typed.d) typed.d = 8;
  const bool is_small = is_drawn || typed.example == "hand";
  if (is_small && stage_named(typed.stage).takes("br and bc") && typed.sram.empty() && typed.budget.empty() &&
      !typed.br && !typed.bc)
    typed.br = typed.bc = is_drawn ? 4 : 2;
}

void require_steppable(const StepCommand& c) {
  if (c.problem.on == "gpu")
    throw Refused(
        "steps on a gpu were asked for, but only the CPU's programs and the virtual GPU can be watched; "
        "take --on cpu or --on vgpu");
  if (c.problem.count_only) throw Refused("steps were asked with --count-only, which computes no values; leave it out");
  if (c.problem.allow_nonfinite)
    throw Refused(
        "steps were asked with --allow-nonfinite, but such a run computes with 0 in place of what is not finite "
        "and marks the rows that see it at the end; leave it out, or take run");
  require_file_name(c.out);
}

/// The problem of one head of the first batch.
void take_head(Asked& asked, Index head) {
  Inputs& in = asked.inputs;
  const Shape s = in.shape;
  if (head < 0 || head >= s.heads)
    throw Refused(
        fmt::format("--head {} was asked for, but there are heads 0 to {}; take one of them", head, s.heads - 1));
  if (head > 0 && asked.options.dropout > 0)
    throw Refused(
        "--head was asked with --dropout, whose numbers are of each head's own; take --head 0, or leave one out");
  const Index kv_head = rules::kv_head(head, s.heads, s.kv_heads);
  const auto keep = [](auto& array, Index n, Index size) {
    if (!array.empty()) array = {array.begin() + n * size, array.begin() + (n + 1) * size};
  };
  keep(in.q, head, s.Nq * s.d);
  keep(in.k, kv_head, s.Nk * s.d);
  keep(in.v, kv_head, s.Nk * s.dv);
  keep(in.dout, head, s.Nq * s.dv);
  keep(in.slopes, head, 1);
  keep(in.mask, in.mask_heads == 1 ? 0 : head, s.Nq * s.Nk);
  in.mask_batch = in.mask_heads = 1;
  in.shape.batch = in.shape.heads = in.shape.kv_heads = 1;
}

// ---- the head of a trace

/// For each batch and head one string a query: "1" for each key that it sees. Without an explicit mask all see the
/// same: then it is told once.
Json visible_json(const Asked& asked) {
  const Shape& s = asked.inputs.shape;
  const Sight sees(asked.inputs, asked.options);
  Json all = Json::array();
  const bool is_one = asked.inputs.mask.empty();
  for (Index b = 0; b < (is_one ? 1 : s.batch); ++b)
    for (Index h = 0; h < (is_one ? 1 : s.heads); ++h) {
      Json rows = Json::array();
      for (Index i = 0; i < s.Nq; ++i) {
        std::string row;
        for (Index j = 0; j < s.Nk; ++j) row += sees(b, h, i, j) ? '1' : '0';
        rows.push_back(row);
      }
      all.push_back(rows);
    }
  return all;
}

/// What set the tiles' sizes.
const char* budget(const Asked& asked) {
  if (asked.kernels) return "of the kernel";
  if (asked.options.br > 0) return "by hand";
  return asked.config.machine.budget == sim::Budget::strict ? "strict" : "paper";
}

Json head_json(const Asked& asked, const std::string& command, const std::optional<Blocks>& blocks, Index sram_bytes) {
  Json head = {{"stage", asked.stage->id},
               {"on", asked.on},
               {"dtype", name(asked.inputs.dtype)},
               {"command", command},
               {"problem", problem_json(asked)},
               {"tiles", nullptr},
               {"sram", {{"capacity_bytes", sram_bytes}, {"budget", budget(asked)}}},
               {"visible", visible_json(asked)}};
  if (blocks) head["tiles"] = {{"br", blocks->Br}, {"bc", blocks->Bc}};
  return head;
}

template <class Real>
trace::Contents contents(const Inputs& in) {
  const Problem<Real> p(in);
  trace::Contents all;
  using Tensor = sim::HbmTensor<Real>;
  for (const Tensor& t : std::initializer_list<Tensor>{p.Q, p.K, p.V, p.dO, p.mask, p.slopes})
    if (!t.empty() && (t.info().name != "dO" || !in.dout.empty()))
      all.push_back({t.info(), {t.host().begin(), t.host().end()}});
  return all;
}

// ---- recording

Json stage_trace(Asked& asked, const std::string& command) {
  trace::StageRecorder recorder(asked.inputs.dtype == Format::fp64 ? contents<double>(asked.inputs)
                                                                   : contents<float>(asked.inputs));
  asked.config.observer = [&](const sim::Event& event) { recorder.add(event); };
  const RunResult result = run(*asked.stage, asked.inputs, asked.options, asked.config);
  Json document = head_json(asked, command, result.forward.blocks, asked.config.machine.sram_bytes);
  recorder.finish(document);
  return document;
}

/// Adds what the virtual GPU reports to `faults`.
Json kernel_trace(const Asked& asked, const std::string& command, std::string& faults) {
  const cuda::Kernels& kernels = *asked.kernels;
  const auto blocks = cuda::tiles(*kernels.forward, *kernels.device, asked.inputs, asked.options);
  Json document = head_json(asked, command, blocks, 0);
  faults += record_kernels(asked, document);
  return document;
}

/// What a page holds whatever is cut: the inputs, and who sees whom.
void require_room(const Asked& asked) {
  constexpr std::size_t of_a_number = 11;  // bytes of JSON
  const Inputs& in = asked.inputs;
  const Shape& s = in.shape;
  const std::size_t numbers = in.q.size() + in.k.size() + in.v.size() + in.dout.size() + in.mask.size();
  const auto pairs = static_cast<std::size_t>(s.Nq * s.Nk * (in.mask.empty() ? 1 : s.batch * s.heads));
  const std::size_t bytes = of_a_number * numbers + pairs;
  if (bytes > trace::most_bytes / 4 * 3)
    throw Refused(
        fmt::format("steps of {} queries and {} keys were asked for, but the inputs alone take {:.1f} MB of a page "
                    "of {:.1f}; take a smaller problem{}",
                    s.Nq, s.Nk, static_cast<double>(bytes) / 1e6, static_cast<double>(trace::most_bytes) / 1e6,
                    s.batch * s.heads > 1 ? " or one head (--head 0)" : ""));
}

Json record(RunOptions typed, std::optional<Index> head, const std::string& command, std::string& faults) {
  take_small_defaults(typed);
  typed.timeline = typed.accesses = typed.on == "vgpu";
  Asked asked = app::asked(typed);
  if (head) take_head(asked, *head);
  require_room(asked);
  return asked.kernels ? kernel_trace(asked, command, faults) : stage_trace(asked, command);
}

/// The same problem for another stage: one without tiles takes none.
RunOptions for_stage(RunOptions typed, const std::string& stage) {
  typed.stage = stage;
  if (!stage_named(stage).takes("br and bc")) typed.br = typed.bc = {};
  return typed;
}

/// A word as a shell takes it.
std::string quoted(const std::string& word) {
  constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%";
  if (!word.empty() && word.find_first_not_of(plain) == word.npos) return word;
  std::string text = "'";
  for (const char c : word) c == '\'' ? text += "'\\''" : text += c;
  return text + "'";
}

/// What makes this page again.
std::string command_line(const CLI::App& command) {
  std::string text = "flashsteps " + command.get_name();
  for (const CLI::Option* o : command.get_options([](const CLI::Option* o) { return o->count() > 0; })) {
    if (!o->get_positional()) text += " " + o->get_name();
    if (o->get_expected_min() == 0) continue;  // a flag
    for (const std::string& value : o->results()) text += " " + quoted(value);
  }
  return text;
}

std::string summary(const Json& document) {
  std::string text = fmt::format("{} on {}: {} steps", document["stage"].get<std::string>(),
                                 document["on"].get<std::string>(), document["steps"].size());
  if (const Json& tiles = document["tiles"]; !tiles.is_null())
    text += fmt::format(" in tiles of {} x {}", tiles["br"].get<Index>(), tiles["bc"].get<Index>());
  if (const Json& cut = document["cut"]; !cut.is_null())
    text += fmt::format(", the first of {}: {}", cut["of"].get<std::size_t>(), cut["why"].get<std::string>());
  return text + "\n";
}

Status step(const StepCommand& c, const std::string& command) {
  require_steppable(c);
  std::string faults;
  std::vector<Json> traces{record(c.problem, c.head, command, faults)};
  if (!c.beside.empty()) traces.push_back(record(for_stage(c.problem, c.beside), c.head, command, faults));
  write_file(c.out, trace::page(traces));
  std::string text = fmt::format("{}: open it in a browser\n", c.out);
  for (const Json& document : traces) text += summary(document);
  print(text);
  fmt::print(stderr, "{}", faults);
  return faults.empty() ? ok : check_failed;
}

}  // namespace

void add_step(CLI::App& program, int& status) {
  CLI::App* command = program.add_subcommand("step", "writes a page that steps through a run, for a browser");
  const auto c = std::make_shared<StepCommand>();
  add_run_options(*command, c->problem);
  const Heading output(*command, "Output");
  output.whole("--head", c->head, "this head of the first batch alone");
  output.text("--beside", c->beside, "STAGE", "a second stage on the same problem, in lock-step");
  output.text("--out", c->out, "FILE", "the page: one HTML file that needs no network");
  command->get_option("--out")->required();
  command->footer(
      "Where nothing is said a step page takes 16 queries and keys, d 8, tiles of 4 x 4 (hand: 2 x 2); on vgpu 32 "
      "queries, 256 keys (backward: 64 and 64), d 64.\nExample: flashsteps step 03 --causal --out step.html");
  command->callback([command, c, &status] { status = step(*c, command_line(*command)); });
}

}  // namespace flash::app

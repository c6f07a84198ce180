// `tour`: all stages on the Q, K and V of a real model. The same answer every time, and what each moved to get it.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "app/closed_form_json.hpp"
#include "app/commands.hpp"
#include "app/counted.hpp"
#include "app/ledger_json.hpp"
#include "app/output.hpp"
#include "app/table.hpp"
#include "app/tour_kernels.hpp"
#include "stages/common/check.hpp"
#include "stages/common/draw.hpp"

namespace flash::app {

namespace {

using Json = nlohmann::ordered_json;

// ---- what is run

/// One stage in one direction.
struct Stop {
  Step step;
  HeadComment words;
  Pass pass;
  Law law;
  std::vector<OutputCheck> checks;  ///< o and lse, or the gradients

  bool ok() const { return law.equal && std::ranges::all_of(checks, &OutputCheck::pass); }

  /// The output nearest to its tolerance; LSE, which has its own, only decides ok().
  const OutputCheck& worst() const {
    const auto share = [](const OutputCheck& c) { return c.name == "lse" ? -1 : c.error / c.tolerance; };
    return *std::ranges::max_element(checks, {}, share);
  }
};

struct Tour {
  Inputs inputs;
  RunConfig config;
  std::vector<Stop> forward, backward;
};

/// Of a stage with letters those of the first: what it is about, where its main letter may be about a detail.
HeadComment words(const Step& step) {
  for (const Stage& s : stages())
    if (s.folder() == step.stage->folder() && s.has(Side::cpu, step.direction))
      return head_comment({&s, step.direction});
  return head_comment(step);
}

Stop stop(const Step& step, const Pass& pass, const Inputs& inputs, const CheckResult& checked) {
  Stop s{step, words(step), pass, law_of(pass, step.facts().law, inputs, Options{}), {}};
  for (const OutputCheck& c : checked.outputs)
    if ((c.name == "o" || c.name == "lse") == (step.direction == Direction::forward)) s.checks.push_back(c);
  return s;
}

Tour make_tour() {
  Tour tour{example_minilm(FLASH_SOURCE_DIR "/stages/common/data", Format::fp32), {}, {}, {}};
  draw_dout(tour.inputs, 0);
  const Options options;
  const Reference all = reference(tour.inputs, options, true);
  Reference outputs_only = all;
  outputs_only.oracle.dq = outputs_only.oracle.dk = outputs_only.oracle.dv = {};
  for (const Stage& stage : main_stages()) {
    tour.config.backward = stage.has_backward();
    const RunResult result = run(stage, tour.inputs, options, tour.config);
    const CheckResult checked = check(result.outputs, result.backward ? all : outputs_only, tour.inputs, options);
    tour.forward.push_back(stop({&stage, Direction::forward}, result.forward, tour.inputs, checked));
    if (result.backward)
      tour.backward.push_back(stop({&stage, Direction::backward}, *result.backward, tour.inputs, checked));
  }
  return tour;
}

/// HBM that attention needs beyond inputs and outputs, from count-only runs of stages 01 and 04.
struct MemoryRow {
  StatedProblem problem;
  std::map<std::string, Index> materialized, recomputed;  ///< bytes by tensor
};

std::map<std::string, Index> extra_bytes(std::string_view stage, const StatedProblem& problem) {
  // Large tiles, so that counting is quick: what is kept in HBM does not depend on them.
  const Pass pass = count({&find_stage(stage), Direction::forward}, problem, Blocks{1024, 1024});
  std::map<std::string, Index> bytes;
  for (const auto& [tensor, info] : pass.ledger.extra_hbm())
    bytes[tensor] = info.elements() * bytes_per_element(info.format);
  return bytes;
}

std::vector<MemoryRow> memory_arithmetic() {
  std::vector<MemoryRow> rows;
  for (const Index N : {8192, 65536})
    for (const Index heads : {1, 32}) {
      StatedProblem problem;
      problem.N = N;
      problem.d = 128;
      problem.heads = heads;
      rows.push_back({problem, extra_bytes("01", problem), extra_bytes("04", problem)});
    }
  return rows;
}

// ---- text

std::string title(const Step& step) {
  std::string words(step.stage->id);
  std::ranges::replace(words, '_', ' ');
  return words;
}

std::string table_text(const std::vector<Stop>& stops, const char* error, Index sram_bytes) {
  Table table;
  table.column("stage", "", Table::Align::left).column(error).column("allowed");
  table.column("HBM traffic", "elements").column("").column("").column("SRAM traffic", "elements");
  table.column("peak SRAM").column("", "in M").column("extra", "HBM");
  for (const Stop& s : stops) {
    const sim::Ledger& ledger = s.pass.ledger;
    const Index peak = ledger.sram_peak().bytes;
    const bool first = &s == &stops.front();
    table.row({title(s.step), fmt::format("{:.1e}", s.worst().error), fmt::format("{:.1e}", s.worst().tolerance),
               grouped(ledger.elements()), decimal_bytes(ledger.bytes()),
               first ? "" : times(stops.front().pass.ledger.bytes(), ledger.bytes()),
               grouped(ledger.sram().read + ledger.sram().write), (s.pass.blocks ? "" : "needs ") + decimal_bytes(peak),
               fmt::format("{:.3g}", static_cast<double>(peak) / static_cast<double>(sram_bytes)),
               decimal_bytes(ledger.extra_bytes())});
  }
  return table.text();
}

std::string words_text(const std::vector<Stop>& stops) {
  std::string all;
  for (const Stop& s : stops) {
    const std::string label = fmt::format("{}  ", s.step.stage->number());
    all += paragraph(label, sentence(s.words.change), columns) + paragraph("    ", sentence(s.words.why), columns);
  }
  return all;
}

std::string failures(const std::vector<Stop>& stops) {
  std::string all;
  for (const Stop& s : stops) {
    for (const OutputCheck& c : s.checks)
      if (!c.pass) all += fmt::format("FAILS: {}, {}: {}\n", title(s.step), name(s.step.direction), c.message);
    if (!s.law.equal)
      all += fmt::format("FAILS: {}, {}: the ledger is not its law\n", title(s.step), name(s.step.direction));
  }
  return all;
}

std::string memory_text(const std::vector<MemoryRow>& rows) {
  Table table;
  table.column("N").column("heads").column("01: S + P").column("04: LSE").column("04: O between visits, fp32");
  for (const MemoryRow& r : rows)
    table.row({grouped(r.problem.N), grouped(r.problem.heads),
               decimal_bytes(r.materialized.at("S") + r.materialized.at("P")), decimal_bytes(r.recomputed.at("LSE")),
               decimal_bytes(r.recomputed.at("O_acc"))});
  return table.text();
}

std::string text(const Tour& tour, const std::vector<MemoryRow>& memory, const KernelTour& kernels) {
  const Shape& s = tour.inputs.shape;
  const Index sram = tour.config.machine.sram_bytes, M = sram / bytes_per_element(tour.inputs.dtype);
  return paragraph(
             "",
             fmt::format(
                 "Q, K, V of a sentence encoder's first layer on the Gettysburg Address: {} heads, N = {}, d = {}, "
                 "{}; SRAM {} a worker, M = {} elements, Algorithm 1's blocks. Numbers are sums over the heads; "
                 "errors are against an fp64 oracle.",
                 s.heads, s.Nq, s.d, name(tour.inputs.dtype), binary_bytes(sram), grouped(M)),
             columns) +
         "\nForward\n" + table_text(tour.forward, "max |ΔO|", sram) + failures(tour.forward) + "\n" +
         words_text(tour.forward) + "\nBackward, with a random dO; the gradient nearest to its tolerance\n" +
         table_text(tour.backward, "max |Δ|", sram) + failures(tour.backward) + "\n" + words_text(tour.backward) +
         fmt::format("\nWhat has to be kept in HBM beside Q, K, V and O: d = {}, {}\n", memory.front().problem.d,
                     name(memory.front().problem.dtype)) +
         memory_text(memory) + "01 grows as N², 04 as N.\n\n" + text(kernels) +
         "\nNext: ./flashsteps why 03, ./flashsteps diff 02 03, ./flashsteps theorem2, ./flashsteps run 03 --on vgpu\n";
}

// ---- JSON

Json checks_json(const std::vector<OutputCheck>& checks) {
  Json json = Json::object();
  for (const OutputCheck& c : checks)
    json[c.name] = {{"error", json_number(c.error)},
                    {"baseline", json_number(c.baseline)},
                    {"tolerance", json_number(c.tolerance)},
                    {"worst", c.worst},
                    {"pass", c.pass}};
  return json;
}

Json stops_json(const std::vector<Stop>& stops, Index sram_bytes) {
  Json all = Json::array();
  for (const Stop& s : stops) {
    Json json = {{"stage", s.step.stage->id},      {"change", s.words.change},
                 {"meaning", s.words.why},         {"tiles", blocks_json(s.pass.blocks)},
                 {"check", checks_json(s.checks)}, {"ledger", ledger_json(s.pass.ledger, sram_bytes)}};
    add_closed_form(json, s.law);
    json["ok"] = s.ok();
    all.push_back(json);
  }
  return all;
}

Json json(const Tour& tour, const std::vector<MemoryRow>& memory, const KernelTour& kernels) {
  const Shape& s = tour.inputs.shape;
  const Index sram = tour.config.machine.sram_bytes;
  Json rows = Json::array();
  for (const MemoryRow& r : memory)
    rows.push_back(
        {{"n", r.problem.N},
         {"d", r.problem.d},
         {"dtype", name(r.problem.dtype)},
         {"heads", r.problem.heads},
         {"extra_hbm_bytes", {{"01_materialized", r.materialized}, {"04_recomputed_backward", r.recomputed}}}});
  return {{"problem",
           {{"source", "minilm"},
            {"batch", s.batch},
            {"heads", s.heads},
            {"n", s.Nq},
            {"d", s.d},
            {"dtype", name(tour.inputs.dtype)},
            {"sram_bytes", sram}}},
          {"forward", stops_json(tour.forward, sram)},
          {"backward", stops_json(tour.backward, sram)},
          {"memory", rows},
          {"kernels", json(kernels)}};
}

int run_tour(bool as_json) {
  const Tour tour = make_tour();
  const std::vector<MemoryRow> memory = memory_arithmetic();
  const KernelTour kernels = make_kernel_tour();
  if (as_json)
    print_json(json(tour, memory, kernels));
  else
    print(text(tour, memory, kernels));
  const bool stages_ok = std::ranges::all_of(tour.forward, &Stop::ok) && std::ranges::all_of(tour.backward, &Stop::ok);
  return stages_ok && kernels.ok() ? ok : check_failed;
}

}  // namespace

void add_tour(CLI::App& program, int& status) {
  const auto as_json = std::make_shared<bool>(false);
  CLI::App* tour = program.add_subcommand("tour", "the stages on real Q, K, V: errors, traffic, memory, what changed");
  tour->add_flag("--json", *as_json, "one JSON document (docs/schema/tour.schema.json)");
  tour->callback([as_json, &status] { status = run_tour(*as_json); });
}

}  // namespace flash::app

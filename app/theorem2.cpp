// `theorem2`: HBM traffic is Θ(N²d²/M), shown by running the stages' loops, count-only, at many N, d and M.
#include "sim/theory/theorem2.hpp"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "app/child.hpp"
#include "app/commands.hpp"
#include "app/equal_memory.hpp"
#include "app/lesson.hpp"
#include "app/output.hpp"
#include "app/table.hpp"
#include "sim/theory/plot.hpp"
#include "sim/theory/published.hpp"
#include "stages/common/npy.hpp"

namespace flash::app {

namespace {

using Json = nlohmann::ordered_json;
using theory::Crossover;
using theory::Recovered;
using theory::ScheduleResult;
using theory::Theorem2;
using theory::Walker;

/// Walks a step in fp32, M elements being 4·M bytes, in the paper's blocks or in those that `blocks` gives. One thread:
/// the points take the others.
Walker walker(const Step& step, Blocks (*blocks)(Index M, Index d) = nullptr) {
  return [program = step.program(), blocks](Index N, Index d, Index M) {
    Options options;
    if (blocks) options.br = blocks(M, d).Br, options.bc = blocks(M, d).Bc;
    Inputs inputs;
    inputs.shape = {1, 1, 1, N, N, d, d};
    const Problem<float> problem(inputs);
    Machine<float> machine({.sram_bytes = 4 * M, .budget = sim::Budget::paper, .count_only = true, .threads = 1});
    program.run(problem, options, machine);
    return machine.ledger().elements();
  };
}

Walker forward(std::string_view stage) { return walker({&find_stage(stage), Direction::forward}); }
Walker backward(std::string_view stage) { return walker({&find_stage(stage), Direction::backward}); }

Blocks algorithm_1(Index M, Index d) { return theory::paper_blocks(M, d); }
Blocks all_for_K_and_V(Index M, Index d) { return {1, M / (2 * d)}; }
Blocks all_for_Q_and_O(Index M, Index d) { return {M / (2 * d), 1}; }

theory::Compared compared() { return {forward("03"), forward("01"), forward("02")}; }

theory::Tested tested() {
  const Step fa1{&find_stage("03"), Direction::forward}, fa2{&find_stage("05a"), Direction::forward};
  return {.schedules = {{"03_forward", walker(fa1), {12, 16, 3, 2}},
                        {"04_forward", forward("04"), {12, 8, 3, 1}},
                        {"04_backward", backward("04"), {20, 4, 7, 0}},
                        theory::algorithm_4_schedule(),
                        {"05_forward", walker(fa2), {8, 0, 2, 1}},
                        {"05_backward", backward("05a"), {16, 8, 9, 1}}},
          .one_sided = {{"03_forward_one_sided", walker(fa1, all_for_K_and_V), {6, 8, 3, 2}, theory::one_sided_visits},
                        {"05_forward_one_sided", walker(fa2, all_for_Q_and_O), {4, 0, 2, 1}, theory::one_sided_visits}},
          .control = {"fa2_order_with_algorithm_1_blocks", walker(fa2, algorithm_1), {8, 0, 2, 1}},
          .compared = compared()};
}

// ---- the figure

void require_gnuplot() {
  if (!run_child({"gnuplot", "--version"}).started)
    throw Refused(
        "a plot was asked for, but gnuplot is not installed; install the package gnuplot-nox, or leave out --plot");
}

/// `svg` is written whole or not at all.
void plot(const std::filesystem::path& svg) {
  if (svg.extension() != ".svg")
    throw Refused(
        fmt::format("a plot in \"{}\" was asked for, but plots are SVG; give a name that ends in .svg", svg.string()));
  require_gnuplot();
  // 04's forward pass is left out: it would lie on 03.
  const auto figure = theory::traffic_figure(
      {{"02 tiling", forward("02")}, {"03 online softmax", forward("03")}, {"05a loop swap", forward("05a")}},
      compared());
  const Child gnuplot = run_child({"gnuplot"}, theory::gnuplot_script(figure, "/dev/stdout"));
  if (!gnuplot.started || gnuplot.status != 0 || !gnuplot.output.ends_with("</svg>\n\n"))
    throw Refused(
        fmt::format("a plot was asked for, but gnuplot ended with status {} and said \"{}\"; mend its installation, or "
                    "leave out --plot",
                    gnuplot.status, one_line(gnuplot.complaints)));
  write_file(svg.string(), gnuplot.output);
}

// ---- text

std::string coefficient(const Recovered& s, std::size_t i) {
  const double value = s.coefficients[i] + 0.0;  // −0 becomes 0
  return s.exact ? fmt::format("{:.0f}", value) : fmt::format("{:.3g}", value);
}

std::string residual(const Recovered& s) { return s.exact ? "exact" : fmt::format("{:.1e}", s.residual); }

void add_row(Table& table, const std::string& name, const ScheduleResult& s, const std::string& verdict) {
  table.row({name, coefficient(s, 0), coefficient(s, 1), coefficient(s, 2), coefficient(s, 3), residual(s),
             fmt::format("{:.2f}…{:.2f}", s.ratio_min, s.ratio_max),
             fmt::format("{:.2f}…{:.2f}", s.proved_min, s.proved_max), fmt::format("{}", s.outside_sandwich),
             fmt::format("{:.3f}", s.exponent_N), fmt::format("{:.3f}", s.exponent_d),
             fmt::format("{:.3f}", s.exponent_M), fmt::format("{}", s.points), verdict});
}

Table schedule_table() {
  Table table;
  table.column("schedule", "", Table::Align::left);
  for (const char* term : {"N²d²/M", "N²d/M", "Nd", "N"}) table.column(term);
  table.column("residual").column("count·M/N²d²").column("proved bounds").column("out");
  table.column("N^", "2±.03").column("d^", "2±.03").column("M^", "-1±.03");
  table.column("points").column("", "", Table::Align::left);
  return table;
}

std::string schedules_text(const Theorem2& t) {
  Table table = schedule_table();
  for (const ScheduleResult& s : t.schedules) add_row(table, s.name, s, s.ok() ? "ok" : "FAILS");
  std::string failed;
  for (const ScheduleResult& s : t.schedules)
    if (s.coefficients != s.law)
      failed += fmt::format("{} should have {:g}, {:g}, {:g}, {:g}.\n", s.name, s.law[0], s.law[1], s.law[2], s.law[3]);
  return table.text() + failed;
}

// ---- which side stays, and in what blocks

struct Limit {
  const char *stays, *blocks;
  const Recovered* law;
};

const Recovered& named(const Theorem2& t, std::string_view name) {
  for (const ScheduleResult& s : t.schedules)
    if (s.name == name) return s;
  for (const Recovered& s : t.one_sided)
    if (s.name == name) return s;
  throw std::invalid_argument(fmt::format("{} was not walked", name));
}

std::array<Limit, 4> limits(const Theorem2& t) {
  return {{{"K, V (FA1's order)", "Bc = M/4d, Br = min(Bc, d)", &named(t, "03_forward")},
           {"Q, O (FA2's order)", "Br = M/4d, Bc = min(Br, d)", &named(t, "05_forward")},
           {"K, V (FA1's order)", "Bc = M/2d, Br = 1", &named(t, "03_forward_one_sided")},
           {"Q, O (FA2's order)", "Br = M/2d, Bc = 1", &named(t, "05_forward_one_sided")}}};
}

/// How many times larger the a-th limit is than the b-th.
double over(const std::array<Limit, 4>& all, std::size_t a, std::size_t b) {
  return all[a].law->coefficients[0] / all[b].law->coefficients[0];
}

std::string limits_text(const Theorem2& t) {
  Table table;
  table.column("what stays in SRAM", "", Table::Align::left).column("blocks", "", Table::Align::left);
  table.column("walked", "", Table::Align::left);
  for (const char* term : {"N²d²/M", "N²d/M", "Nd", "N"}) table.column(term);
  table.column("residual").column("", "", Table::Align::left);
  const auto all = limits(t);
  for (const auto& [stays, blocks, law] : all)
    table.row({stays, blocks, law->name, coefficient(*law, 0), coefficient(*law, 1), coefficient(*law, 2),
               coefficient(*law, 3), residual(*law), law->met() ? "ok" : "FAILS"});
  return table.text() +
         paragraph("",
                   fmt::format(
                       "The order of the loops gives {:g} in the paper's blocks and {:g} in the others: 3Nd or 2Nd "
                       "elements in a turn. All of M for the side that stays gives {:g} and {:g}: half as many turns.",
                       over(all, 0, 1), over(all, 2, 3), over(all, 0, 2), over(all, 1, 3)),
                   columns);
}

Json limits_json(const Theorem2& t) {
  const auto all = limits(t);
  Json rows = Json::array();
  for (const auto& [stays, blocks, law] : all)
    rows.push_back({{"schedule", law->name}, {"stays", stays}, {"blocks", blocks}, {"constant", law->coefficients[0]}});
  return {{"rows", rows},
          {"loop_order", {over(all, 0, 1), over(all, 2, 3)}},
          {"all_of_M", {over(all, 0, 2), over(all, 1, 3)}}};
}

// ---- the negative control

std::string control_text(const Theorem2& t) {
  Table table = schedule_table();
  add_row(table, "capped_br", t.negative_control, "");
  return paragraph("",
                   "Predict, then run: FA2's order of loops in Algorithm 1's blocks. Bc = ⌈M/4d⌉ grows with M, Br = "
                   "min(Bc, d) "
                   "stops at d. Take N = 1024, d = 64 and M = 4d², 8d², 16d². How many elements does each M take in "
                   "these blocks, "
                   "and how many with the roles swapped? Does Theorem 2 hold? Then run",
                   columns) +
         "  ./flashsteps run 05a --n 1024 --d 64 --count-only --sram 64KiB --br 64 --bc 64\n"
         "and with --sram 128KiB --bc 128, with --sram 256KiB --bc 256; without --br and --bc the roles are swapped.\n"
         "Over all points, held to 05_forward's law:\n" +
         table.text() +
         (t.failed_as_it_must()
              ? "It fails, as it must: K and V go by once for every d rows, 2N² elements, however large M is.\n"
              : "It does NOT fail: the tests above see nothing.\n");
}

std::string crossover_text(const Theorem2& t) {
  Table table;
  table.column("03 moves less than", "", Table::Align::left).column("N").column("d").column("from M", "elements");
  table.column("M/d²").column("03 there", "elements").column("the other", "elements").column("floor 4Nd", "elements");
  const auto row = [&](const char* other, const Crossover& c) {
    const bool found = c.M != 0;
    table.row({other, grouped(c.N), grouped(c.d), found ? grouped(c.M) : "nowhere",
               found ? fmt::format("{:.2f}", static_cast<double>(c.M) / static_cast<double>(c.d * c.d)) : "",
               found ? grouped(c.first) : "", found ? grouped(c.second) : "", grouped(4 * c.N * c.d)});
  };
  for (const Crossover& c : t.against_materialized) row("01 materialized", c);
  row("02 tiling", t.against_tiled);
  return table.text() +
         fmt::format(
             "Against 01 near M = 3d², where 12N²d²/M = 4N². Against 02 from M = 4d on, its smallest, when N >= {} "
             "(d = {}).\nThe floor: Q, K, V read once, O written once.\n",
             t.tiled_from_N, t.against_tiled.d);
}

std::string gigabytes(Index bytes) { return fmt::format("{:.2f}", static_cast<double>(bytes) / 1e9); }

std::string published_text() {
  std::string all;
  for (const theory::PublishedFigure& f : theory::published_figures()) {
    Table table;
    table.column(fmt::format("printed: {} GB", f.printed_GB), "", Table::Align::left);
    table.column("read", "GB").column("written", "GB").column("sum", "GB").column("off by");
    for (const theory::Accounting& a : f.accountings)
      table.row({a.name, gigabytes(a.read), gigabytes(a.write), gigabytes(a.total()),
                 fmt::format("{:+.1f}%", 100 * f.deviation(a))});
    all += "\n" + paragraph("", f.source, columns) + table.text() + paragraph("", f.remark, columns);
  }
  return all;
}

std::string text(const Theorem2& t) {
  return paragraph(
             "",
             "Theorem 2: with an SRAM of M elements, d <= M <= Nd, HBM traffic is Θ(N²d²/M). Each count below was made "
             "by running a schedule's loops on one head. Coefficients: least squares over points where 4d | M and "
             "M/4d | N. Bounds: any points with 4d <= M <= Nd, each held to its own two; \"out\" are those outside. "
             "Exponents: log-log least squares over N = 2^11 … 2^16; d's is low by the terms of l, m, LSE.",
             columns) +
         "\n" + schedules_text(t) + "\nThe limiting constants\n" + limits_text(t) + "\n" + control_text(t) +
         "\nEqual memory: what the order of the loops gives, and what the shape of the blocks\n" +
         to_text(equal_memory()) + "\nCrossovers\n" + crossover_text(t) +
         "\nPublished traffic beside named accountings, computed here\n" + published_text();
}

// ---- JSON

Json published_json() {
  Json figures = Json::array();
  for (const theory::PublishedFigure& f : theory::published_figures()) {
    Json accountings = Json::array();
    for (const theory::Accounting& a : f.accountings)
      accountings.push_back({{"name", a.name},
                             {"read_bytes", a.read},
                             {"write_bytes", a.write},
                             {"bytes", a.total()},
                             {"measured", a.measured},
                             {"deviation", f.deviation(a)}});
    figures.push_back(
        {{"source", f.source}, {"printed_GB", f.printed_GB}, {"accountings", accountings}, {"remark", f.remark}});
  }
  return figures;
}

struct Typed {
  bool full = false, json = false;
  std::string plot;
};

int run_theorem2(const Typed& typed) {
  if (!typed.plot.empty()) plot(typed.plot);
  const Theorem2 result = theory::theorem2(tested(), {.full = typed.full});
  if (typed.json) {
    Json json = theory::to_json(result);
    json["limiting_constants"] = limits_json(result);
    json["equal_memory"] = to_json(equal_memory());
    json["published"] = published_json();
    json["ok"] = result.ok();
    print_json(json);
  } else {
    print(text(result));
  }
  return result.ok() ? ok : check_failed;
}

}  // namespace

void add_theorem2(CLI::App& program, int& status) {
  const auto typed = std::make_shared<Typed>();
  CLI::App* command = program.add_subcommand(
      "theorem2", "counts against closed forms: recovered coefficients, sandwich, exponents, negative control");
  command->add_flag("--full", typed->full, "walk every point (minutes), not only those up to 250,000 tiles");
  command->add_option("--plot", typed->plot, "write traffic against M to this SVG file");
  command->add_flag("--json", typed->json, "one JSON document (docs/schema/theorem2.schema.json)");
  command->callback([typed, &status] { status = run_theorem2(*typed); });
}

}  // namespace flash::app

// `theorem2`: HBM traffic is Θ(N²d²/M), shown by running the stages' loops, count-only, at many N, d and M.
#include "sim/theory/theorem2.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "app/child.hpp"
#include "app/commands.hpp"
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
using theory::ScheduleResult;
using theory::Theorem2;
using theory::Walker;

/// Walks a step in fp32, M elements being 4·M bytes, with Algorithm 1's blocks. One thread: the points take the others.
Walker walker(const Step& step) {
  return [program = step.program()](Index N, Index d, Index M) {
    Inputs inputs;
    inputs.shape = {1, 1, 1, N, N, d, d};
    const Problem<float> problem(inputs);
    Machine<float> machine({.sram_bytes = 4 * M, .budget = sim::Budget::paper, .count_only = true, .threads = 1});
    program.run(problem, Options{}, machine);
    return machine.ledger().elements();
  };
}

Walker forward(std::string_view stage) { return walker({&find_stage(stage), Direction::forward}); }
Walker backward(std::string_view stage) { return walker({&find_stage(stage), Direction::backward}); }

std::vector<theory::Schedule> schedules() {
  return {{"03_forward", forward("03"), {12, 16, 3, 2}},
          {"04_forward", forward("04"), {12, 8, 3, 1}},
          {"04_backward", backward("04"), {20, 4, 7, 0}},
          theory::algorithm_4_schedule()};
}

theory::Compared compared() { return {forward("03"), forward("01"), forward("02")}; }

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
  const auto figure =
      theory::traffic_figure({{"02 tiling", forward("02")}, {"03 online softmax", forward("03")}}, compared());
  const Child gnuplot = run_child({"gnuplot"}, theory::gnuplot_script(figure, "/dev/stdout"));
  if (!gnuplot.started || gnuplot.status != 0 || !gnuplot.output.ends_with("</svg>\n\n"))
    throw Refused(
        fmt::format("a plot was asked for, but gnuplot ended with status {} and said \"{}\"; mend its installation, or "
                    "leave out --plot",
                    gnuplot.status, one_line(gnuplot.complaints)));
  write_file(svg.string(), gnuplot.output);
}

// ---- text

std::string coefficient(const ScheduleResult& s, std::size_t i) {
  const double value = s.coefficients[i] + 0.0;  // −0 becomes 0
  return s.exact ? fmt::format("{:.0f}", value) : fmt::format("{:.3g}", value);
}

void add_row(Table& table, const std::string& name, const ScheduleResult& s, const std::string& verdict) {
  table.row({name, coefficient(s, 0), coefficient(s, 1), coefficient(s, 2), coefficient(s, 3),
             s.exact ? "exact" : fmt::format("{:.1e}", s.residual),
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

std::string control_text(const Theorem2& t) {
  Table table = schedule_table();
  add_row(table, "capped_br", t.negative_control, "");
  return table.text() +
         (t.failed_as_it_must() ? "It fails, as it must.\n" : "It does NOT fail: the tests above see nothing.\n");
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
             "Bc | N. Bounds: any points with 4d <= M <= Nd, each held to its own two; \"out\" are those outside. "
             "Exponents: log-log least squares over N = 2^11 … 2^16; d's is low by the terms of l, m, LSE.",
             columns) +
         "\n" + schedules_text(t) +
         "\nNegative control: FA2's order of loops with Algorithm 1's blocks, whose Br = min(⌈M/4d⌉, d) stops growing "
         "at d\n" +
         control_text(t) + "\nCrossovers\n" + crossover_text(t) +
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
  const Theorem2 result = theory::theorem2(schedules(), compared(), {.full = typed.full});
  if (typed.json) {
    Json json = theory::to_json(result);
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
  command->add_flag("--full", typed->full, "walk every point (minutes), not only those up to a million tiles");
  command->add_option("--plot", typed->plot, "write traffic against M to this SVG file");
  command->add_flag("--json", typed->json, "one JSON document (docs/schema/theorem2.schema.json)");
  command->callback([typed, &status] { status = run_theorem2(*typed); });
}

}  // namespace flash::app

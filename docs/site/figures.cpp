// Prints a figure of the site as HTML: figures NAME; without a name, their names. Each is made of runs of the stages.
#include <fmt/format.h>

#include <fstream>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>

#include "app/counted.hpp"
#include "app/equal_memory.hpp"
#include "app/output.hpp"
#include "sim/theory/closed_forms.hpp"
#include "sim/trace/svg.hpp"
#include "stages/common/draw.hpp"
#include "stages/common/oracle.hpp"

namespace {

using namespace flash;
using app::StatedProblem;
using app::Step;
using trace::Curve;

struct Figure {
  std::string svg, caption;
};

// ---- counted traffic, as curves

Step step(const char* stage, Direction direction = Direction::forward) { return {&find_stage(stage), direction}; }

StatedProblem problem(Index N, Index M) {
  StatedProblem p;
  p.N = N;
  p.sram_bytes = M * bytes_per_element(p.dtype);
  return p;
}

Index closed_form(const Step& of, const StatedProblem& p, const Pass& pass) {
  const Blocks blocks = pass.blocks.value_or(Blocks{p.N, p.N});
  return theory::closed_form(of.facts().law, p.inputs().shape, p.dtype, {}, blocks.Br, blocks.Bc)->traffic.elements();
}

/// The HBM traffic of the stages up to 03, counted (lines) and by closed forms (marks), where `x` is N or M. 04's would
/// hide 03's: it differs by a few numbers a row.
std::vector<Curve> traffic(const std::vector<std::pair<Index, StatedProblem>>& points) {
  std::vector<Curve> curves;
  Curve forms{"closed forms", {}, true};
  for (const Stage& stage : stages()) {
    if (stage.number() > "03") break;
    const Step of{&stage, Direction::forward};
    Curve counted{fmt::format("{} {}", stage.number(), stage.title), {}};
    for (const auto& [x, p] : points) {
      const Pass pass = app::count(of, p);
      counted.points.emplace_back(x, pass.ledger.elements());
      forms.points.emplace_back(x, closed_form(of, p, pass));
    }
    curves.push_back(counted);
  }
  curves.push_back(forms);
  return curves;
}

Figure traffic_over_N() {
  std::vector<std::pair<Index, StatedProblem>> points;
  for (Index N = 256; N <= 16384; N *= 2) points.emplace_back(N, problem(N, 65536));
  return {
      trace::plot_svg({"HBM traffic of one head, d = 64, M = 65,536", "N", "HBM elements", traffic(points)}),
      "Counted by running the stages' loops. 01 and 02 grow as N²; 03 as N²d²/M, and as N while a few tiles hold all "
      "keys."};
}

Figure traffic_over_M() {
  constexpr Index N = 1024, d = 64;
  std::vector<std::pair<Index, StatedProblem>> points;
  for (Index M = 4 * d; M <= 4 * N * d; M *= 2) points.emplace_back(M, problem(N, M));
  return {
      trace::plot_svg({fmt::format("HBM traffic of one head, N = {}, d = {}", N, d), "M [elements]", "HBM elements",
                       traffic(points)}),
      fmt::format("Counted by running the stages' loops. 03 falls as 1/M and crosses 01 near M = 3d² = {}; 01 takes "
                  "its SRAM to be as large as it needs, 02 has to live with M.",
                  app::grouped(3 * d * d))};
}

/// What the order of the loops gives, and what the shape of the blocks.
Figure equal_memory() {
  const app::EqualMemory found = app::equal_memory();
  const auto& [N, d, M] = found.problem;
  trace::Bars bars{fmt::format("HBM elements of forward passes in the same SRAM: one head, N = {}, d = {}, M = {}",
                               app::grouped(N), d, app::grouped(M)),
                   {}};
  for (std::size_t n = 0; n < found.passes.size(); ++n) {
    const auto& [name, stage, shape] = app::contenders()[n];
    const Index elements = found.passes[n].ledger.elements();
    const std::size_t kind = stage < "03" ? 4 : stage < "05" ? 1 : 0;
    bars.bars.push_back({name, fmt::format("{} = {:.2f} × 05a's", app::grouped(elements), found.over_05(n)),
                         static_cast<double>(elements), kind});
  }
  return {trace::bars_svg(bars),
          fmt::format("Counted by running the stages' loops in fp32, in the largest blocks that fit. The order of the "
                      "loops gives {:.2f}, the shape of the blocks {:.2f}, all of M for the side that stays {:.2f} "
                      "more. 01 takes the SRAM that it needs.",
                      found.order, found.shape, found.all_of_M[1])};
}

/// The same over M, by loop order and shape.
Figure order_and_shape() {
  app::MemoryProblem p;
  const auto leading = static_cast<double>(p.N * p.N * p.d * p.d);
  std::vector<Curve> curves;
  for (const app::Contender& c : app::contenders()) {
    if (c.stage < "03" || c.stage == "04") continue;  // 04 would hide 03
    curves.push_back({c.name, {}});
    for (p.M = p.d * p.d; p.M <= p.N * p.d / 2; p.M *= 2) {
      const auto elements = static_cast<double>(app::count_within(p, c).ledger.elements());
      curves.back().points.emplace_back(p.M, elements * static_cast<double>(p.M) / leading);
    }
  }
  return {trace::plot_svg(
              {fmt::format("Order of loops and shape of blocks: N = {}, d = {}, all within M", app::grouped(p.N), p.d),
               "M [elements]", "HBM elements, in units of N²d²/M", curves}),
          "A level curve keeps to Theorem 2, until at the right what has to move once shows. In Algorithm 1's blocks "
          "FA2's order leaves it: Q and O stay d rows at a time, however large M is."};
}

Figure traffic_01() {
  Curve scores{"S and P", {}}, others{"Q, K, V and O", {}};
  for (Index N = 64; N <= 16384; N *= 2) {
    std::map<std::string, Index> moved;
    const Pass pass = app::count(step("01"), problem(N, 65536));
    for (const auto access : {sim::Access::read, sim::Access::write})
      for (const auto& [tensor, elements] : pass.ledger.by_tensor(access)) moved[tensor] += elements;
    scores.points.emplace_back(N, moved["S"] + moved["P"]);
    others.points.emplace_back(N, moved["Q"] + moved["K"] + moved["V"] + moved["O"]);
  }
  return {trace::plot_svg({"What stage 01 moves: one head, d = 64", "N", "HBM elements", {scores, others}}),
          "Beyond N = d nearly all traffic is S and P, which nobody asked for: they go to HBM only to come back."};
}

/// HBM that the forward pass leaves for the backward pass, beyond Q, K, V and O.
Figure kept_04() {
  Curve kept_01{"01: P", {}}, kept_04{"04: LSE", {}};
  for (Index N = 256; N <= 65536; N *= 4) {
    const auto bytes = [&](const char* stage, const char* tensor) {
      const Pass pass = app::count(step(stage), problem(N, 1 << 20), Blocks{1024, 1024});
      const sim::TensorInfo& info = pass.ledger.extra_hbm().at(tensor);
      return static_cast<double>(info.elements() * bytes_per_element(info.format));
    };
    kept_01.points.emplace_back(N, bytes("01", "P"));
    kept_04.points.emplace_back(N, bytes("04", "LSE"));
  }
  return {
      trace::plot_svg({"Kept from the forward to the backward pass: one head, fp16", "N", "bytes", {kept_01, kept_04}}),
      "One number a row instead of a matrix."};
}

// ---- the order in which tiles are visited

/// A grid with one cell a tile, numbered in the order of `is_visit`'s events.
trace::Matrix order(const char* stage, const std::string& title, bool causal,
                    const std::function<bool(const sim::Event&)>& is_visit) {
  constexpr Index N = 16, B = 4, T = N / B;
  trace::Matrix matrix{title, T, T};
  matrix.masked.assign(T * T, true);
  matrix.texts.assign(T * T, "");
  matrix.values.assign(T * T, 0);
  Index visits = 0;
  RunConfig config;
  config.observer = [&](const sim::Event& e) {
    if (!is_visit(e)) return;
    const Index at = e.rows.begin / B * T + e.cols.begin / B;
    if (!matrix.texts[at].empty()) return;  // S is P, too, once it was made
    matrix.texts[at] = std::to_string(++visits);
    matrix.masked[at] = false;
    matrix.values[at] = static_cast<double>(visits);
  };
  Options options;
  options.causal = causal;
  options.br = options.bc = B;
  run(find_stage(stage), draw_inputs({1, 1, 1, N, N, 8, 8}, Format::fp32, 0), options, config);
  return matrix;
}

bool is(const sim::Event& e, sim::EventKind kind, std::string_view name) { return e.kind == kind && e.name == name; }

Figure order_02() {
  using enum sim::EventKind;
  return {trace::matrices_svg({order("02", "pass scores", false, [](const auto& e) { return is(e, store, "S"); }),
                               order("02", "pass softmax", false, [](const auto& e) { return is(e, store, "P"); }),
                               order("02", "pass output", false, [](const auto& e) { return is(e, load, "P"); })}),
          "When each tile of S or P is written (scores, softmax) or read (output): a cell is a tile, queries down, "
          "keys across; "
          "N = 16, tiles of 4 × 4. Each pass goes by rows of tiles."};
}

Figure order_03() {
  const auto computed = [](const sim::Event& e) { return is(e, sim::EventKind::compute, "S"); };
  return {trace::matrices_svg({order("03", "all keys", false, computed), order("03", "causal", true, computed)}),
          "When each tile of S is made: a cell is a tile, queries down, keys across; N = 16, tiles of 4 × 4. A tile of "
          "keys stays "
          "while all queries pass; with a causal mask the hatched tiles are never made, loaded or stored."};
}

// ---- who holds the SRAM

/// Lanes of the tiles that the first worker holds, from the first visit to the end of the second.
Figure sram(const char* stage, Direction direction, const std::string& title) {
  constexpr Index N = 128, d = 64, M = 4 * d * d;
  struct Held {
    std::string name;
    double since;
  };
  std::map<const void*, Held> held;
  std::vector<trace::Lane> lanes;
  const auto lane = [&](const std::string& name) -> trace::Lane& {
    for (trace::Lane& l : lanes)
      if (l.name == name) return l;
    return lanes.emplace_back(trace::Lane{name, {}});
  };
  double now = 0;
  Index peak = 0;
  RunConfig config;
  config.machine.sram_bytes = M * 4;
  config.backward = direction == Direction::backward;
  bool in_pass = direction == Direction::forward;
  config.observer = [&](const sim::Event& e) {
    if (is(e, sim::EventKind::load, "dO")) in_pass = true;
    if (!in_pass) return;
    ++now;
    if (e.kind == sim::EventKind::take) held[e.values.data] = {e.name, now};
    peak = std::max(peak, e.held_bytes);
    if (e.kind != sim::EventKind::give_back || !held.contains(e.values.data)) return;
    const Held& tile = held[e.values.data];
    const double bytes = static_cast<double>(e.values.rows * e.values.cols) * 4;
    lane(tile.name).spans.push_back({bytes >= 4096 ? "a matrix" : "a number a row", tile.since, now,
                                     fmt::format("{}: {} bytes", tile.name, bytes)});
    held.erase(e.values.data);
  };
  run(find_stage(stage), draw_inputs({1, 1, 1, N, N, d, d}, Format::fp32, 0), {}, config);
  return {trace::timeline_svg({title, "events of the run", lanes}),
          fmt::format("Which tiles are in SRAM when: one head, N = {}, d = {}, fp32, M = 4d² = {}, Algorithm 1's "
                      "blocks; P is S under "
                      "a new name. At the fullest {:.2f} M are held.",
                      N, d, M, static_cast<double>(peak) / static_cast<double>(M * 4))};
}

Figure sram_03() { return sram("03", Direction::forward, "SRAM of stage 03"); }

// ---- the hand example

Figure hand() {
  const Inputs in = example_hand(Format::fp64);
  Options options;
  options.scale = 1;
  const OracleRules rules(in, options);
  trace::Matrix S{"S = Q·Kᵀ", 4, 4}, P{"P = softmax(S)", 4, 4};
  for (Index i = 0; i < 4; ++i) {
    const SoftmaxRow row = softmax_row(rules, 0, 0, i);
    S.values.insert(S.values.end(), row.s.begin(), row.s.end());
    P.values.insert(P.values.end(), row.p.begin(), row.p.end());
  }
  const auto matrix = [](const char* name, const std::vector<double>& values) {
    trace::Matrix m{name, 4, 2};
    m.values = values;
    return m;
  };
  return {trace::matrices_svg({matrix("Q", in.q), matrix("K", in.k), matrix("V", in.v)}) + "<br>" +
              trace::matrices_svg({S, P, matrix("O = P·V", oracle(in, options, false).o)}),
          "The hand example of all lessons: N = 4, d = 2, scale = 1."};
}

// ---- the roofs

/// FLOP/s that were measured on a card over FLOPs a byte that are counted here, under what the card can do.
Figure roofs() {
  const auto read = [](const char* file) {
    return nlohmann::json::parse(std::ifstream(std::string(FLASH_SOURCE_DIR "/docs/") + file));
  };
  const nlohmann::json card = read("site/h200.json"), measured = read("measured/h200-2026-11-30.json");
  const nlohmann::json* largest = nullptr;
  for (const auto& run : measured["runs"])
    if (run.contains("rows") && !run["problem"]["causal"] && !run["problem"]["backward"] && run["problem"]["d"] == 64 &&
        (!largest || run["flops"] > (*largest)["flops"]))
      largest = &run;
  const Index N = (*largest)["problem"]["n"];
  const double bandwidth = card["hbm_bytes_per_second"], peak = card["fp16_flops_per_second"];
  std::vector<Curve> curves{{fmt::format("HBM: {:g} TB/s", bandwidth / 1e12), {}},
                            {fmt::format("tensor cores: {:g} TFLOP/s", peak / 1e12), {}}};
  for (double x = 8; x <= 512; x *= 2) curves[0].points.emplace_back(x, x * bandwidth / 1e12);
  for (double x = 8; x <= 512; x *= 2) curves[1].points.emplace_back(x, peak / 1e12);
  for (const auto& row : (*largest)["rows"]) {
    const Step of = step(row["stage"].get<std::string>().c_str());
    const Blocks tiles{row["tiles"]["br"], row["tiles"]["bc"]};
    const Pass pass = app::count(of, problem(N, 65536), tiles);
    const double flops = 4.0 * N * N * 64;
    curves.push_back({fmt::format("{}", of.stage->number()),
                      {{flops / static_cast<double>(pass.ledger.bytes()), row["tflops"]}},
                      true});
  }
  return {
      trace::plot_svg({"Forward kernels under the roofs of an H200: d = 64, fp16", "FLOPs a byte of HBM, counted",
                       "TFLOP/s, measured", curves}),
      fmt::format("Measured {} with {} heads of N = {}; the bytes are the ledger's, before any cache. Roofs: {}, {}.",
                  (*largest)["date"].get<std::string>().substr(0, 10),
                  (*largest)["problem"]["batch"].get<Index>() * (*largest)["problem"]["heads"].get<Index>(), N,
                  card["source"].get<std::string>(), card["date"].get<std::string>())};
}

const std::map<std::string, std::function<Figure()>> figures = {{"hand", hand},
                                                                {"traffic_01", traffic_01},
                                                                {"order_02", order_02},
                                                                {"order_03", order_03},
                                                                {"sram_03", sram_03},
                                                                {"traffic_over_N", traffic_over_N},
                                                                {"kept_04", kept_04},
                                                                {"traffic_over_M", traffic_over_M},
                                                                {"roofs", roofs},
                                                                {"equal_memory", equal_memory},
                                                                {"order_and_shape", order_and_shape}};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    for (const auto& [name, make] : figures) std::cout << name << "\n";
    return 0;
  }
  const auto found = figures.find(argv[1]);
  if (found == figures.end()) {
    std::cerr << fmt::format("figure {} was asked for, but there is none of that name; without a name all are listed\n",
                             argv[1]);
    return 2;
  }
  const Figure figure = found->second();
  std::cout << "<figure>" << figure.svg << "<figcaption>" << figure.caption << "</figcaption></figure>\n";
}

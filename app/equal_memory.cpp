#include "app/equal_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/output.hpp"
#include "app/table.hpp"
#include "sim/theory/closed_forms.hpp"

namespace flash::app {

namespace {

constexpr Format dtype = Format::fp32;

Blocks keys_long(Index B, Index d) { return {std::min(B, d), B}; }
Blocks keys_alone(Index B, Index) { return {1, B}; }
Blocks queries_alone(Index B, Index) { return {B, 1}; }

/// Where contenders() has those that are divided by each other.
enum { fa1 = 2, fa2_capped = 4, fa2, fa1_alone, fa2_alone };

Blocks largest(const MemoryProblem& p, const Contender& c) {
  const Program& program = find_stage(c.stage).forward;
  const auto fits = [&](Index B) {
    const Blocks blocks = c.shape(B, p.d);
    const Index e = bytes_per_element(dtype);
    return program.sram_bytes({blocks.Br, blocks.Bc, p.d, p.d, e, e, 0, 0}) <= p.M * e;
  };
  Index B = 1;
  for (Index step = Index(1) << 24; step > 0; step /= 2)
    if (fits(B + step)) B += step;
  return c.shape(B, p.d);
}

/// How often the side that moves goes by, once for each block of the side that stays: K and V up to 04, then Q and O.
Index turns(const EqualMemory& found, std::size_t n) {
  const Blocks& blocks = found.passes[n].blocks.value();
  const bool keys_stay = n <= 3 || n == fa1_alone;
  return sim::ceil_div(found.problem.N, keys_stay ? blocks.Bc : blocks.Br);
}

double elements(const EqualMemory& found, std::size_t n) {
  return static_cast<double>(found.passes[n].ledger.elements());
}

std::string law(const EqualMemory& found, std::size_t n) {
  const auto& [N, d, M] = found.problem;
  const Blocks blocks = found.passes[n].blocks.value_or(Blocks{1, 1});
  const std::string& name = find_stage(contenders()[n].stage).forward_facts.law;
  return theory::closed_form(name, {1, 1, 1, N, N, d, d}, dtype, {}, blocks.Br, blocks.Bc).value().text;
}

/// The count in units of N²d²/M.
double in_units(const EqualMemory& found, std::size_t n) {
  const auto N = static_cast<double>(found.problem.N), d = static_cast<double>(found.problem.d);
  return elements(found, n) * static_cast<double>(found.problem.M) / (N * N * d * d);
}

}  // namespace

const std::vector<Contender>& contenders() {
  static const std::vector<Contender> all{{"01 materialized, ideal", "01"},
                                          {"02 tiling", "02"},
                                          {"03 K, V stay", "03"},
                                          {"04 K, V stay, one LSE a row", "04"},
                                          {"05a Q, O stay, Algorithm 1's blocks", "05a", keys_long},
                                          {"05a Q, O stay, roles swapped", "05a"},
                                          {"03 K, V stay, all of M for them", "03", keys_alone},
                                          {"05a Q, O stay, all of M for them", "05a", queries_alone}};
  return all;
}

Pass count_within(const MemoryProblem& p, const Contender& c) {
  Inputs inputs;
  inputs.shape = {1, 1, 1, p.N, p.N, p.d, p.d};
  inputs.dtype = dtype;
  Options options;
  if (c.shape) {
    const Blocks blocks = largest(p, c);
    options.br = blocks.Br, options.bc = blocks.Bc;
  }
  RunConfig config;
  config.machine = {
      .sram_bytes = p.M * bytes_per_element(dtype), .budget = sim::Budget::strict, .count_only = true, .threads = 1};
  if (find_stage(c.stage).forward.sram_bytes == nullptr) config.machine.budget = sim::Budget::paper;
  return run(find_stage(c.stage), inputs, options, config).forward;
}

EqualMemory equal_memory(const MemoryProblem& problem) {
  EqualMemory found{problem, {}};
  for (const Contender& c : contenders()) found.passes.push_back(count_within(problem, c));
  const auto over = [&](std::size_t a, std::size_t b) { return elements(found, a) / elements(found, b); };
  found.order = over(fa1, fa2);
  found.shape = over(fa2_capped, fa2);
  found.all_of_M[0] = over(fa1, fa1_alone), found.all_of_M[1] = over(fa2, fa2_alone);
  return found;
}

double EqualMemory::over_05(std::size_t n) const { return elements(*this, n) / elements(*this, fa2); }

std::string to_text(const EqualMemory& found) {
  const auto& [N, d, M] = found.problem;
  Table table;
  table.column("forward pass", "", Table::Align::left).column("Br x Bc").column("turns");
  table.column("law", "", Table::Align::left).column("HBM", "elements").column("count·M/N²d²").column("over 05a's");
  for (std::size_t n = 0; n < found.passes.size(); ++n) {
    const auto& blocks = found.passes[n].blocks;
    table.row({contenders()[n].name, blocks ? fmt::format("{} x {}", blocks->Br, blocks->Bc) : "whole",
               n >= fa1 ? grouped(turns(found, n)) : "", law(found, n), grouped(found.passes[n].ledger.elements()),
               fmt::format("{:.2f}", in_units(found, n)), fmt::format("{:.2f}", found.over_05(n))});
  }
  const std::string order = fmt::format(
      "The order of the loops gives {:.2f}: in a turn 3Nd and the statistics go by where K and V stay (Q in, O in and "
      "out), "
      "2Nd where Q and O stay (K and V in); {} turns and {}.",
      found.order, turns(found, fa1), turns(found, fa2));
  const std::string shape = fmt::format(
      "The shape of the blocks gives {:.2f}: in Algorithm 1's blocks Q and O stay d rows at a time, {} turns. A row "
      "that "
      "stays takes 2d of M, and d of S beside d rows of the other side. With the roles swapped (M − 2d²)/3d rows stay: "
      "2d at "
      "M = 8d², less the statistics. Beside one row of the other side M/2d rows stay, 4d: {:.2f} more, and {:.2f} for "
      "K and "
      "V.",
      found.shape, turns(found, fa2_capped), found.all_of_M[1], found.all_of_M[0]);
  return fmt::format(
             "One head, N = {}, d = {}, M = {} = {:g}d² elements of fp32, strict: every tile counts. 01 takes what "
             "it needs.\n",
             grouped(N), d, grouped(M), static_cast<double>(M) / static_cast<double>(d * d)) +
         table.text() + paragraph("", order, columns) + paragraph("", shape, columns);
}

nlohmann::ordered_json to_json(const EqualMemory& found) {
  nlohmann::ordered_json passes = nlohmann::ordered_json::array();
  for (std::size_t n = 0; n < found.passes.size(); ++n) {
    const auto& blocks = found.passes[n].blocks;
    nlohmann::ordered_json pass{{"name", contenders()[n].name}, {"stage", contenders()[n].stage}, {"tiles", nullptr}};
    if (blocks) pass["tiles"] = {{"br", blocks->Br}, {"bc", blocks->Bc}};
    pass["elements"] = found.passes[n].ledger.elements();
    pass["ratio"] = in_units(found, n);
    passes.push_back(pass);
  }
  const auto& [N, d, M] = found.problem;
  return {{"N", N},
          {"d", d},
          {"M", M},
          {"passes", passes},
          {"order", found.order},
          {"shape", found.shape},
          {"all_of_M", {{"K, V", found.all_of_M[0]}, {"Q, O", found.all_of_M[1]}}}};
}

}  // namespace flash::app

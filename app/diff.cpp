// `diff A B`: what changes in the source from one step to another, and what that does to the traffic of each tensor.
#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "app/child.hpp"
#include "app/commands.hpp"
#include "app/counted.hpp"
#include "app/output.hpp"
#include "app/stage_name.hpp"
#include "app/table.hpp"

namespace flash::app {

namespace {

using Json = nlohmann::ordered_json;

/// HBM traffic of one tensor; a read-modify-write is a read and a write.
struct Traffic {
  Index read = 0, written = 0, bytes_read = 0, bytes_written = 0;
  Index elements() const { return read + written; }
  Index bytes() const { return bytes_read + bytes_written; }

  void add(const Traffic& t) {
    read += t.read;
    written += t.written;
    bytes_read += t.bytes_read;
    bytes_written += t.bytes_written;
  }
};

/// Of the two steps.
struct Pair {
  Traffic a, b;
};

/// One direction of both stages.
struct Comparison {
  Step a, b;
  std::string source_a, source_b;  ///< of the CPU programs, or of the kernels where a step has nothing else
  std::string source;              ///< unified diff; empty where the two are the same but for indentation
  std::optional<Blocks> blocks_a, blocks_b;
  std::map<std::string, Pair> tensors;
  Pair total;
};

std::string source_diff(const std::string& a, const std::string& b) {
  const std::string root = FLASH_SOURCE_DIR "/";
  const Child diff =
      run_child({"diff", "--unified=3", "--ignore-all-space", "--label", a, "--label", b, "--", root + a, root + b});
  if (!diff.started)
    throw Refused("a source diff was asked for, but there is no program diff; install the package diffutils");
  if (diff.status > 1)
    throw Refused(
        fmt::format("a diff of {} and {} was asked for, but the program diff said \"{}\"; keep the program together "
                    "with its sources",
                    a, b, one_line(diff.complaints)));
  return diff.output;
}

void collect(const sim::Ledger& ledger, Traffic Pair::*side, Comparison& c) {
  for (const sim::LedgerLine& line : ledger.lines()) {
    Traffic t;
    if (line.access != sim::Access::write) t.read = line.elements, t.bytes_read = line.bytes;
    if (line.access != sim::Access::read) t.written = line.elements, t.bytes_written = line.bytes;
    (c.tensors[line.tensor].*side).add(t);
    (c.total.*side).add(t);
  }
}

Comparison compare(const Step& a, const Step& b, const StatedProblem& problem) {
  const bool counted = a.on_cpu() && b.on_cpu();
  Comparison c{a, b, counted ? a.source() : a.kernel(), counted ? b.source() : b.kernel(), {}, {}, {}, {}, {}};
  c.source = source_diff(c.source_a, c.source_b);
  if (!counted) return c;
  const Pass pass_a = count(a, problem);
  // The same tiles, where both have any and choose them alike.
  const bool alike = a.program().side == b.program().side;
  const Pass pass_b = count(b, problem, alike ? pass_a.blocks : std::nullopt);
  c.blocks_a = pass_a.blocks;
  c.blocks_b = pass_b.blocks;
  collect(pass_a.ledger, &Pair::a, c);
  collect(pass_b.ledger, &Pair::b, c);
  return c;
}

std::string signed_count(Index n) { return n > 0 ? "+" + grouped(n) : n < 0 ? "−" + grouped(-n) : "0"; }

std::vector<std::string> cells(const std::string& tensor, const Pair& p) {
  return {tensor,
          grouped(p.a.read),
          grouped(p.a.written),
          grouped(p.b.read),
          grouped(p.b.written),
          signed_count(p.b.elements() - p.a.elements()),
          decimal_bytes(p.a.bytes()),
          decimal_bytes(p.b.bytes()),
          signed_count(p.b.bytes() - p.a.bytes())};
}

std::string ledger_text(const Comparison& c, const StatedProblem& problem) {
  const std::string a = c.a.stage->short_name(), b = c.b.stage->short_name();
  Table table;
  table.column("tensor", "", Table::Align::left);
  table.column(a + " read", "elements").column("written", "elements");
  table.column(b + " read", "elements").column("written", "elements").column("change", "elements");
  table.column(a + " moves").column(b + " moves").column("change", "bytes");
  for (const auto& [tensor, pair] : c.tensors) table.row(cells(tensor, pair));
  table.row(cells("all", c.total));
  return fmt::format("HBM traffic, {}: {}\n{} in {}, {} in {}\n{}", name(c.a.direction), problem.text(),
                     blocks_text(c.blocks_a), a, blocks_text(c.blocks_b), b, table.text());
}

std::string text(const Comparison& c, const StatedProblem& problem) {
  const std::string source =
      c.source.empty() ? fmt::format("{} and {}: no difference\n", c.source_a, c.source_b) : c.source;
  if (!c.a.on_cpu() || !c.b.on_cpu())
    return source + fmt::format("\nHBM traffic, {}: nothing to count beside: one of them is of kernels alone\n",
                                name(c.a.direction));
  return source + "\n" + ledger_text(c, problem);
}

Json json(const Traffic& t) {
  return {{"read", t.read}, {"written", t.written}, {"bytes_read", t.bytes_read}, {"bytes_written", t.bytes_written}};
}

Json json(const Pair& p) {
  return {{"a", json(p.a)},
          {"b", json(p.b)},
          {"change", {{"elements", p.b.elements() - p.a.elements()}, {"bytes", p.b.bytes() - p.a.bytes()}}}};
}

Json json(const Comparison& c) {
  Json tensors = Json::object();
  for (const auto& [tensor, pair] : c.tensors) tensors[tensor] = json(pair);
  return {{"sources", {c.source_a, c.source_b}},
          {"diff", c.source},
          {"tiles", {{"a", blocks_json(c.blocks_a)}, {"b", blocks_json(c.blocks_b)}}},
          {"tensors", tensors},
          {"total", json(c.total)}};
}

/// Why there is no second part: a stage without a backward pass, and what to compare instead.
std::string no_backward(const Stage& a, const Stage& b) {
  const auto has = [](const Stage& s) { return s.has_backward() || s.has(Side::cuda, Direction::backward); };
  if (!has(a) && !has(b)) return "";
  const Stage& with = has(a) ? a : b;
  const std::string& extends = with.backward_facts.extends;
  const std::string instead = extends.empty()
                                  ? "it extends nothing."
                                  : fmt::format("it extends {}:\n  ./flashsteps diff {} {}", extends,
                                                find_program(extends).first->short_name(), with.short_name());
  return fmt::format("\nBackward: {} has one, {} has not; {}\n", with.id, (has(a) ? b : a).id, instead);
}

void print_diff(const Stage& a, const Stage& b, bool as_json) {
  const StatedProblem problem;
  const Comparison forward = compare({&a, Direction::forward}, {&b, Direction::forward}, problem);
  std::optional<Comparison> backward;
  const auto both = [&](Side side) { return a.has(side, Direction::backward) && b.has(side, Direction::backward); };
  if (both(Side::cpu) || (both(Side::cuda) && !(a.has_forward() && b.has_forward())))
    backward = compare({&a, Direction::backward}, {&b, Direction::backward}, problem);
  if (as_json)
    print_json(Json{{"a", a.id},
                    {"b", b.id},
                    {"problem", to_json(problem)},
                    {"forward", json(forward)},
                    {"backward", backward ? json(*backward) : Json(nullptr)}});
  else
    print(text(forward, problem) + (backward ? "\n" + text(*backward, problem) : no_backward(a, b)));
}

}  // namespace

void add_diff(CLI::App& program, int&) {
  struct Typed {
    std::string a, b;
    bool json = false;
  };
  const auto typed = std::make_shared<Typed>();
  CLI::App* diff = program.add_subcommand("diff", "the source diff between two steps and the ledger's change");
  diff->add_option("A", typed->a, "a stage: 3, 03, online_softmax or 03_online_softmax")->required();
  diff->add_option("B", typed->b, "another; they need not be neighbours")->required();
  diff->add_flag("--json", typed->json, "one JSON document (docs/schema/diff.schema.json)");
  diff->callback([typed] { print_diff(stage_named(typed->a), stage_named(typed->b), typed->json); });
}

}  // namespace flash::app

#include "app/bench_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/counted.hpp"
#include "app/output.hpp"
#include "app/run_report.hpp"
#include "app/table.hpp"

namespace flash::app {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kL2 = "not cleared: a timing finds what the one before left";

std::string direction(const BenchProblem& p) { return p.backward ? "backward" : "forward"; }

double tflops(const Bench& b, const Timings& times) { return b.problem.flops() / times.median() * 1e-12; }
double gigabytes(const Bench& b, const Timings& times) { return b.problem.bytes() / times.median() * 1e-9; }

/// Of what the card does at its best, by flops or by bytes; nothing where that wasn't measured.
std::optional<double> share(const Bench& b, const Timings& times) {
  if (b.yardstick.times.empty()) return {};
  return (b.problem.decode ? b.problem.bytes() : b.problem.flops()) / times.median() / b.yardstick.rate();
}

/// The stage that everything else is held against: the last one that was timed.
const BenchRow* ours(const Bench& b) {
  const BenchRow* last = nullptr;
  for (const BenchRow& row : b.rows)
    if (!row.times.empty() && !row.deterministic) last = &row;
  return last;
}

/// "03_online_softmax", "05a_loop_swap"
std::string stage_label(const Stage& stage) {
  return stage.letter().empty() ? stage.id : fmt::format("{}{}", stage.number(), stage.letter());
}

std::string row_name(const BenchRow& row) {
  return stage_label(*row.kernels.stage) + (row.deterministic ? ", deterministic" : "");
}

// ---- text

/// Three digits; all of them before the point.
std::string speed_text(double value) {
  return value >= 100 ? fmt::format("{:.0f}", value) : fmt::format("{:.3g}", value);
}

std::string card_text(const Benches& all) {
  return fmt::format("{} (sm_{}), {} SMs, driver {}; {}, {}\n", all.gpu.facts.name, all.gpu.facts.arch,
                     all.gpu.facts.sms, all.driver, all.gpu.cuda->compiler, all.cells.front().date);
}

std::string yardstick_text(const Bench& b) {
  const YardstickRow& y = b.yardstick;
  if (!y.why_not.empty()) return fmt::format(" No share of the card's best: {}.", y.why_not);
  if (y.times.empty()) return "";
  if (b.problem.decode)
    return fmt::format(" A copy of {} in device memory moves {:.4g} GB/s, read and written, in the same rounds.",
                       decimal_bytes(static_cast<Index>(y.work / 2)), y.rate() * 1e-9);
  return fmt::format(
      " cuBLAS's {0} x {0} x {0} product in {1} gives {2:.4g} TFLOP/s at {3:.0f} MHz in the same rounds.", gemm_size,
      name(b.problem.dtype), y.rate() * 1e-12, y.times.median_clock());
}

std::string method_text(const Benches& all) {
  const Bench& b = all.cells.front();
  return fmt::format(
      "Median of {} rounds, each of which times everything once; L2 ({}) {}; the clock is the SMs' right after each "
      "timing.",
      b.rounds, decimal_bytes(static_cast<Index>(all.gpu.facts.l2_bytes)), kL2);
}

std::string problem_text(const BenchProblem& p) {
  const std::string work =
      p.decode ? fmt::format("{}: Q, K, V read and O, LSE written once", decimal_bytes(static_cast<Index>(p.bytes())))
               : fmt::format("{:.4g} TFLOP, which is 4·d for each visible (query, key) pair{}", p.flops() * 1e-12,
                             p.backward ? ", times 2.5" : "");
  return fmt::format("{}, {}: batch {}, {} query heads, {} KV heads, {}N = {}, d = {}{}{}; {}.", sentence(direction(p)),
                     name(p.dtype), p.batch, p.heads, p.kv_heads, p.decode ? "one query, " : "", p.n, p.d,
                     p.causal ? ", causal" : "", p.splits > 1 ? fmt::format(", {} splits", p.splits) : "", work);
}

/// Name, times, speed, share and ratio of one line.
void add_line(Table& table, const Bench& b, const std::string& name, const Timings& times, const std::string& tiles) {
  const auto seconds = std::ranges::minmax(times.seconds);
  const BenchRow* reference = ours(b);
  const std::optional<double> part = share(b, times);
  table.row({name, fmt::format("{:.4g}", 1e3 * times.median()), fmt::format("{:.4g}", 1e3 * seconds.min),
             fmt::format("{:.4g}", 1e3 * seconds.max),
             fmt::format("{:.4g}", b.problem.decode ? gigabytes(b, times) : tflops(b, times)),
             part ? fmt::format("{:.1f}", 100 * *part) : "-",
             reference ? fmt::format("{:.2f}", times.median() / reference->times.median()) : "-",
             fmt::format("{:.0f}", times.median_clock()), tiles, fmt::format("{}", times.launches)});
}

std::string determinism_text(const Bench& b, const BenchRow& row) {
  if (row.same_bits == 0)
    return fmt::format("FAILS: {}: two of {} runs on the same inputs differ\n", row_name(row), bit_runs);
  std::string text =
      fmt::format("{}: {} runs on the same inputs, every bit of dQ, dK and dV the same", row_name(row), row.same_bits);
  for (const BenchRow& plain : b.rows)
    if (plain.kernels.stage == row.kernels.stage && !plain.deterministic && !plain.times.empty())
      text += fmt::format("; {:.3f} times as long as without", row.times.median() / plain.times.median());
  return paragraph("", text, columns);
}

/// What the tables don't say: each note once, whichever cells have it.
std::string notes(const Benches& all) {
  std::vector<std::string> notes;
  const auto add = [&](const std::string& note) {
    if (std::ranges::find(notes, note) == notes.end()) notes.push_back(note);
  };
  for (const Bench& b : all.cells) {
    for (const BenchRow& row : b.rows) {
      if (!row.why_not.empty()) add(paragraph("not timed: ", row.why_not, columns));
      if (!row.check.pass())
        add(fmt::format("{} FAILS on a small problem, so nothing was timed:{}", row_name(row),
                        check_report(row.check)));
      if (row.deterministic && !row.times.empty()) add(determinism_text(b, row));
    }
    for (const PeerRow& peer : b.peers)
      if (!peer.why_not.empty()) add(paragraph("not timed: ", peer.title + ": " + peer.why_not, columns));
  }
  return fmt::format("{}", fmt::join(notes, ""));
}

std::string one_cell(const Benches& all) {
  const Bench& b = all.cells.front();
  const BenchRow* reference = ours(b);
  Table table;
  table.column("kernels", "", Table::Align::left).column("time", "ms").column("least", "ms").column("most", "ms");
  table.column("speed", b.problem.decode ? "GB/s" : "TFLOP/s").column(b.problem.decode ? "of copy" : "of GEMM", "%");
  table.column(reference ? fmt::format("{} is", reference->kernels.stage->short_name()) : "", "x as fast");
  table.column("clock", "MHz").column("tiles", "Br x Bc").column("launches", "each");
  for (const BenchRow& row : b.rows)
    if (!row.times.empty())
      add_line(table, b, row_name(row), row.times,
               row.tiles ? fmt::format("{} x {}", row.tiles->Br, row.tiles->Bc) : "none");
  for (const PeerRow& peer : b.peers)
    if (!peer.times.empty()) add_line(table, b, peer.title, peer.times, "");
  return paragraph("", problem_text(b.problem) + " " + method_text(all) + yardstick_text(b), columns) + "\n" +
         table.text() + notes(all);
}

constexpr const char* kGemm = "GEMM";

/// The stages that ratios are of: one, unless some cells leave it out.
std::string names_of_ours(const Benches& all) {
  std::vector<std::string> names;
  for (const Bench& b : all.cells)
    if (const BenchRow* row = ours(b))
      if (names.empty() || names.back() != stage_label(*row->kernels.stage))
        names.push_back(stage_label(*row->kernels.stage));
  return fmt::format("{}", fmt::join(names, " or "));
}

/// One column for each that was timed in any cell: a stage by its number, a peer by its name.
std::vector<std::string> contenders(const Benches& all) {
  std::vector<std::string> names;
  const auto add = [&](const std::string& name) {
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  };
  for (const Bench& b : all.cells) {
    for (const BenchRow& row : b.rows)
      if (!row.times.empty()) add(row.kernels.stage->short_name() + (row.deterministic ? " det" : ""));
    for (const PeerRow& peer : b.peers)
      if (!peer.times.empty()) add(peer.name);
  }
  return names;
}

const Timings* find_times(const Bench& b, const std::string& contender) {
  if (contender == kGemm) return &b.yardstick.times;
  for (const BenchRow& row : b.rows)
    if (row.kernels.stage->short_name() + (row.deterministic ? " det" : "") == contender) return &row.times;
  for (const PeerRow& peer : b.peers)
    if (peer.name == contender) return &peer.times;
  return nullptr;
}

/// A line for each cell, a column for each of `names`, whose number `cell_text` says.
template <class CellText>
std::string sweep_table(const Benches& all, const std::vector<std::string>& names, const char* unit,
                        const CellText& cell_text) {
  Table table;
  table.column("d").column("N").column("mask", "", Table::Align::left);
  for (const std::string& name : names) table.column(name, unit);
  for (const Bench& b : all.cells) {
    const BenchProblem& p = b.problem;
    std::vector<std::string> cells{fmt::format("{}", p.d), fmt::format("{}", p.n), p.causal ? "causal" : "none"};
    for (const std::string& name : names) {
      const Timings* times = find_times(b, name);
      cells.push_back(times && !times->empty() ? cell_text(b, *times) : "-");
    }
    table.row(cells);
  }
  return table.text();
}

std::string many_cells(const Benches& all) {
  const Bench& first = all.cells.front();
  std::string text =
      paragraph("",
                fmt::format("{}, {}: {} tokens, {} channels in all heads. {} GEMM is cuBLAS's {}³.{}",
                            sentence(direction(first.problem)), name(first.problem.dtype),
                            first.problem.batch * first.problem.n, first.problem.heads * first.problem.d,
                            method_text(all), gemm_size, first.yardstick.why_not.empty() ? "" : yardstick_text(first)),
                columns);
  const std::vector<std::string> names = contenders(all);
  std::vector<std::string> with_gemm = names;
  if (!first.yardstick.times.empty()) with_gemm.insert(with_gemm.begin(), kGemm);
  text += "\n" + sweep_table(all, with_gemm, "TFLOP/s", [](const Bench& b, const Timings& times) {
            return speed_text(&times == &b.yardstick.times ? b.yardstick.rate() * 1e-12 : tflops(b, times));
          });
  if (!first.yardstick.times.empty())
    text += "\nShare of the GEMM's speed\n" + sweep_table(all, names, "%", [](const Bench& b, const Timings& times) {
              return fmt::format("{:.1f}", 100 * share(b, times).value_or(0));
            });
  text += fmt::format("\nHow many times as fast {} is\n", names_of_ours(all)) +
          sweep_table(all, names, "x", [](const Bench& b, const Timings& times) {
            return ours(b) ? fmt::format("{:.2f}", times.median() / ours(b)->times.median()) : "-";
          });
  return text + notes(all);
}

// ---- JSON

void add_times(Json& json, const Timings& times) {
  const auto seconds = std::ranges::minmax(times.seconds);
  json["launches"] = times.launches;
  json["seconds"] = {{"median", times.median()}, {"least", seconds.min}, {"most", seconds.max}};
  json["sm_clock_mhz"] = times.median_clock();
}

/// Speed and share of what was timed on the cell's problem.
void add_speed(Json& json, const Bench& b, const Timings& times) {
  add_times(json, times);
  json["tflops"] = tflops(b, times);
  if (b.problem.decode) json["bytes_per_second"] = b.problem.bytes() / times.median();
  if (const auto part = share(b, times)) json[b.problem.decode ? "copy_share" : "gemm_share"] = *part;
}

Json row_json(const Bench& b, const BenchRow& row) {
  Json checks = Json::object();
  for (const OutputCheck& c : row.check.outputs)
    checks[c.name] = {{"error", json_number(c.error)}, {"tolerance", json_number(c.tolerance)}, {"pass", c.pass}};
  Json json = {{"stage", row.kernels.stage->id}, {"direction", direction(b.problem)}};
  if (row.deterministic) json["deterministic"] = true;
  json["tiles"] = blocks_json(row.tiles);
  json["check"] = checks;
  if (!row.why_not.empty()) json["why"] = row.why_not;
  if (row.times.empty()) return json;
  add_speed(json, b, row.times);
  if (row.deterministic) json["same_bits"] = row.same_bits;
  return json;
}

Json peer_json(const Bench& b, const PeerRow& peer) {
  Json json = {{"peer", peer.name}, {"title", peer.title}, {"version", peer.version}};
  if (!peer.why_not.empty()) json["why"] = peer.why_not;
  if (peer.times.empty()) return json;
  json["check"] = {{"error", peer.error}, {"tolerance", peer.tolerance}};
  add_speed(json, b, peer.times);
  if (const BenchRow* reference = ours(b)) json["ratio"] = peer.times.median() / reference->times.median();
  return json;
}

Json yardstick_json(const Bench& b) {
  const YardstickRow& y = b.yardstick;
  if (!y.why_not.empty()) return {{"why", y.why_not}};
  if (y.times.empty()) return nullptr;
  Json json;
  if (b.problem.decode)
    json["bytes"] = y.work;
  else
    json["n"] = gemm_size;
  add_times(json, y.times);
  if (b.problem.decode)
    json["bytes_per_second"] = y.rate();
  else
    json["tflops"] = y.rate() * 1e-12;
  return json;
}

Json problem_json(const BenchProblem& p) {
  Json json = {{"batch", p.batch}, {"heads", p.heads},       {"kv_heads", p.kv_heads}, {"n", p.n},
               {"d", p.d},         {"dtype", name(p.dtype)}, {"causal", p.causal},     {"backward", p.backward}};
  if (p.decode) json["nq"] = 1, json["splits"] = p.splits;
  return json;
}

Json cell_json(const Benches& all, const Bench& b) {
  const cuda::GpuFacts& gpu = all.gpu.facts;
  Json rows = Json::array(), peers = Json::array();
  for (const BenchRow& row : b.rows) rows.push_back(row_json(b, row));
  for (const PeerRow& peer : b.peers) peers.push_back(peer_json(b, peer));
  Json json = {
      {"date", b.date},
      {"gpu",
       {{"name", gpu.name}, {"arch", fmt::format("sm_{}", gpu.arch)}, {"sms", gpu.sms}, {"l2_bytes", gpu.l2_bytes}}},
      {"driver", all.driver},
      {"compiler", all.gpu.cuda->compiler},
      {"built_for", all.gpu.cuda->built_for},
      {"problem", problem_json(b.problem)},
      {"flops", b.problem.flops()}};
  if (b.problem.decode) json["bytes"] = b.problem.bytes();
  json["rounds"] = b.rounds;
  json["l2"] = kL2;
  json[b.problem.decode ? "copy" : "gemm"] = yardstick_json(b);
  json["rows"] = rows;
  if (!b.peers.empty()) json["peers"] = peers;
  if (all.cells.size() > 1) json["sweep"] = all.cells.front().date;
  return json;
}

}  // namespace

std::string bench_text(const Benches& all) {
  return card_text(all) + (all.cells.size() == 1 ? one_cell(all) : many_cells(all));
}

std::vector<Json> bench_json(const Benches& all) {
  std::vector<Json> documents;
  for (const Bench& b : all.cells) documents.push_back(cell_json(all, b));
  return documents;
}

}  // namespace flash::app

#include "app/run_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <set>

#include "app/kernel_report.hpp"
#include "app/ledger_json.hpp"
#include "app/output.hpp"

namespace flash::app {
namespace {

using Sums = std::map<std::string, Index>;

Index of(const Sums& sums, const std::string& tensor) {
  const auto at = sums.find(tensor);
  return at == sums.end() ? 0 : at->second;
}

std::string plural(Index n, const char* one) { return fmt::format("{} {}{}", grouped(n), one, n == 1 ? "" : "s"); }

/// "causal, window (16,0)": what was asked beyond plain attention.
std::string features(const Asked& asked) {
  const Options& o = asked.options;
  const Inputs& in = asked.inputs;
  std::vector<std::string> list{fmt::format("scale {:.6g}", softmax_scale(in.shape, o))};
  if (o.causal) list.push_back("causal");
  if (o.window.left >= 0 || o.window.right >= 0)
    list.push_back(fmt::format("window ({},{}) keys", o.window.left, o.window.right));
  if (o.softcap > 0) list.push_back(fmt::format("softcap {}", o.softcap));
  if (!in.slopes.empty()) list.push_back("ALiBi");
  if (!in.mask.empty()) list.push_back("mask");
  if (!in.block_mask.empty()) list.push_back("block mask");
  if (o.dropout > 0) list.push_back(fmt::format("dropout {} (seed {})", o.dropout, o.dropout_seed));
  if (o.first_touch) list.push_back("first touch");
  if (o.splits > 1) list.push_back(fmt::format("{} splits", o.splits));
  if (o.warps) list.push_back(*o.warps == Warps::split_q ? "split-Q" : "split-K");
  if (o.deterministic) list.push_back("deterministic");
  return fmt::format("{}", fmt::join(list, ", "));
}

std::string problem_text(const Reported& run) {
  const Asked& asked = run.asked;
  const Shape& s = asked.inputs.shape;
  std::string text = fmt::format("stage {}, {}, {} on {}{}\n", asked.stage->id,
                                 run.result.backward ? "forward and backward" : "forward", name(asked.inputs.dtype),
                                 asked.kernels ? asked.kernels->device->name() : "the CPU",
                                 asked.config.machine.count_only ? ", counted without arithmetic" : "");
  text += fmt::format("  problem      {}, {}, {}; {}, {}; d = {}, dv = {} channels; input: {}\n",
                      plural(s.batch, "sequence"), plural(s.heads, "query head"), plural(s.kv_heads, "KV head"),
                      plural(s.Nq, "query row"), plural(s.Nk, "key"), s.d, s.dv, asked.source);
  const Index all = s.batch * s.heads * s.Nq * s.Nk;
  return text + fmt::format("  attention    {}; {} of {} (query, key) pairs are visible\n", features(asked),
                            grouped(run.visible_pairs), grouped(all));
}

std::string hbm_text(const sim::Ledger& ledger) {
  const Sums read = ledger.by_tensor(sim::Access::read), write = ledger.by_tensor(sim::Access::write),
             rmw = ledger.by_tensor(sim::Access::rmw), bytes = ledger.bytes_by_tensor();
  const auto row = [](const std::string& name, Index r, Index w, Index a, Index total, Index b) {
    return fmt::format("  {:12} {:>16} {:>16} {:>14} {:>17} {:>18}\n", name, grouped(r), grouped(w), grouped(a),
                       grouped(total), grouped(b));
  };
  std::string text = fmt::format("  {:12} {:>16} {:>16} {:>14} {:>17} {:>18}\n", "HBM", "read [el]", "written [el]",
                                 "rmw [el]", "moved [el]", "moved [bytes]");
  for (const auto& [tensor, b] : bytes)
    text += row(tensor, of(read, tensor), of(write, tensor), of(rmw, tensor),
                of(read, tensor) + of(write, tensor) + 2 * of(rmw, tensor), b);
  return text + row("total", ledger.total(sim::Access::read), ledger.total(sim::Access::write),
                    ledger.total(sim::Access::rmw), ledger.elements(), ledger.bytes());
}

std::string tiles_text(const Pass& pass, const Program& program, const Asked& asked) {
  if (asked.kernels)
    return pass.blocks ? fmt::format("  tiles        Br = {} query rows, Bc = {} keys: the kernels'\n", pass.blocks->Br,
                                     pass.blocks->Bc)
                       : "  tiles        the kernels have none\n";
  const Index capacity = asked.config.machine.sram_bytes, element = bytes_per_element(asked.inputs.dtype);
  const std::string M = fmt::format("M = {} elements = {} bytes", grouped(capacity / element), grouped(capacity));
  if (!pass.blocks) return "  tiles        none: each pass works on whole matrices\n";
  const char* chosen = asked.options.br > 0                                 ? "given"
                       : asked.config.machine.budget == sim::Budget::strict ? "the largest that fit: strict budget"
                       : program.side == Long::rows ? "Algorithm 1's with Br for Bc: paper budget"
                                                    : "Algorithm 1's: paper budget";
  return fmt::format("  tiles        Br = {} query rows, Bc = {} keys ({}; {})\n", pass.blocks->Br, pass.blocks->Bc,
                     chosen, M);
}

std::string sram_text(const Pass& pass, const Asked& asked) {
  const Index peak = pass.ledger.sram_peak().bytes, capacity = asked.config.machine.sram_bytes;
  const std::string held = pass.blocks ? fmt::format("peak {} bytes = {:.2f} M", grouped(peak), 1.0 * peak / capacity)
                                       : fmt::format("needs {} bytes: no capacity is enforced here", grouped(peak));
  std::string text = fmt::format("  SRAM         {} elements read, {} written; {}\n", grouped(pass.ledger.sram().read),
                                 grouped(pass.ledger.sram().write), held);
  if (const sim::SramTraffic& exchange = pass.ledger.exchange(); asked.stage->takes("warps"))
    text += fmt::format("  warps        {} elements read of each other's, {} written for each other\n",
                        grouped(exchange.read), grouped(exchange.write));
  return text;
}

std::string law_text(const Law& law, const sim::Ledger& ledger) {
  if (!law.form) return fmt::format("  law          none: {}\n", law.why);
  return fmt::format(
      "  law          {}\n               = {} elements: the count {}\n", law.form->text,
      grouped(law.form->traffic.elements()),
      law.equal ? "equals it, tensor by tensor" : fmt::format("is {}, NOT equal", grouped(ledger.elements())));
}

std::string lines_text(const sim::Ledger& ledger) {
  std::string text = fmt::format("  {:>16} {:>16}  by source line [elements]\n", "read", "written"), file;
  for (const SourceLine& l : source_lines(ledger)) {
    if (l.file != file) text += fmt::format("  {:>33}  {}\n", "", l.file);
    file = l.file;
    text += fmt::format("  {:>16} {:>16}  {:>4}  {}\n", grouped(l.read), grouped(l.write), l.line, one_line(l.text));
  }
  return text;
}

std::string extra_text(const sim::Ledger& ledger) {
  std::string tensors;
  for (const auto& [tensor, info] : ledger.extra_hbm()) tensors += (tensors.empty() ? ": " : ", ") + tensor;
  return fmt::format("  extra HBM    {} elements, {} bytes beyond inputs and outputs{}\n",
                     grouped(ledger.extra_elements()), grouped(ledger.extra_bytes()), tensors);
}

/// `n`: 0 for the forward pass, 1 for the backward pass.
std::string pass_text(std::size_t n, const Pass& pass, const Law& law, const Asked& asked) {
  const sim::Ledger& ledger = pass.ledger;
  const sim::Flops& flops = ledger.flops();
  const Program& program = n == 0 ? asked.stage->forward : asked.stage->backward;
  const std::string tiles = fmt::format("\n{}\n", n == 0 ? "forward" : "backward") + tiles_text(pass, program, asked);
  if (asked.kernels) {
    const cuda::VirtualDevice* device = asked.kernels->virtual_device;
    if (!device) return tiles;
    return tiles + hbm_text(ledger) + law_text(law, ledger) + extra_text(ledger) +
           vgpu_text(*device, device->watched()[n]);
  }
  return tiles + hbm_text(ledger) + law_text(law, ledger) + extra_text(ledger) + sram_text(pass, asked) +
         fmt::format("  operations   {} FLOPs in products, {} exps, {} others\n\n", grouped(flops.matmul),
                     grouped(flops.exp), grouped(flops.other)) +
         lines_text(ledger);
}

std::string verdict(const OutputCheck& o) {
  if (!o.pass) return "FAILED: " + o.message;
  return std::isnan(o.tolerance) ? "ok, NaN as in the oracle" : "ok";
}

}  // namespace

std::string check_report(const CheckResult& check) {
  std::string text = "\nagainst the fp64 oracle (error and tolerance at the element that uses most of its tolerance)\n";
  for (const OutputCheck& o : check.outputs)
    text += fmt::format("  {:4} error {:.3g}, tolerance {:.3g}; a plain program's error {:.3g}; at [{}]: {}\n", o.name,
                        o.error, o.tolerance, o.baseline, fmt::join(o.worst, ","), verdict(o));
  return text;
}

std::string run_report(const Reported& run) {
  std::string text = problem_text(run);
  text += pass_text(0, run.result.forward, run.forward, run.asked);
  if (run.result.backward) text += pass_text(1, *run.result.backward, *run.backward, run.asked);
  if (run.check) text += check_report(*run.check);
  return text + fmt::format("\n{:.3g} s in the stage\n", run.result.seconds);
}

}  // namespace flash::app

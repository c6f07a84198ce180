#include "stages/common/run.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cmath>

#include "stages/common/nonfinite.hpp"
#include "stages/common/sight.hpp"

namespace flash {

namespace {

void refuse_what_it_does_not_take(const Stage& stage, const Inputs& in, const Options& o, const RunConfig& config) {
  const std::pair<const char*, bool> asked[] = {
      {"causal", o.causal},
      {"window", o.window.left >= 0 || o.window.right >= 0},
      {"softcap", o.softcap > 0},
      {"alibi", !in.slopes.empty()},
      {"mask", !in.mask.empty()},
      {"block-mask", !in.block_mask.empty()},
      {"dropout", o.dropout > 0},
      {"scale", o.scale.has_value()},
      {"first-touch", o.first_touch},
      {"br and bc", o.br > 0 || o.bc > 0},
  };
  for (const auto& [option, is_asked] : asked) {
    if (!is_asked || stage.takes(option)) continue;
    const auto other = std::ranges::find_if(stages(), [&](const Stage& s) { return s.takes(option); });
    throw Refused(fmt::format("{} was asked of stage {}, which does not take it; take stage {}", option, stage.id,
                              other != stages().end() ? other->id : "without it"));
  }
  if (config.backward && !stage.has_backward()) {
    const auto other = std::ranges::find_if(
        stages(), [&](const Stage& s) { return s.has_backward() && s.number() > stage.number(); });
    throw Refused(fmt::format("the backward pass was asked of stage {}, which has only a forward pass; take stage {}",
                              stage.id, other != stages().end() ? other->id : "01_materialized"));
  }
}

void refuse_what_does_not_fit(const Inputs& in, const Options& o, const RunConfig& config) {
  const Shape& s = in.shape;
  if (s.heads < 1 || s.kv_heads < 1 || s.heads % s.kv_heads != 0)
    throw Refused(fmt::format("{} query heads were asked of {} key/value heads, which they do not share evenly; take a "
                              "multiple",
                              s.heads, s.kv_heads));
  if ((o.br > 0) != (o.bc > 0)) throw Refused("tiles were asked with one side only; give both --br and --bc");
  if (!in.block_mask.empty() && o.br == 0) throw Refused("a block mask was given without its tiles; give --br and --bc");

  const auto fits = [](const char* array, std::size_t size, bool may_miss, Index needed) {
    if (static_cast<Index>(size) != needed && !(size == 0 && may_miss))
      throw Refused(fmt::format("{} has {} elements where the problem needs {}; give arrays of one problem", array, size,
                                needed));
  };
  const bool count_only = config.machine.count_only;
  fits("q", in.q.size(), count_only, s.batch * s.heads * s.Nq * s.d);
  fits("k", in.k.size(), count_only, s.batch * s.kv_heads * s.Nk * s.d);
  fits("v", in.v.size(), count_only, s.batch * s.kv_heads * s.Nk * s.dv);
  fits("dout", in.dout.size(), count_only || !config.backward, s.batch * s.heads * s.Nq * s.dv);
  fits("slopes", in.slopes.size(), true, s.heads);
  fits("mask", in.mask.size(), true, in.mask_batch * in.mask_heads * s.Nq * s.Nk);
  if (o.br > 0)
    fits("block mask", in.block_mask.size(), true, sim::ceil_div(s.Nq, o.br) * sim::ceil_div(s.Nk, o.bc));
}

/// LSE [batch, heads, Nq] for the host from what the stage left in HBM. @throws Refused where S overflowed in fp16.
template <class Real>
std::vector<double> lse_of(const Stage& stage, const Inputs& in, const Problem<Real>& p, const Options& o) {
  if (stage.lse == "LSE") return {p.LSE.host().begin(), p.LSE.host().end()};
  std::vector<double> lse(p.batch * p.heads * p.Nq, -infinity<double>);
  if (stage.lse == "l and m") {
    const auto l = p.l.host(), m = p.m.host();
    for (std::size_t row = 0; row < lse.size(); ++row)
      if (l[row] != 0) lse[row] = static_cast<double>(m[row]) + std::log(static_cast<double>(l[row]));
    return lse;
  }
  const auto S = p.S.host();
  const Sight sees(in, o);
  for (std::size_t row = 0; row < lse.size(); ++row) {
    const Index i = row % p.Nq, h = row / p.Nq % p.heads, b = row / p.Nq / p.heads;
    double m = lowest<double>, l = 0;
    for (Index j = 0; j < p.Nk; ++j) {
      if (!sees(b, h, i, j)) continue;
      const double s = S[row * p.Nk + j], m_new = std::max(m, s);
      if (in.dtype == Format::fp16 && !std::isfinite(s))
        throw Refused(fmt::format("fp16 was asked of stage {}, which stores the scores S in it, and one of them is beyond "
                                  "65504; take stage 03_online_softmax, which keeps them in fp32, or bf16",
                                  stage.id));
      l = l * std::exp(m - m_new) + std::exp(s - m_new);
      m = m_new;
    }
    if (l != 0) lse[row] = m + std::log(l);
  }
  return lse;
}

/// A row that sees a key has a finite LSE, unless its scores overflow the accumulator.
void refuse_overflow(const Inputs& in, const Options& o, const std::vector<double>& lse) {
  const Shape& s = in.shape;
  const Sight sees(in, o);
  for (Index row = 0; row < static_cast<Index>(lse.size()); ++row) {
    const Index i = row % s.Nq, h = row / s.Nq % s.heads, b = row / s.Nq / s.heads;
    if (!std::isfinite(lse[row]) && sees.any(b, h, i))
      throw Refused(fmt::format("a run in {} was asked, but a score of query {} of head {} is beyond what {} holds; take "
                                "smaller inputs{}",
                                name(in.dtype), i, h, name(accumulator(in.dtype)),
                                in.dtype == Format::fp64 ? "" : ", or fp64"));
  }
}

/// Inputs are finite, so an output that is not comes from a number beyond what the format or the accumulator holds.
void refuse_infinite_outputs(const Stage& stage, const Inputs& in, const Outputs& out) {
  for (const auto& [output, values] : {std::pair{"O", &out.o}, {"dQ", &out.dq}, {"dK", &out.dk}, {"dV", &out.dv}})
    if (!std::ranges::all_of(*values, [](double x) { return std::isfinite(x); }))
      throw Refused(fmt::format("{} in {} was asked of stage {}, but it, or a step on the way to it, is beyond what {} "
                                "holds; take smaller inputs{}",
                                output, name(in.dtype), stage.id, name(in.dtype),
                                in.dtype == Format::fp64 ? "" : " or a wider format"));
}

template <class Real>
Pass run_program(const Program& program, const Problem<Real>& p, const Options& o, const RunConfig& config,
                 double& seconds) {
  sim::MachineConfig machine_config = config.machine;
  if (!program.sram_bytes) machine_config.budget = sim::Budget::paper;  // no tiles: it takes what its matrices need
  Machine<Real> machine(machine_config);
  if (config.observer) machine.observe(config.observer);
  Pass pass;
  if (program.sram_bytes) pass.blocks = block_sizes(p, o, machine, program.sram_bytes);
  const auto start = std::chrono::steady_clock::now();
  program.run(p, o, machine);
  seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  pass.ledger = machine.ledger();
  return pass;
}

template <class Real>
std::vector<double> values(const sim::HbmTensor<Real>& tensor) {
  return {tensor.host().begin(), tensor.host().end()};
}

template <class Real>
RunResult run_in(const Stage& stage, const Inputs& in, const Options& o, const RunConfig& config) {
  const Problem<Real> p(in);
  if (config.backward && stage.backward.sram_bytes)  // before the forward pass has run for nothing: it needs more room
    block_sizes(p, o, Machine<Real>(config.machine), stage.backward.sram_bytes);
  RunResult result;
  result.forward = run_program(stage.forward, p, o, config, result.seconds);
  if (!config.machine.count_only) {
    result.outputs.lse = lse_of(stage, in, p, o);
    refuse_overflow(in, o, result.outputs.lse);
    result.outputs.o = values(p.O);
  }
  if (config.backward) {
    result.backward = run_program(stage.backward, p, o, config, result.seconds);
    if (!config.machine.count_only) {
      result.outputs.dq = values(p.dQ);
      result.outputs.dk = values(p.dK);
      result.outputs.dv = values(p.dV);
    }
  }
  return result;
}

RunResult run_finite(const Stage& stage, const Inputs& in, const Options& o, const RunConfig& config) {
  RunResult result =
      in.dtype == Format::fp64 ? run_in<double>(stage, in, o, config) : run_in<float>(stage, in, o, config);
  refuse_infinite_outputs(stage, in, result.outputs);
  return result;
}

}  // namespace

RunResult run(const Stage& stage, const Inputs& inputs, const Options& options, const RunConfig& config) {
  refuse_what_it_does_not_take(stage, inputs, options, config);
  refuse_what_does_not_fit(inputs, options, config);
  const std::string found = first_nonfinite(inputs);
  if (found.empty()) return run_finite(stage, inputs, options, config);
  if (!config.allow_nonfinite)
    throw Refused(fmt::format("a run on finite inputs was asked, but {}; mend it or pass --allow-nonfinite", found));
  Inputs finite = inputs;
  const NonfiniteRows rows = take_out_nonfinite(finite);
  RunResult result = run_finite(stage, finite, options, config);
  if (!config.machine.count_only) mark_nonfinite(rows, inputs, options, result.outputs);
  return result;
}

}  // namespace flash

#include "stages/common/run.hpp"

#include <fmt/format.h>

#include <chrono>

#include "stages/common/around_run.hpp"

namespace flash {

namespace {

void refuse_what_it_does_not_take(const Stage& stage, const Inputs& in, const Options& o, const RunConfig& config) {
  require_programs(stage, Side::cpu, config.backward);
  for (const std::string_view option : options_asked(in, o)) {
    if (stage.takes(option)) continue;
    const auto other = std::ranges::find_if(stages(), [&](const Stage& s) { return s.takes(option); });
    throw Refused(fmt::format("{} was asked of stage {}, which does not take it; take stage {}", option, stage.id,
                              other != stages().end() ? other->id : "without it"));
  }
}

/// LSE [batch, heads, Nq] for the host from what the stage left in HBM.
template <class Real>
std::vector<double> lse_of(const Stage& stage, const Inputs& in, const Problem<Real>& p, const Options& o) {
  if (stage.lse == "LSE") return {p.LSE.host().begin(), p.LSE.host().end()};
  if (stage.lse == "l and m") return lse_of_l_and_m(p.l.host(), p.m.host());
  return lse_of_scores(stage, in, o, p.S.host());
}

template <class Real>
Pass run_program(const Program& program, const Problem<Real>& p, const Options& o, const RunConfig& config,
                 double& seconds) {
  sim::MachineConfig machine_config = config.machine;
  if (!program.sram_bytes) machine_config.budget = sim::Budget::paper;  // no tiles: it takes what its matrices need
  Machine<Real> machine(machine_config);
  if (config.observer) machine.observe(config.observer);
  Pass pass;
  if (program.sram_bytes) pass.blocks = block_sizes(p, o, machine, program.sram_bytes, program.side);
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
    block_sizes(p, o, Machine<Real>(config.machine), stage.backward.sram_bytes, stage.backward.side);
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
  require_arrays(inputs, options, config.backward, config.machine.count_only);
  require_softcap_in_format(stage, inputs, options, config.backward);
  return run_on_finite(inputs, options, config.allow_nonfinite,
                       [&](const Inputs& finite) { return run_finite(stage, finite, options, config); });
}

}  // namespace flash

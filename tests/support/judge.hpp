// Judges what stages computed: the oracle, the baseline and the bounds of a problem are made once and serve all stages.
#pragma once

#include <optional>

#include "stages/common/baseline.hpp"
#include "stages/common/check.hpp"
#include "stages/common/run.hpp"

namespace flash {

inline constexpr Format kFormats[] = {Format::fp64, Format::fp32, Format::fp16, Format::bf16};

/// Does the stage take all that the problem asks for? Tiles by hand do not count: see options_for().
inline bool takes_all(const Stage& stage, const Inputs& in, const Options& o) {
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
      {"splits", o.splits > 1},
      {"deterministic", o.deterministic},
      {"warps", o.warps.has_value()},
  };
  return std::ranges::all_of(asked, [&](const auto& option) { return !option.second || stage.takes(option.first); });
}

/// The same problem for a stage without tiles: none are given by hand.
inline Options options_for(const Stage& stage, Options o) {
  if (!stage.takes("br and bc")) o.br = o.bc = 0;
  return o;
}

class Judge {
 public:
  /// Gradients are judged where a stage has them and `inputs` has dO.
  Judge(const Inputs& inputs, const Options& options)
      : inputs_(inputs), options_(options), reference_(reference(inputs, options, !inputs.dout.empty())) {}

  CheckResult operator()(const Stage& stage, const Outputs& got) {
    Reference& whole = stage.lse == "S" && is_16_bit(inputs_.dtype) ? with_rounded_scores() : reference_;
    if (!got.dq.empty() || !got.dk.empty()) return check(got, whole, inputs_, options_);
    Reference forward = whole;
    forward.oracle.dq = forward.oracle.dk = forward.oracle.dv = {};
    return check(got, forward, inputs_, options_);
  }

  const Outputs& oracle() const { return reference_.oracle; }

 private:
  /// For a stage that stores S in the run's format.
  Reference& with_rounded_scores() {
    if (!rounded_)
      rounded_ = Reference{reference_.oracle, baseline(inputs_, options_, !inputs_.dout.empty(), true),
                           rounding_bounds(inputs_, options_, reference_.oracle, true), true};
    return *rounded_;
  }

  const Inputs& inputs_;
  const Options& options_;
  Reference reference_;
  std::optional<Reference> rounded_;
};

}  // namespace flash

// What the host does around a run, whatever runs the stage: what was asked and does it fit together, LSE where the
// stage stores none, refusal of numbers beyond a format.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <vector>

#include "stages/common/nonfinite.hpp"
#include "stages/common/registry.hpp"
#include "stages/common/sight.hpp"

namespace flash {

/// The options that a stage has to take, by their names on the command line.
std::vector<std::string_view> options_asked(const Inputs& inputs, const Options& options);

/// Throws Refused, naming one that has it, where the side has no program of the stage, or no backward pass is there.
void require_programs(const Stage& stage, Side side, bool backward);

/// Throws Refused where heads don't share the KV heads evenly, tiles are half given, or the arrays are not of one
/// problem; `may_miss_arrays`: a count-only run needs none.
void require_arrays(const Inputs& inputs, const Options& options, bool backward, bool may_miss_arrays);

/// Throws Refused naming the first value that is not finite.
void require_finite(const Inputs& inputs);

/// Throws Refused where softcap's derivative would be made from scores that fp16 holds too coarsely.
void require_softcap_in_format(const Stage& stage, const Inputs& inputs, const Options& options, bool backward);

/// LSE [batch, heads, Nq] = m + ln l; −∞ for a row that saw no key.
template <class Statistics>
std::vector<double> lse_of_l_and_m(const Statistics& l, const Statistics& m) {
  std::vector<double> lse(l.size(), -std::numeric_limits<double>::infinity());
  for (std::size_t row = 0; row < lse.size(); ++row)
    if (l[row] != 0) lse[row] = static_cast<double>(m[row]) + std::log(static_cast<double>(l[row]));
  return lse;
}

/// Throws Refused: scores that fp16 can't hold were stored in it.
[[noreturn]] void refuse_scores_beyond_fp16(const Stage& stage);

/// LSE [batch, heads, Nq] of the visible ones of S [batch, heads, Nq, Nk]. @throws Refused where S overflowed in fp16.
template <class Scores>
std::vector<double> lse_of_scores(const Stage& stage, const Inputs& in, const Options& o, const Scores& S) {
  const Shape& shape = in.shape;
  const Sight sees(in, o);
  std::vector<double> lse(shape.batch * shape.heads * shape.Nq, -std::numeric_limits<double>::infinity());
  for (std::size_t row = 0; row < lse.size(); ++row) {
    const Index i = row % shape.Nq, h = row / shape.Nq % shape.heads, b = row / shape.Nq / shape.heads;
    double m = std::numeric_limits<double>::lowest(), l = 0;
    for (Index j = 0; j < shape.Nk; ++j) {
      if (!sees(b, h, i, j)) continue;
      const double s = S[row * shape.Nk + j], m_new = std::max(m, s);
      if (in.dtype == Format::fp16 && !std::isfinite(s)) refuse_scores_beyond_fp16(stage);
      l = l * std::exp(m - m_new) + std::exp(s - m_new);
      m = m_new;
    }
    if (l != 0) lse[row] = m + std::log(l);
  }
  return lse;
}

/// A row that sees a key has a finite LSE, unless its scores overflow the accumulator: then it throws Refused.
void refuse_overflow(const Inputs& inputs, const Options& options, const std::vector<double>& lse);

/// Inputs are finite, so an output that is not comes from a number beyond what the format or the accumulator holds:
/// then it throws Refused.
void refuse_infinite_outputs(const Stage& stage, const Inputs& inputs, const Outputs& outputs);

/// The result of `run(inputs)`, which has `outputs`. NaN and infinities are refused or, where they are allowed, taken
/// out before, and the rows that see them marked afterwards.
template <class Run>
auto run_on_finite(const Inputs& inputs, const Options& options, bool allow_nonfinite, const Run& run) {
  if (!allow_nonfinite) require_finite(inputs);
  if (!allow_nonfinite || first_nonfinite(inputs).empty()) return run(inputs);
  Inputs finite = inputs;
  const NonfiniteRows rows = take_out_nonfinite(finite);
  auto result = run(finite);
  if (!result.outputs.o.empty()) mark_nonfinite(rows, inputs, options, result.outputs);  // count-only runs have none
  return result;
}

}  // namespace flash

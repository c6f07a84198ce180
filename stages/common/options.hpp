// What a run is asked to compute. Conventions: docs/conventions.md.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <stdexcept>

#include "sim/memory/eigen.hpp"

namespace flash {

/// What was asked, why not, what would do: one sentence.
struct Refused : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Sizes of one attention problem [elements]. Q [batch, heads, Nq, d]; K [batch, kv_heads, Nk, d]; V [.., Nk, dv].
struct Shape {
  Index batch = 1, heads = 1, kv_heads = 1;
  Index Nq = 0, Nk = 0;
  Index d = 0, dv = 0;
};

/// Keys that query i sees around its centre i + (Nk − Nq), both ends included; a negative side is unbounded.
struct Window {
  std::int64_t left = -1, right = -1;
};

/// How the four warps of a CTA share a tile of S: each has rows, or each has keys.
enum class Warps { split_q, split_k };

/// What is asked of a run beside its arrays. The defaults are plain attention with scale 1/√d.
struct Options {
  bool causal = false;                 ///< key j is seen by query i iff j <= i + (Nk − Nq): bottom-right aligned
  Window window;
  double softcap = 0;                  ///< c: s <- c·tanh(s/c), before the mask; 0 is off
  double dropout = 0;                  ///< p, on P after softmax; kept entries × 1/(1−p)
  std::uint64_t dropout_seed = 0;
  std::optional<double> scale;         ///< of the scores; 1/√d when not given
  bool first_touch = false;            ///< stage 03: O, l, m are not initialised in HBM; the first visit creates them
  Index br = 0, bc = 0;                ///< tile rows and columns; 0: from the budget
  Index splits = 1;                    ///< parts of the keys that are worked on apart, and combined
  std::optional<Warps> warps;          ///< split_q when not given
  bool deterministic = false;          ///< backward: sums of several workers in one order on a GPU, too
};

inline double softmax_scale(const Shape& shape, const Options& options) {
  return options.scale.value_or(1 / std::sqrt(static_cast<double>(shape.d)));
}

}  // namespace flash

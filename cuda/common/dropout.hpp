// Dropout of a tile's probabilities. The rule is in rules.hpp.
#pragma once

#include "cuda/common/warp_tile.hpp"

namespace flash::cuda {

/// Of one head, as of_head() gave it.
class Dropout {
 public:
  __device__ __forceinline__ explicit Dropout(const Problem& p)
      : p_(p.dropout), seed_(p.dropout_seed), sequence_(p.sequence), head_(p.head) {}

  /// P∘Z of a warp's part of a tile: dropped entries 0, kept ones × 1/(1−p).
  template <int M, int N, class Mma>
  __device__ __forceinline__ void apply(WarpTile<M, N, Mma>& P, Range rows, Range cols) const {
    if (p_ == 0) return;
    const float kept = static_cast<float>(1 / (1 - p_));
    P.transform([&](int r, int c, float x) {
      const std::uint32_t word =
          rules::dropout_word(seed_, sequence_, head_, rows.begin + P.row(r), cols.begin + P.col(c));
      return rules::dropout_keeps(word, p_) ? kept * x : 0;
    });
  }

 private:
  double p_;
  std::uint64_t seed_;
  int sequence_, head_;
};

}  // namespace flash::cuda

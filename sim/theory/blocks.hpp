// Block sizes that a paper states as a function of M, the SRAM's size in elements.
#pragma once

#include <algorithm>

#include "sim/memory/range.hpp"

namespace flash::theory {

struct Blocks {
  Index Br = 0;  ///< queries of a tile
  Index Bc = 0;  ///< keys of a tile
};

using sim::ceil_div;

/// FA1, Algorithm 1, line 1: Bc = ⌈M/4d⌉, Br = min(Bc, d), `M` [elements] > 0. With dv ≠ d the larger one stands for
/// d. The tiles overflow M for M < 8d² (S, l, m and the ceilings are not in the paper's sum).
constexpr Blocks paper_blocks(Index M, Index d, Index dv) {
  const Index width = std::max(d, dv);
  const Index Bc = ceil_div(M, 4 * width);
  return {std::min(Bc, width), Bc};
}

constexpr Blocks paper_blocks(Index M, Index d) { return paper_blocks(M, d, d); }

}  // namespace flash::theory

// A loop nest that only counts: Algorithm 4 as printed, which no stage runs. One head, N = Nq = Nk, d = dv, M in
// elements; it returns the HBM elements moved.
#pragma once

#include "sim/memory/eigen.hpp"

namespace flash::theory {

/// FA1, Algorithm 4: the backward pass with l and m in HBM and D computed at every visit, in Algorithm 1's blocks.
Index walk_algorithm_4(Index N, Index d, Index M);

}  // namespace flash::theory

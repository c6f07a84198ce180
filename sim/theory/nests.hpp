// Two loop nests that only count: Algorithm 4 as printed, which no stage runs, and a wrong choice of block sizes, the
// negative control of Theorem 2. One head, N = Nq = Nk, d = dv, M in elements; each returns HBM elements moved.
#pragma once

#include "sim/memory/eigen.hpp"

namespace flash::theory {

/// FA1, Algorithm 4: the backward pass with l and m in HBM and D computed at every visit, in Algorithm 1's blocks.
Index walk_algorithm_4(Index N, Index d, Index M);

/// FA2's order (Q outside) with Algorithm 1's blocks. Br = min(⌈M/4d⌉, d) stops growing at d, so that K and V are read
/// N/d times however large M is: Theorem 2 does not hold.
Index walk_capped_br(Index N, Index d, Index M);

}  // namespace flash::theory

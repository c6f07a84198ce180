// Non-finite inputs. A product of a tile with NaN or infinity in it would spread to rows that do not see it (0·∞ is
// NaN). So the values are taken out before a run, and afterwards the rows that see one are marked NaN.
#pragma once

#include "stages/common/inputs.hpp"

namespace flash {

/// Rows of Q, K, V and dO that hold a value which is not finite: [batch, heads or kv_heads, rows].
struct NonfiniteRows {
  std::vector<bool> q, k, v, dout;
  bool any() const;
};

/// Finds the rows and puts 0 in place of each value that is not finite.
NonfiniteRows take_out_nonfinite(Inputs& inputs);

/// Marks NaN what sees such a row: O and LSE of a query with a non-finite q, or that sees a non-finite k or v; dQ, dK and
/// dV likewise, with dO.
void mark_nonfinite(const NonfiniteRows& rows, const Inputs& inputs, const Options& options, Outputs& outputs);

/// "q[0,1,2,3] is nan": the first value that is not finite; empty when all are.
std::string first_nonfinite(const Inputs& inputs);

}  // namespace flash

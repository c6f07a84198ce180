// How far a right program may be from the oracle, element by element: what the check's bounds are made of.
#pragma once

#include "stages/common/inputs.hpp"

namespace flash {

struct Bounds {
  /// No right program is further off than this: every rounding counted at full size and with the worst sign.
  Outputs worst;
  /// Size of what is rounded on the way to an element: its terms, weighted by how often they are rounded, as the root
  /// of their summed squares, for roundings mostly cancel. Times epsilon it is the error to expect. Empty for lse.
  Outputs typical;
};

/// Bounds of a program that sums in fp32 (fp64 where that is the format), rounds P and dS before their products and O,
/// dQ, dK, dV at the end, in any order of summation and with any running maximum. `round_scores`: it stores S and
/// dP in the format as well. `exact`: the oracle's outputs, with gradients if they are to be bounded. One pass in fp64
/// over the visible pairs.
Bounds rounding_bounds(const Inputs& inputs, const Options& options, const Outputs& exact, bool round_scores);

}  // namespace flash

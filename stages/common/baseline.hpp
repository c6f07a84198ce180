// The yardstick: what a plain attention program loses by computing in the run's format. Scores, P and dS are whole
// matrices in spirit; no tiles, no running maximum. Its error against the oracle is e_base of the tolerance.
#pragma once

#include "stages/common/inputs.hpp"

namespace flash {

/// O, LSE and, with `backward`, dQ, dK, dV, summed in fp32 (fp64 where that is the format) in index order.
/// P is rounded to the format before P·V, P and dS before the products of the backward pass (FA1, Algorithm 3), and
/// O, dQ, dK, dV at the end; LSE stays in fp32. `round_scores`: S, after softcap and ALiBi, and dP are rounded too, as
/// in a stage that stores them. Who sees whom follows the oracle. Throws Refused as oracle() does.
Outputs baseline(const Inputs& inputs, const Options& options, bool backward, bool round_scores);

}  // namespace flash

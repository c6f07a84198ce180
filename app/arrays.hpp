// The arrays of a problem: from .npy files, drawn, or an example.
#pragma once

#include "app/run_options.hpp"

namespace flash::app {

/// Fills shape, inputs, source and axes from --q --k --v, an example or the sizes; options.br, bc and scale where the
/// example sets them. Everything but what needs the run's tiles. Throws Refused.
void read_problem(const RunOptions& typed, Asked& asked);

/// The block mask [Tr,Tc] of the tiles in asked.options. Throws Refused where its shape is another.
void read_block_mask(const std::string& file, Asked& asked);

}  // namespace flash::app

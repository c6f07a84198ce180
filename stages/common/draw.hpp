// Inputs to run on: drawn at random, the shipped Q, K, V of a real model, and the example of the lessons.
#pragma once

#include <cstdint>
#include <filesystem>

#include "stages/common/inputs.hpp"

namespace flash {

/// q, k, v, dout rounded to the inputs' format.
void round_inputs(Inputs& inputs);

/// q, k, v of `shape`, bell-shaped with mean 0 and variance 1, rounded to `dtype`. An element depends on the seed, the
/// tensor and its index alone, and is computed in integers: every machine draws the same bits. Without dout.
Inputs draw_inputs(const Shape& shape, Format dtype, std::uint64_t seed);

/// Draws inputs.dout [batch, heads, Nq, dv] for a run of this seed: in the same way, from seed + 1.
void draw_dout(Inputs& inputs, std::uint64_t seed);

/// Queries, keys and values of the first attention layer of the sentence encoder all-MiniLM-L6-v2 on the Gettysburg
/// Address: 12 heads, N = 512, d = 32. `data`: the folder stages/common/data. Without dout.
/// Throws Refused where a file is missing or has another shape.
Inputs example_minilm(const std::filesystem::path& data, Format dtype);

/// The example that all lessons work by hand: N = 4, d = 2, meant for scale = 1 and Br = Bc = 2, with dO. The caller
/// sets these options. Scores are whole numbers, S = [1 0 2 0; 0 1 1 -1; 1 1 3 -1; 1 -1 1 1]: from the first tile to
/// the second the running maximum rises in rows 0 and 2 and stays in rows 1 and 3.
Inputs example_hand(Format dtype);

}  // namespace flash

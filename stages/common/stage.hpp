// What a stage needs, everything below the lesson: the problem in HBM (problem.hpp), machine and tiles (sim/memory),
// block sizes (blocks.hpp), visited tiles (visible_tiles.hpp), parts of the keys (parts.hpp); ScoreMask, dropout,
// lowest, inverse_of_sum (score_mask.hpp).
#pragma once

#include "stages/common/blocks.hpp"
#include "stages/common/parts.hpp"
#include "stages/common/score_mask.hpp"

namespace flash {

using sim::ceil_div;
using sim::Column;
using sim::Machine;
using sim::Range;
using sim::shares;
using sim::Tile;
using sim::tile_range;
using sim::tiles;
using sim::Worker;

}  // namespace flash

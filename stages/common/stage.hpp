// What a stage needs: the problem in HBM, the machine, tiles, masks. Everything below the lesson.
#pragma once

#include "stages/common/blocks.hpp"
#include "stages/common/score_mask.hpp"

namespace flash {

using sim::Column;
using sim::Machine;
using sim::Range;
using sim::Tile;
using sim::tiles;
using sim::Worker;

}  // namespace flash

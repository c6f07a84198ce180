// Additions of several CTAs to one tile in a fixed order: each waits for its turn.
#pragma once

#include "cuda/common/visible_tiles.hpp"

namespace flash::cuda {

/// Until `turn` others have added to a row tile. By a whole CTA. Those whose turn is earlier have to be CTAs of lower
/// numbers, which GPUs start first, though CUDA does not promise it: a CTA waits for those that run or have run.
__device__ __forceinline__ void wait_for_turn(int* turns, i64 row_tile, int turn, unsigned thread) {
  if (thread == 0) {
    const volatile int* now = turns + row_tile;
    while (*now != turn) {
    }
    __threadfence();  // what they have added is there
  }
  __syncthreads();  // nobody adds before
}

/// The next one may add.
__device__ __forceinline__ void pass_turn(int* turns, i64 row_tile, int turn, unsigned thread) {
  __threadfence();  // what this thread has added is there before it says so
  __syncthreads();  // all have added
  if (thread == 0) *const_cast<volatile int*>(turns + row_tile) = turn + 1;
}

}  // namespace flash::cuda

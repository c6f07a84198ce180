// A kernel that does nothing, launched as THREADS, GRID_Y, GRID_Z and SMEM say: what no device takes has to be refused.
#include "cuda/common/module.hpp"

namespace {

using namespace flash::cuda;

__global__ void nothing(const Problem) {}

TileShape tiles(const Problem&, std::size_t) { return {32, 32}; }

void launch(const Problem& p, flash::ptx::Stream stream) {
  if (p.batch > 0) flash::ptx::launch("test::nothing", nothing, dim3(1, GRID_Y, GRID_Z), THREADS, SMEM, stream, p);
}

}  // namespace

FLASH_MODULE = {"03_online_softmax/forward", 75, "fp16", "Q K V O l m", "causal", tiles, launch};

// Kernels that are wrong: they write zeros, and with RACE two warps write one word of shared memory.
#include "cuda/common/module.hpp"
#include "cuda/ptx/ptx.hpp"

namespace {

using namespace flash::cuda;

struct Smem {
  int word;
};

__global__ void zeros(const Problem p) {
  for (i64 n = threadIdx.x; n < p.batch * p.heads * p.Nq * p.d; n += blockDim.x) p.O[n] = __float2half_rn(0);
  for (i64 n = threadIdx.x; n < p.batch * p.heads * p.Nq; n += blockDim.x) p.LSE[n] = 0;
#ifdef RACE
  Smem& smem = flash::ptx::dynamic_smem<Smem>();
  if (threadIdx.x % 32 == 0) smem.word = static_cast<int>(threadIdx.x);
#endif
}

TileShape tiles(const Problem& p, std::size_t) { return p.d == 64 ? TileShape{32, 32} : TileShape{0, 0}; }

void launch(const Problem& p, flash::ptx::Stream stream) {
  if (p.d != 64) throw std::runtime_error("d = 64 alone");
  if (p.batch > 0) flash::ptx::launch("test::zeros", zeros, 1, 64, sizeof(Smem), stream, p);
}

}  // namespace

FLASH_MODULE = {"04_recomputed_backward/forward", 75, "fp16", "Q K V O LSE", "causal", tiles, launch};

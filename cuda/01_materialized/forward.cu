// 01 materialized: standard attention (Dao et al. 2022, Algorithm 0).
// Extends nothing. Three kernels, one after the other; a thread makes its element by itself.
// Why it matters: everything later has to give the same O.
// What it costs: S and P in global memory, traffic of size N², and each thread fetches its operands by itself.
// The ledger must say: Θ(N² + Nd) elements if caches caught every second use; the threads ask for Θ(N²d).
#include "cuda/common/kernel.hpp"

namespace flash::cuda::materialized {

// No shared memory, no tensor cores, few registers. A thread makes one element of S: 2d FLOPs, 4d bytes; or eight
// neighbours in a row of O: 16Nk FLOPs, 18Nk bytes.
constexpr int side = 16, threads = side * side;  // a CTA: 16 × 16 elements of S,
constexpr int warps = threads / 32;              // a row of P for each warp,
template <int d>
constexpr int rows_of = threads / (d / 8);       // or whole rows of O

// == pass: scores
template <int d>
__global__ void __launch_bounds__(threads) scores(const Problem problem) {
  const Problem p = of_head(problem, blockIdx.x);
  const int thread = threadIdx.x;
  const i64 i = i64(blockIdx.y) * side + thread / side, j = i64(blockIdx.z) * side + thread % side;
  if (i >= p.Nq || j >= p.Nk) return;
  // ---- load
  const half *Qi = p.Q + i * d, *Kj = p.K + j * d;              // [d] [d]
  // ---- scores
  float s = 0;
#pragma unroll
  for (int c = 0; c < d; c += 8) s += dot(load_eight(Qi + c), load_eight(Kj + c));
  s *= p.scale;                                                 // Alg. 0, line 1
  // ---- mask
  s = ScoreMask(p, p.slopes).apply(s, i, j);
  // ---- store
  p.S[i * p.Nk + j] = __float2half_rn(s);
}

// == pass: softmax
__global__ void __launch_bounds__(threads) softmax(const Problem problem) {
  const Problem p = of_head(problem, blockIdx.x);
  const int thread = threadIdx.x, lane = thread % 32;
  const i64 i = i64(blockIdx.y) * warps + thread / 32;          // one warp: one row
  if (i >= p.Nq) return;
  // ---- load
  const half* S = p.S + i * p.Nk;                               // [Nk]
  // ---- softmax
  float m = lowest, l = 0;
  for (i64 j = lane; j < p.Nk; j += 32) m = fmaxf(m, __half2float(S[j]));
  m = max_over<32>(m);                                              // Alg. 0, line 2
  for (i64 j = lane; j < p.Nk; j += 32) l += exp(__half2float(S[j]) - m);
  const float inverse = inverse_of_sum(sum_over<32>(l));
  // ---- store
  for (i64 j = lane; j < p.Nk; j += 32) p.P[i * p.Nk + j] = __float2half_rn(exp(__half2float(S[j]) - m) * inverse);
}

// == pass: output
template <int d>
__global__ void __launch_bounds__(threads) output(const Problem problem) {
  const Problem p = of_head(problem, blockIdx.x);
  const int thread = threadIdx.x;
  const i64 i = i64(blockIdx.y) * rows_of<d> + thread / (d / 8), c = thread % (d / 8) * 8;
  if (i >= p.Nq) return;
  // ---- load
  const half *Pi = p.P + i * p.Nk, *V = p.V + c;                // [Nk], eight columns of [Nk,d]
  // ---- accumulate
  float O[8] = {};
  for (i64 j = 0; j < p.Nk; ++j) add(O, Pi[j], load_eight(V + j * d));  // Alg. 0, line 3
  // ---- store
  store_eight(p.O + i * d + c, pack(O));
}

template <int d>
void forward(const Problem& p, ptx::Stream stream) {
  const i64 heads = p.batch * p.heads, Tr = ceil_div(p.Nq, side), Tc = ceil_div(p.Nk, side);
  ptx::launch("materialized::scores", scores<d>, grid(heads, Tr, Tc), threads, 0, stream, p);
  ptx::launch("materialized::softmax", softmax, grid(heads, ceil_div(p.Nq, warps)), threads, 0, stream, p);
  ptx::launch("materialized::output", output<d>, grid(heads, ceil_div(p.Nq, rows_of<d>)), threads, 0, stream, p);
}

TileShape tile_shape(const Problem&, std::size_t) { return {0, 0}; }

void launch(const Problem& p, ptx::Stream stream) {
  require_taken("01_materialized/forward", p);
  p.d == 64 ? forward<64>(p, stream) : forward<128>(p, stream);
}

}  // namespace flash::cuda::materialized

FLASH_MODULE = {"01_materialized/forward", 75, "fp16", "Q K V O S P", "causal window softcap alibi scale",
                flash::cuda::materialized::tile_shape, flash::cuda::materialized::launch};

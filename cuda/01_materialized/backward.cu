// 01 materialized, its backward pass (Dao et al. 2022, Algorithm 3), with the P that the forward pass left behind.
// Extends nothing. One product after the other, a kernel each; dP and dS go to global memory and come back.
// Why it matters: everything later has to give the same gradients.
// What it costs: P has to be kept, memory of size N², and traffic of the same size.
// The ledger must say: Θ(N² + Nd) elements if caches caught every second use; the threads ask for Θ(N²d).
#include "cuda/common/kernel.hpp"

namespace flash::cuda::materialized {

// No shared memory, no tensor cores, few registers. A thread makes one element of dP: 2d FLOPs, 4d bytes; or eight
// neighbours in a row of dQ, dK or dV: 16N FLOPs, 18N bytes.
constexpr int side = 16, threads = side * side;  // a CTA: 16 × 16 elements of dP,
constexpr int warps = threads / 32;              // a row of dS for each warp,
template <int d>
constexpr int rows_of = threads / (d / 8);       // or whole rows of dQ, dK, dV

__global__ void __launch_bounds__(threads) zeros(const Problem problem) {
  const Problem p = of_kv_head(problem, blockIdx.x);            // several heads add to one dK, dV
  const int thread = threadIdx.x;
  // ---- store
  store_zeros<threads>(p.dK, {0, p.Nk}, p.d, thread);
  store_zeros<threads>(p.dV, {0, p.Nk}, p.d, thread);
}

// == pass: dV
template <int d>
__global__ void __launch_bounds__(threads) dV_pass(const Problem problem) {
  const Problem p = of_head(problem, blockIdx.x);
  const int thread = threadIdx.x;
  const i64 j = i64(blockIdx.y) * rows_of<d> + thread / (d / 8), c = thread % (d / 8) * 8;
  if (j >= p.Nk) return;
  // ---- load
  const half *P = p.P + j, *dO = p.dO + c;                      // column j of [Nq,Nk], eight columns of [Nq,d]
  // ---- dV
  float dV[8] = {};
  for (i64 i = 0; i < p.Nq; ++i) add(dV, P[i * p.Nk], load_eight(dO + i * d));  // Alg. 3, line 1
  grouped(p) ? add_eight(p.dV + j * d + c, pack(dV)) : store_eight(p.dV + j * d + c, pack(dV));
}

// == pass: dP
template <int d>
__global__ void __launch_bounds__(threads) dP_pass(const Problem problem) {
  const Problem p = of_head(problem, blockIdx.x);
  const int thread = threadIdx.x;
  const i64 i = i64(blockIdx.y) * side + thread / side, j = i64(blockIdx.z) * side + thread % side;
  if (i >= p.Nq || j >= p.Nk) return;
  // ---- load
  const half *dOi = p.dO + i * d, *Vj = p.V + j * d;            // [d] [d]
  // ---- dP
  float dP = 0;
#pragma unroll
  for (int c = 0; c < d; c += 8) dP += dot(load_eight(dOi + c), load_eight(Vj + c));  // line 2
  // ---- store
  p.dP[i * p.Nk + j] = __float2half_rn(dP);
}

// == pass: dS
__global__ void __launch_bounds__(threads) dS_pass(const Problem problem) {
  const Problem p = of_head(problem, blockIdx.x);
  const int thread = threadIdx.x, lane = thread % 32;
  const i64 i = i64(blockIdx.y) * warps + thread / 32;          // one warp: one row
  if (i >= p.Nq) return;
  const ScoreMask mask(p, p.slopes);
  // ---- load
  const half *P = p.P + i * p.Nk, *dP = p.dP + i * p.Nk;        // [Nk]
  // ---- dS
  float D = 0;
  for (i64 j = lane; j < p.Nk; j += 32) D += __half2float(P[j]) * __half2float(dP[j]);
  D = sum_over<32>(D);
  for (i64 j = lane; j < p.Nk; j += 32) {
    float dS = __half2float(P[j]) * (__half2float(dP[j]) - D);  // line 3
    if (p.softcap > 0) dS = mask.derivative(dS, __half2float(p.S[i * p.Nk + j]), i, j);
    // ---- store
    p.dS[i * p.Nk + j] = __float2half_rn(dS);
  }
}

// == pass: dQ
template <int d>
__global__ void __launch_bounds__(threads) dQ_pass(const Problem problem) {
  const Problem p = of_head(problem, blockIdx.x);
  const int thread = threadIdx.x;
  const i64 i = i64(blockIdx.y) * rows_of<d> + thread / (d / 8), c = thread % (d / 8) * 8;
  if (i >= p.Nq) return;
  // ---- load
  const half *dS = p.dS + i * p.Nk, *K = p.K + c;               // [Nk], eight columns of [Nk,d]
  // ---- dQ
  float dQ[8] = {};
  for (i64 j = 0; j < p.Nk; ++j) add(dQ, dS[j], load_eight(K + j * d));
  for (float& x : dQ) x *= p.scale;                             // line 4
  store_eight(p.dQ + i * d + c, pack(dQ));
}

// == pass: dK
template <int d>
__global__ void __launch_bounds__(threads) dK_pass(const Problem problem) {
  const Problem p = of_head(problem, blockIdx.x);
  const int thread = threadIdx.x;
  const i64 j = i64(blockIdx.y) * rows_of<d> + thread / (d / 8), c = thread % (d / 8) * 8;
  if (j >= p.Nk) return;
  // ---- load
  const half *dS = p.dS + j, *Q = p.Q + c;                      // column j of [Nq,Nk], eight columns of [Nq,d]
  // ---- dK
  float dK[8] = {};
  for (i64 i = 0; i < p.Nq; ++i) add(dK, dS[i * p.Nk], load_eight(Q + i * d));
  for (float& x : dK) x *= p.scale;                             // line 5
  // ---- store
  grouped(p) ? add_eight(p.dK + j * d + c, pack(dK)) : store_eight(p.dK + j * d + c, pack(dK));
}

template <int d>
void backward(const Problem& p, ptx::Stream stream) {
  const i64 heads = p.batch * p.heads, Tr = ceil_div(p.Nq, side), Tc = ceil_div(p.Nk, side);
  if (grouped(p)) ptx::launch("materialized::zeros", zeros, grid(p.batch * p.kv_heads), threads, 0, stream, p);
  ptx::launch("materialized::dV", dV_pass<d>, grid(heads, ceil_div(p.Nk, rows_of<d>)), threads, 0, stream, p);
  ptx::launch("materialized::dP", dP_pass<d>, grid(heads, Tr, Tc), threads, 0, stream, p);
  ptx::launch("materialized::dS", dS_pass, grid(heads, ceil_div(p.Nq, warps)), threads, 0, stream, p);
  ptx::launch("materialized::dQ", dQ_pass<d>, grid(heads, ceil_div(p.Nq, rows_of<d>)), threads, 0, stream, p);
  ptx::launch("materialized::dK", dK_pass<d>, grid(heads, ceil_div(p.Nk, rows_of<d>)), threads, 0, stream, p);
}

TileShape tile_shape(const Problem&, std::size_t) { return {0, 0}; }

void launch(const Problem& p, ptx::Stream stream) {
  require_taken("01_materialized/backward", p);
  p.d == 64 ? backward<64>(p, stream) : backward<128>(p, stream);
}

}  // namespace flash::cuda::materialized

FLASH_MODULE = {"01_materialized/backward", 75, "fp16", "Q K V S P dO dQ dK dV dP dS", "causal window softcap alibi scale",
                flash::cuda::materialized::tile_shape, flash::cuda::materialized::launch};

// 04 recomputed backward (Dao et al. 2022, Algorithm 4), from Q, K, V, O, dO and LSE.
// Extends 01. The change: one kernel; P is made again from LSE tile by tile, and dP and dS stay in the SM.
// Why it helps: nothing of size N² is kept or moved.
// What it costs: the scores and their exponentials a second time, and dQ comes and goes for each tile of keys.
// The ledger must now say: Θ(N²d²/M) elements instead of Θ(N²).
#include "cuda/common/kernel.hpp"

namespace flash::cuda::recomputed_backward {

// Eight warps in two rows of four: each makes half the rows and a quarter of the columns of every product. P and dS go
// through shared memory, where the products find them transposed (dV, dK) and made by other warps (dQ).
// dK and dV stay in registers over the inner loop, Bc·d/256 of a thread each; S, P and dP take Br·Bc/256 each, dQ twice
// Br·d/256, Q, O and dO of the next tile Br·d/512 each: one CTA fills an SM.
// A tile takes 10·Br·Bc·d FLOPs and moves 14·Br·d + 4·Br bytes (Q, O, dO, LSE; dQ both ways), K to dV 8·Bc·d a column.
template <int d>
constexpr int Br = 4096 / d;
constexpr int Bc = 64;
constexpr int warps = 8, threads = 32 * warps;

template <int d>
struct Smem {
  Tile<Bc, d> K, V;
  Tile<Br<d>, d> Q, dO;
  Tile<Br<d>, Bc> P, dS;
  float LSE[Br<d>], D[Br<d>];
  float slope;
};
static_assert(sizeof(Smem<64>) == 55'824 && sizeof(Smem<128>) == 61'712);

template <int d>
__global__ void __launch_bounds__(threads) zeros(const Problem problem) {
  const Problem p = of_kv_head(problem, blockIdx.x);            // one CTA: one KV head
  const int thread = threadIdx.x;
  for (Range cols : tiles(p.Nk, Bc)) {                          // Alg. 4, line 5
    // ---- store
    store_zeros<threads>(p.dK, cols, d, thread);
    store_zeros<threads>(p.dV, cols, d, thread);
  }
}

template <int d>
__global__ void __launch_bounds__(threads) backward(const Problem problem) {
  constexpr int Br = recomputed_backward::Br<d>;
  auto& sm = ptx::dynamic_smem<Smem<d>>();
  ptx::name("Q", sm.Q), ptx::name("K", sm.K), ptx::name("V", sm.V), ptx::name("dO", sm.dO), ptx::name("P", sm.P);
  ptx::name("dS", sm.dS), ptx::name("LSE", sm.LSE), ptx::name("D", sm.D);
  const Problem p = of_head(problem, blockIdx.x);               // one CTA: one head
  const int thread = threadIdx.x, lane = thread % 32, warp_row = thread / 32 / 4, warp_col = thread / 32 % 4;
  const VisibleTiles visible(p, Br, Bc);
  const ScoreMask mask(p, &sm.slope, Br, Bc);
  if (p.slopes && thread == 0) sm.slope = *p.slopes;
  for (Range rows : tiles(p.Nq, Br)) {                          // line 5
    // ---- store
    visible.none(rows) ? store_zeros<threads>(p.dQ, rows, d, thread) : store_zeros<threads>(p.dQ_acc, rows, d, thread);
  }
  __syncthreads();  // the zeros of dQ are there
  for (Range cols : tiles(p.Nk, Bc)) {                          // line 6
    ptx::mark("column tile", static_cast<int>(cols.begin / Bc));
    // ---- load
    Transfer<Tile<Bc, d>, threads> K(thread), V(thread);        // [Bc,d], line 7
    K.read(p.K, cols), V.read(p.V, cols);
    K.write(sm.K), V.write(sm.V);
    WarpTile<Bc / 2, d / 4> dK(warp_row * Bc / 2, warp_col * d / 4, lane), dV = dK;  // [Bc,d], line 8
    Transfer<Tile<Br, d>, threads> dO(thread), Q(thread), O(thread);  // [Br,d], line 10: under way one tile ahead
    float LSE;                                                  // of row `thread`, too
    const auto read = [&](Range rows) {
      dO.read(p.dO, rows), Q.read(p.Q, rows), O.read(p.O, rows);
      LSE = thread < rows.size() ? p.LSE[rows.begin + thread] : 0;
    };
    const Tiles seen = visible.rows(cols);
    read(seen.first());
    for (Range rows : seen) {                                   // line 9
      ptx::mark("row tile", static_cast<int>(rows.begin / Br));
      // ---- load
      dO.write(sm.dO), Q.write(sm.Q);
      if (thread < Br) sm.LSE[thread] = LSE;
#pragma unroll
      for (int k = 0; k < dO.count; ++k) {                      // line 19 already: dO and O are at hand
        const float D = sum_over<dO.lanes>(dot(dO.eight[k], O.eight[k]));
        if (thread % dO.lanes == 0) sm.D[dO.row(k)] = D;
      }
      WarpTile<Br / 2, d / 4> dQ(warp_row * Br / 2, warp_col * d / 4, lane), dQ_before = dQ;  // [Br,d]
      dQ_before.load(p.dQ_acc, d, rows);
      __syncthreads();  // Q, dO, LSE, D, K, V and the slope are there
      read(seen.next(rows));
      // ---- scores
      WarpTile<Br / 2, Bc / 4> S(warp_row * Br / 2, warp_col * Bc / 4, lane), dP = S;  // [Br,Bc]
      S.add_product(sm.Q, transposed(sm.K));                    // line 11
      S.transform([&](int, int, float s) { return p.scale * s; });
      ptx::watch("S", S), ptx::watch("dP", dP), ptx::watch("dK", dK), ptx::watch("dV", dV);
      // ---- mask
      mask.apply(S, rows, cols);                                // line 12
      // ---- probabilities
      auto P = S;                                               // [Br,Bc]
      const auto LSE_i = S.column(sm.LSE);
      P.transform([&](int r, int, float s) { return exp(s - fmaxf(LSE_i[r], lowest)); });  // line 13, with LSE
      P.write(sm.P);
      __syncthreads();  // P is there
      // ---- dV
      dV.add_product(transposed(sm.P), sm.dO);                  // line 16
      // ---- dP
      dP.add_product(sm.dO, transposed(sm.V));                  // line 17
      // ---- dS
      auto& dS = dP;                                            // the same registers: dS takes the place of dP
      const auto D_i = S.column(sm.D);
      dS.transform([&](int r, int c, float dp) { return P(r, c) * (dp - D_i[r]); });  // line 20
      mask.derivative(dS, S, rows, cols);                       // of softcap
      dS.write(sm.dS);
      __syncthreads();  // dS is there
      // ---- dQ
      dQ.add_product(sm.dS, sm.K);                              // line 21
      dQ.transform([&](int r, int c, float dq) { return dQ_before(r, c) + p.scale * dq; });
      visible.last(rows, cols) ? dQ.store(p.dQ, d, rows) : dQ.store(p.dQ_acc, d, rows);  // between visits in fp32
      // ---- dK
      dK.add_product(transposed(sm.dS), sm.Q);                  // line 22
      __syncthreads();  // nobody reads Q any more, nor, after the last tile, K
    }
    // ---- store
    dK.transform([&](int, int, float dk) { return p.scale * dk; });
    grouped(p) ? dK.accumulate(p.dK, d, cols) : dK.store(p.dK, d, cols);  // line 24
    grouped(p) ? dV.accumulate(p.dV, d, cols) : dV.store(p.dV, d, cols);
  }
}

template <int d>
void launch_for(const Problem& p, ptx::Stream stream) {
  ptx::launch("recomputed_backward::zeros", zeros<d>, grid(p.batch * p.kv_heads), threads, 0, stream, p);
  ptx::launch("recomputed_backward::backward", backward<d>, grid(p.batch * p.heads), threads, sizeof(Smem<d>), stream,
              p);
}

TileShape tile_shape(const Problem& p, std::size_t) {
  if (p.d == 64) return {Br<64>, Bc};
  if (p.d == 128) return {Br<128>, Bc};
  return {0, 0};
}

void launch(const Problem& p, ptx::Stream stream) {
  require_taken("04_recomputed_backward/backward", p);
  p.d == 64 ? launch_for<64>(p, stream) : launch_for<128>(p, stream);
}

}  // namespace flash::cuda::recomputed_backward

FLASH_MODULE = {"04_recomputed_backward/backward", 75, "fp16", "Q K V O LSE dO dQ dK dV dQ_acc",
                "causal window softcap alibi scale", flash::cuda::recomputed_backward::tile_shape,
                flash::cuda::recomputed_backward::launch};

// 05a loop swap, its backward pass (Dao 2023, Algorithm 2), from Q, K, V, O, dO and LSE.
// Extends 04. The change: a tile of keys is a CTA, their parts of dQ are added up in global memory, and D is made
// before.
// Why it helps: one head gives work to many SMs, heads that share K and V share the loads, and O is read once.
// What it costs: two more kernels, for D and dQ's zeros and for dQ's own format; sums in any order.
// The ledger must now say: 16 N²d²/M elements in the place of 20.
#include "cuda/common/kernel.hpp"

namespace flash::cuda::fa2_partitioning {

// Eight warps in two rows of four: each makes half the rows and a quarter of the columns of every product. P and dS go
// through shared memory, where the products find them transposed (dV, dK) and made by other warps (dQ).
// dK and dV stay in registers over the inner loop, Bc·d/256 of a thread each; S, P and dP take Br·Bc/256 each, dQ
// Br·d/256, Q and dO of the next tile Br·d/512 each: one CTA fills an SM.
// A tile takes 10·Br·Bc·d FLOPs and moves 12·Br·d + 8·Br bytes (Q, dO, LSE, D; dQ both ways), K to dV 8·Bc·d a CTA.
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
__global__ void __launch_bounds__(threads) prepare(const Problem problem) {
  constexpr int Br = fa2_partitioning::Br<d>;
  const auto [head, row_block] = last_block_first(blockIdx.x, problem.Nq, Br);
  const Problem p = of_head(problem, head);                     // one CTA: one tile of rows
  const unsigned thread = threadIdx.x;
  const Range rows = tile_range(row_block, p.Nq, Br);
  // ---- store
  store_zeros<threads>(p.dQ_acc, rows, d, thread);              // Alg. 2, line 3
  // ---- load
  Transfer<Tile<Br, d>, threads> dO(thread), O(thread);         // [Br,d]
  dO.read(p.dO, rows), O.read(p.O, rows);
#pragma unroll
  for (int k = 0; k < dO.count; ++k) {
    // ---- dS
    const float D = sum_over<dO.lanes>(dot(dO.eight[k], O.eight[k]));  // line 4
    // ---- store
    if (thread % dO.lanes == 0 && dO.row(k) < rows.size()) p.D[rows.begin + dO.row(k)] = D;
  }
}

template <int d>
__global__ void __launch_bounds__(threads) backward(const Problem problem) {
  constexpr int Br = fa2_partitioning::Br<d>;
  auto& sm = ptx::dynamic_smem<Smem<d>>();
  ptx::name("Q", sm.Q), ptx::name("K", sm.K), ptx::name("V", sm.V), ptx::name("dO", sm.dO), ptx::name("P", sm.P);
  ptx::name("dS", sm.dS), ptx::name("LSE", sm.LSE), ptx::name("D", sm.D);
  const unsigned Tc = static_cast<unsigned>(ceil_div(problem.Nk, Bc));
  const i64 kv_head = blockIdx.x / Tc, group = problem.heads / problem.kv_heads;
  const Problem kv = of_head(problem, kv_head * group);         // one CTA: one tile of a KV head's keys
  const unsigned thread = threadIdx.x, lane = thread % 32, warp_row = thread / 32 / 4, warp_col = thread / 32 % 4;
  const VisibleTiles visible(kv, Br, Bc);
  const ScoreMask mask(kv, &sm.slope, Br, Bc);
  const Range cols = tile_range(blockIdx.x % Tc, kv.Nk, Bc);    // line 5
  const Tiles seen = visible.rows(cols);
  // ---- load
  Transfer<Tile<Bc, d>, threads> K(thread), V(thread);          // [Bc,d], line 6
  if (!seen.empty()) {
    K.read(kv.K, cols), V.read(kv.V, cols);
    K.write(sm.K), V.write(sm.V);
  }
  WarpTile<Bc / 2, d / 4> dK(warp_row * Bc / 2, warp_col * d / 4, lane), dV = dK;  // [Bc,d], line 7
  for (i64 head = kv_head * group; head < (kv_head + 1) * group; ++head) {  // that share the KV head
    const Problem p = of_head(problem, head);
    if (p.slopes && thread == 0) sm.slope = *p.slopes;
    Transfer<Tile<Br, d>, threads> dO(thread), Q(thread);       // [Br,d], line 9: under way one tile ahead
    float LSE, D;                                               // of row `thread`, too
    const auto read = [&](Range rows) {
      dO.read(p.dO, rows), Q.read(p.Q, rows);
      LSE = int(thread) < rows.size() ? p.LSE[rows.begin + thread] : 0;
      D = int(thread) < rows.size() ? p.D[rows.begin + thread] : 0;
    };
    read(seen.first());
    for (Range rows : seen) {                                   // line 8
      ptx::mark("row tile", static_cast<int>(rows.begin / Br));
      // ---- load
      dO.write(sm.dO), Q.write(sm.Q);
      if (thread < Br) sm.LSE[thread] = LSE, sm.D[thread] = D;
      __syncthreads();  // Q, dO, LSE, D, K, V and the slope are there
      read(seen.next(rows));
      // ---- scores
      WarpTile<Br / 2, Bc / 4> S(warp_row * Br / 2, warp_col * Bc / 4, lane), dP = S;  // [Br,Bc]
      S.add_product(sm.Q, transposed(sm.K));                    // line 10
      S.transform([&](int, int, float s) { return p.scale * s; });
      ptx::watch("S", S), ptx::watch("dP", dP), ptx::watch("dK", dK), ptx::watch("dV", dV);
      // ---- mask
      mask.apply(S, rows, cols);
      // ---- probabilities
      auto P = S;                                               // [Br,Bc]
      const auto LSE_i = S.column(sm.LSE);
      P.transform([&](int r, int, float s) { return exp(s - fmaxf(LSE_i[r], lowest)); });  // line 11, with LSE
      P.write(sm.P);
      __syncthreads();  // P is there
      // ---- dV
      dV.add_product(transposed(sm.P), sm.dO);                  // line 12
      // ---- dP
      dP.add_product(sm.dO, transposed(sm.V));                  // line 13
      // ---- dS
      auto& dS = dP;                                            // the same registers: dS takes the place of dP
      const auto D_i = S.column(sm.D);
      dS.transform([&](int r, int c, float dp) { return P(r, c) * (dp - D_i[r]); });  // line 14
      mask.derivative(dS, S, rows, cols);                       // of softcap
      dS.write(sm.dS);
      __syncthreads();  // dS is there
      // ---- dQ
      WarpTile<Br / 2, d / 4> dQ(warp_row * Br / 2, warp_col * d / 4, lane);  // [Br,d]
      dQ.add_product(sm.dS, sm.K);                              // line 15
      dQ.transform([&](int, int, float dq) { return p.scale * dq; });
      dQ.accumulate(p.dQ_acc, d, rows);                         // atomic, in fp32
      // ---- dK
      dK.add_product(transposed(sm.dS), sm.Q);                  // line 16
      __syncthreads();  // nobody reads Q, dO, LSE, D, P and dS any more
    }
  }
  // ---- store
  dK.transform([&](int, int, float dk) { return kv.scale * dk; });
  dK.store(kv.dK, d, cols), dV.store(kv.dV, d, cols);           // line 18
}

template <int d>
__global__ void __launch_bounds__(threads) convert(const Problem problem) {
  constexpr int Br = fa2_partitioning::Br<d>;
  const auto [head, row_block] = last_block_first(blockIdx.x, problem.Nq, Br);
  const Problem p = of_head(problem, head);                     // one CTA: one tile of rows
  const Range rows = tile_range(row_block, p.Nq, Br);
  const int thread = threadIdx.x, lane = thread % 32, warp_row = thread / 32 / 4, warp_col = thread / 32 % 4;
  WarpTile<Br / 2, d / 4> dQ(warp_row * Br / 2, warp_col * d / 4, lane);  // [Br,d]
  // ---- load
  dQ.load(p.dQ_acc, d, rows);
  // ---- store
  dQ.store(p.dQ, d, rows);
}

template <int d>
void launch_for(const Problem& p, ptx::Stream stream) {
  const dim3 row_tiles = grid(p.batch * p.heads * ceil_div(p.Nq, Br<d>));
  ptx::launch("fa2_partitioning::prepare", prepare<d>, row_tiles, threads, 0, stream, p);
  ptx::launch("fa2_partitioning::backward", backward<d>, grid(p.batch * p.kv_heads * ceil_div(p.Nk, Bc)), threads,
              sizeof(Smem<d>), stream, p);
  ptx::launch("fa2_partitioning::convert", convert<d>, row_tiles, threads, 0, stream, p);
}

TileShape tile_shape(const Problem& p, std::size_t) {
  if (p.d == 64) return {Br<64>, Bc};
  if (p.d == 128) return {Br<128>, Bc};
  return {0, 0};
}

void launch(const Problem& p, ptx::Stream stream) {
  require_taken("05_fa2_partitioning/a_loop_swap_backward", p);
  p.d == 64 ? launch_for<64>(p, stream) : launch_for<128>(p, stream);
}

}  // namespace flash::cuda::fa2_partitioning

FLASH_MODULE = {"05_fa2_partitioning/a_loop_swap_backward", 75, "fp16", "Q K V O LSE dO dQ dK dV dQ_acc D",
                "causal window softcap alibi scale", flash::cuda::fa2_partitioning::tile_shape,
                flash::cuda::fa2_partitioning::launch};

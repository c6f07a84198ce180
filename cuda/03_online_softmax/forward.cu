// 03 online softmax: FlashAttention's Algorithm 1 (Dao et al. 2022).
// Extends 02. The change: one kernel; the softmax of a row is built up while its tiles pass, so S and P stay in the SM.
// Why it helps: nothing of size N² goes to global memory any more.
// What it costs: O, l and m of every row come and go once for each tile of keys; one CTA has a whole head to do.
// The ledger must now say: Θ(N²d²/M) elements instead of Θ(N²).
#include "cuda/common/kernel.hpp"

namespace flash::cuda::online_softmax {

// Four warps, each of which makes a quarter of the tile's columns: [Br,Bc/4] of S and [Br,d/4] of O. So they split the
// keys: a row's maximum, its sum and P meet in shared memory. (FlashAttention-1 did so, too, and summed partial O's.)
// S takes Br·Bc/128 registers of a thread, O Br·d/128, what is on its way to shared memory (Bc + Br/2)·d/128; with all
// else about 128: four CTAs to an SM. By shared memory it is one on Turing, three on an sm_80, four on an sm_90.
// A tile takes 4·Br·Bc·d FLOPs and moves 10·Br·d + 16·Br bytes (Q; O_acc, l, m both ways),
// 2·Br·d less where O is stored for good, a new K and V 4·Bc·d more.
constexpr int Br = 32;
template <int d>
constexpr int Bc = 8192 / d;
constexpr int warps = 4, threads = 32 * warps;

template <int d>
struct Smem {
  Tile<Br, d> Q;
  Tile<Bc<d>, d> K, V;
  Tile<Br, Bc<d>> P;
  float l[Br], m[Br];                                           // as they were before this tile
  float max[warps][Br], sum[warps][Br];                         // of each warp's keys
  float slope;
};
static_assert(sizeof(Smem<64>) == 51'472 && sizeof(Smem<128>) == 49'424);

template <int d>
__global__ void __launch_bounds__(threads) forward(const Problem problem) {
  constexpr int Bc = online_softmax::Bc<d>;
  auto& sm = ptx::dynamic_smem<Smem<d>>();
  ptx::name("Q", sm.Q), ptx::name("K", sm.K), ptx::name("V", sm.V), ptx::name("P", sm.P);
  ptx::name("l", sm.l), ptx::name("m", sm.m), ptx::name("max", sm.max), ptx::name("sum", sm.sum);
  const Problem p = of_head(problem, blockIdx.x);               // one CTA: one head
  const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
  const VisibleTiles visible(p, Br, Bc);
  const ScoreMask mask(p, &sm.slope, Br, Bc);
  if (p.slopes && thread == 0) sm.slope = *p.slopes;
  for (Range rows : tiles(p.Nq, Br)) {                          // Alg. 1, line 2
    // ---- store
    visible.none(rows) ? store_zeros<threads>(p.O, rows, d, thread) : store_zeros<threads>(p.O_acc, rows, d, thread);
    if (thread < rows.size()) p.l[rows.begin + thread] = 0, p.m[rows.begin + thread] = lowest;
  }
  for (Range cols : tiles(p.Nk, Bc)) {                          // line 5
    ptx::mark("column tile", static_cast<int>(cols.begin / Bc));
    // ---- load
    Transfer<Tile<Bc, d>, threads> K(thread), V(thread);        // [Bc,d], line 6
    K.read(p.K, cols), V.read(p.V, cols);
    __syncthreads();  // nobody reads the K and V before any more; O, l and m are stored
    K.write(sm.K), V.write(sm.V);
    Transfer<Tile<Br, d>, threads> Q(thread);                   // [Br,d], line 8: under way one tile ahead,
    float l, m;                                                 // as are l and m of row `thread`
    const auto read = [&](Range rows) {
      Q.read(p.Q, rows);
      l = thread < rows.size() ? p.l[rows.begin + thread] : 0;
      m = thread < rows.size() ? p.m[rows.begin + thread] : lowest;
    };
    const Tiles seen = visible.rows(cols);
    read(seen.first());
    for (Range rows : seen) {                                   // line 7
      ptx::mark("row tile", static_cast<int>(rows.begin / Br));
      // ---- load
      Q.write(sm.Q);
      if (thread < Br) sm.l[thread] = l, sm.m[thread] = m;
      WarpTile<Br, d / warps> O(0, warp * d / warps, lane);     // [Br,d], line 8
      O.load(p.O_acc, d, rows);
      __syncthreads();  // Q, l, m, K, V and the slope are there; nobody reads P and the sums before any more
      read(seen.next(rows));
      // ---- scores
      WarpTile<Br, Bc / warps> S(0, warp * Bc / warps, lane);   // [Br,Bc]
      S.add_product(sm.Q, transposed(sm.K));                    // line 9
      S.transform([&](int, int, float s) { return p.scale * s; });
      ptx::watch("S", S), ptx::watch("O", O);
      // ---- mask
      mask.apply(S, rows, cols);
      // ---- softmax
      S.row_max().write(sm.max[warp], lane);
      __syncthreads();  // the maxima of all warps are there
      Column<Br> m_new, l_old, l_new;
#pragma unroll
      for (int r = 0; r < S.rows; ++r) {
        const int i = S.row(r);
        m_new[r] = sm.m[i];                                     // line 11: the new maximum at once
#pragma unroll
        for (int w = 0; w < warps; ++w) m_new[r] = fmaxf(m_new[r], sm.max[w][i]);
        l_old[r] = exp(sm.m[i] - m_new[r]) * sm.l[i];           // the old sum under the new maximum
      }
      auto& P = S;                                              // the same registers: P takes the place of S
      P.transform([&](int r, int, float s) { return exp(s - m_new[r]); });  // line 10, under it
      P.row_sum().write(sm.sum[warp], lane);
      P.write(sm.P);
      __syncthreads();  // P and the sums of all warps are there; nobody reads Q, l, m and the maxima any more
#pragma unroll
      for (int r = 0; r < S.rows; ++r) {
        l_new[r] = l_old[r];                                    // line 11
#pragma unroll
        for (int w = 0; w < warps; ++w) l_new[r] += sm.sum[w][S.row(r)];
      }
      // ---- accumulate
      O.transform([&](int r, int, float o) { return l_old[r] * o; });  // line 12: O <- (l_old·O + P·V) / l_new
      O.add_product(sm.P, sm.V);
      O.transform([&](int r, int, float o) { return inverse_of_sum(l_new[r]) * o; });
      // ---- store
      visible.last(rows, cols) ? O.store(p.O, d, rows) : O.store(p.O_acc, d, rows);  // between visits in fp32
#pragma unroll
      for (int r = 0; r < S.rows; ++r)                          // line 13: every warp knows them, each stores some
        if (r % warps == warp && lane % 4 == 0 && S.row(r) < rows.size()) {
          p.l[rows.begin + S.row(r)] = l_new[r];
          p.m[rows.begin + S.row(r)] = m_new[r];
        }
    }
  }
}

template <int d>
void launch_for(const Problem& p, ptx::Stream stream) {
  ptx::launch("online_softmax::forward", forward<d>, grid(p.batch * p.heads), threads, sizeof(Smem<d>), stream, p);
}

TileShape tile_shape(const Problem& p, std::size_t) {
  if (p.d == 64) return {Br, Bc<64>};
  if (p.d == 128) return {Br, Bc<128>};
  return {0, 0};
}

void launch(const Problem& p, ptx::Stream stream) {
  require_taken("03_online_softmax/forward", p);
  p.d == 64 ? launch_for<64>(p, stream) : launch_for<128>(p, stream);
}

}  // namespace flash::cuda::online_softmax

FLASH_MODULE = {"03_online_softmax/forward", 75, "fp16", "Q K V O O_acc l m", "causal window softcap alibi scale",
                flash::cuda::online_softmax::tile_shape, flash::cuda::online_softmax::launch};

// 04 recomputed backward, its forward pass: one number a row instead of two.
// Extends 03. The change: LSE = m + ln l takes the place of l and m.
// Why it helps: e^(S − LSE) is P itself, so that LSE is all that the backward pass needs to make P again.
// What it costs: a logarithm for each row and tile.
// The ledger must now say: one statistic a row instead of two, Θ(N²d²/M) as before.
#include "cuda/common/kernel.hpp"

namespace flash::cuda::recomputed_backward {

// Four warps, each of which makes a quarter of the tile's columns: [Br,Bc/4] of S and [Br,d/4] of O. So they split the
// keys: a row's maximum, its sum and P meet in shared memory. (FlashAttention-1 did so, too, and summed partial O's.)
// S takes Br·Bc/128 registers of a thread, O Br·d/128, what is on its way to shared memory (Bc + Br/2)·d/128; with all
// else about 128: four CTAs to an SM. By shared memory it is one on Turing, three on an sm_80, four on an sm_90.
// A tile takes 4·Br·Bc·d FLOPs and moves 10·Br·d + 8·Br bytes (Q; O_acc and LSE both ways),
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
  float LSE[Br];                                                // as it was before this tile
  float max[warps][Br], sum[warps][Br];                         // of each warp's keys
  float slope;
};
static_assert(sizeof(Smem<64>) == 51'344 && sizeof(Smem<128>) == 49'296);

template <int d>
__global__ void __launch_bounds__(threads) forward(const Problem problem) {
  constexpr int Bc = recomputed_backward::Bc<d>;
  auto& sm = ptx::dynamic_smem<Smem<d>>();
  ptx::name("Q", sm.Q), ptx::name("K", sm.K), ptx::name("V", sm.V), ptx::name("P", sm.P);
  ptx::name("LSE", sm.LSE), ptx::name("max", sm.max), ptx::name("sum", sm.sum);
  const Problem p = of_head(problem, blockIdx.x);               // one CTA: one head
  const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
  const VisibleTiles visible(p, Br, Bc);
  const ScoreMask mask(p, &sm.slope, Br, Bc);
  if (p.slopes && thread == 0) sm.slope = *p.slopes;
  for (Range rows : tiles(p.Nq, Br)) {                          // Alg. 1, line 2
    // ---- store
    visible.none(rows) ? store_zeros<threads>(p.O, rows, d, thread) : store_zeros<threads>(p.O_acc, rows, d, thread);
    if (thread < rows.size()) p.LSE[rows.begin + thread] = -INFINITY;
  }
  for (Range cols : tiles(p.Nk, Bc)) {                          // line 5
    ptx::mark("column tile", static_cast<int>(cols.begin / Bc));
    // ---- load
    Transfer<Tile<Bc, d>, threads> K(thread), V(thread);        // [Bc,d], line 6
    K.read(p.K, cols), V.read(p.V, cols);
    __syncthreads();  // nobody reads the K and V before any more; O and LSE are stored
    K.write(sm.K), V.write(sm.V);
    Transfer<Tile<Br, d>, threads> Q(thread);                   // [Br,d], line 8: under way one tile ahead,
    float LSE;                                                  // as is LSE of row `thread`
    const auto read = [&](Range rows) {
      Q.read(p.Q, rows);
      LSE = thread < rows.size() ? p.LSE[rows.begin + thread] : -INFINITY;
    };
    const Tiles seen = visible.rows(cols);
    read(seen.first());
    for (Range rows : seen) {                                   // line 7
      ptx::mark("row tile", static_cast<int>(rows.begin / Br));
      // ---- load
      Q.write(sm.Q);
      if (thread < Br) sm.LSE[thread] = LSE;
      WarpTile<Br, d / warps> O(0, warp * d / warps, lane);     // [Br,d], line 8
      O.load(p.O_acc, d, rows);
      __syncthreads();  // Q, LSE, K, V and the slope are there; nobody reads P and the sums before any more
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
        m_new[r] = fmaxf(sm.LSE[i], lowest);                    // LSE is at least the old maximum
#pragma unroll
        for (int w = 0; w < warps; ++w) m_new[r] = fmaxf(m_new[r], sm.max[w][i]);
        l_old[r] = exp(sm.LSE[i] - m_new[r]);                   // the old sum under the new maximum
      }
      auto& P = S;                                              // the same registers: P takes the place of S
      P.transform([&](int r, int, float s) { return exp(s - m_new[r]); });  // line 10, under it
      P.row_sum().write(sm.sum[warp], lane);
      P.write(sm.P);
      __syncthreads();  // P and the sums of all warps are there; nobody reads Q, LSE and the maxima any more
#pragma unroll
      for (int r = 0; r < S.rows; ++r) {
        l_new[r] = l_old[r];                                    // line 11
#pragma unroll
        for (int w = 0; w < warps; ++w) l_new[r] += sm.sum[w][S.row(r)];
      }
      // ---- accumulate
      O.transform([&](int r, int, float o) { return l_old[r] * o; });  // line 12: O <- e^(LSE − LSE_new)·O + …·V
      O.add_product(sm.P, sm.V);
      O.transform([&](int r, int, float o) { return inverse_of_sum(l_new[r]) * o; });
      // ---- store
      visible.last(rows, cols) ? O.store(p.O, d, rows) : O.store(p.O_acc, d, rows);  // between visits in fp32
#pragma unroll
      for (int r = 0; r < S.rows; ++r)                          // line 13: every warp knows them, each stores some
        if (r % warps == warp && lane % 4 == 0 && S.row(r) < rows.size())
          p.LSE[rows.begin + S.row(r)] = m_new[r] + __logf(l_new[r]);  // −∞ for a row that has seen no key
    }
  }
}

template <int d>
void launch_for(const Problem& p, ptx::Stream stream) {
  ptx::launch("recomputed_backward::forward", forward<d>, grid(p.batch * p.heads), threads, sizeof(Smem<d>), stream, p);
}

TileShape tile_shape(const Problem& p, std::size_t) {
  if (p.d == 64) return {Br, Bc<64>};
  if (p.d == 128) return {Br, Bc<128>};
  return {0, 0};
}

void launch(const Problem& p, ptx::Stream stream) {
  require_taken("04_recomputed_backward/forward", p);
  p.d == 64 ? launch_for<64>(p, stream) : launch_for<128>(p, stream);
}

}  // namespace flash::cuda::recomputed_backward

FLASH_MODULE = {"04_recomputed_backward/forward", 75, "fp16", "Q K V O O_acc LSE", "causal window softcap alibi scale",
                flash::cuda::recomputed_backward::tile_shape, flash::cuda::recomputed_backward::launch};

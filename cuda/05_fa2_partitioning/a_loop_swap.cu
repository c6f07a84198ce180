// 05a loop swap (Dao 2023, Algorithm 1): the loops of FlashAttention, the other way round.
// Extends 04. The change: the outer loop, over Q, becomes the grid, and the inner one runs over K and V; O stays
// unnormalised, and one division at the end makes it O.
// Why it helps: O, l and m stay in registers; row blocks need nothing of each other, so that one head fills many SMs.
// What it costs: K and V are read once for each row block; with 04's 32 rows that is more than 04 moves, until 05b's
// 128.
// The ledger must now say: 2Nd + N + 2Nd·Tr elements, of which O and LSE are written once.
#include "cuda/common/kernel.hpp"

namespace flash::cuda::fa2_partitioning {

// Four warps, each of which makes a quarter of the tile's columns: [Br,Bc/4] of S and [Br,d/4] of O. So they split the
// keys: a row's maximum, its sum and P meet in shared memory. (FlashAttention-1 did so, too, and summed partial O's.)
// S takes Br·Bc/128 registers of a thread, O Br·d/128, what is on its way to shared memory 2·Bc·d/256; with all
// else about 168: three CTAs to an SM. By shared memory it is one on Turing, three on an sm_80, four on an sm_90.
// A tile takes 4·Br·Bc·d FLOPs and moves 4·Bc·d bytes (K, V); a row block 4·Br·d + 4·Br more (Q, O, LSE).
constexpr int Br = 32;
template <int d>
constexpr int Bc = 8192 / d;
constexpr int warps = 4, threads = 32 * warps;

template <int d>
struct Smem {
  Tile<Br, d> Q;
  Tile<Bc<d>, d> K, V;
  Tile<Br, Bc<d>> P;
  float max[warps][Br], sum[warps][Br];                         // of each warp's keys
  float slope;
};
static_assert(sizeof(Smem<64>) == 51'216 && sizeof(Smem<128>) == 49'168);

template <int d>
__global__ void __launch_bounds__(threads) forward(const Problem problem) {
  constexpr int Bc = fa2_partitioning::Bc<d>;
  auto& sm = ptx::dynamic_smem<Smem<d>>();
  ptx::name("Q", sm.Q), ptx::name("K", sm.K), ptx::name("V", sm.V), ptx::name("P", sm.P);
  ptx::name("max", sm.max), ptx::name("sum", sm.sum);
  const auto [head, row_block] = last_block_first(blockIdx.x, problem.Nq, Br);
  const Problem p = of_head(problem, head);                     // one CTA: one row block of one head
  const unsigned thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
  const VisibleTiles visible(p, Br, Bc);
  const ScoreMask mask(p, &sm.slope, Br, Bc);
  if (p.slopes && thread == 0) sm.slope = *p.slopes;
  const Range rows = tile_range(row_block, p.Nq, Br);           // Alg. 1, line 3
  const Tiles seen = visible.cols(rows);
  // ---- load
  Transfer<Tile<Br, d>, threads> Q(thread);                     // [Br,d], line 4
  Transfer<Tile<Bc, d>, threads> K(thread), V(thread);          // [Bc,d], line 7: under way one tile ahead
  const auto read = [&](Range cols) { K.read(p.K, cols), V.read(p.V, cols); };
  if (!visible.none(rows)) Q.read(p.Q, rows), Q.write(sm.Q);
  read(seen.first());
  WarpTile<Br, d / warps> O(0, warp * d / warps, lane);         // [Br,d], line 5
  Column<Br> m(lowest), l(0);
  for (Range cols : seen) {                                     // line 6
    ptx::mark("column tile", static_cast<int>(cols.begin / Bc));
    // ---- load
    K.write(sm.K), V.write(sm.V);
    __syncthreads();  // K, V, Q and the slope are there
    read(seen.next(cols));
    // ---- scores
    WarpTile<Br, Bc / warps> S(0, warp * Bc / warps, lane);     // [Br,Bc]
    S.add_product(sm.Q, transposed(sm.K));                      // line 8
    S.transform([&](int, int, float s) { return p.scale * s; });
    ptx::watch("S", S), ptx::watch("O", O);
    // ---- mask
    mask.apply(S, rows, cols);
    // ---- softmax
    S.row_max().write(sm.max[warp], lane);
    __syncthreads();  // the maxima of all warps are there
    Column<Br> alpha;
#pragma unroll
    for (int r = 0; r < S.rows; ++r) {
      float m_new = m[r];                                       // line 9
#pragma unroll
      for (int w = 0; w < warps; ++w) m_new = fmaxf(m_new, sm.max[w][S.row(r)]);
      alpha[r] = exp(m[r] - m_new);                             // the old sums under the new maximum
      m[r] = m_new;
    }
    auto& P = S;                                                // the same registers: P takes the place of S
    P.transform([&](int r, int, float s) { return exp(s - m[r]); });
    P.row_sum().write(sm.sum[warp], lane);
    P.write(sm.P);
    __syncthreads();  // P and the sums of all warps are there; nobody reads the maxima any more
#pragma unroll
    for (int r = 0; r < S.rows; ++r) {
      l[r] *= alpha[r];
#pragma unroll
      for (int w = 0; w < warps; ++w) l[r] += sm.sum[w][S.row(r)];
    }
    // ---- accumulate
    O.transform([&](int r, int, float o) { return alpha[r] * o; });  // line 10
    O.add_product(sm.P, sm.V);
    __syncthreads();  // nobody reads K, V, P and the sums any more
  }
  // ---- store
  O.transform([&](int r, int, float o) { return inverse_of_sum(l[r]) * o; });  // line 12
  O.store(p.O, d, rows);                                        // line 14
#pragma unroll
  for (int r = 0; r < O.rows; ++r)                              // line 13, 15: every warp knows them, each stores some
    if (r % warps == int(warp) && lane % 4 == 0 && O.row(r) < rows.size())
      p.LSE[rows.begin + O.row(r)] = m[r] + __logf(l[r]);       // −∞ for a row that has seen no key
}

template <int d>
void launch_for(const Problem& p, ptx::Stream stream) {
  ptx::launch("fa2_partitioning::forward", forward<d>, grid(p.batch * p.heads * ceil_div(p.Nq, Br)), threads,
              sizeof(Smem<d>), stream, p);
}

TileShape tile_shape(const Problem& p, std::size_t) {
  if (p.d == 64) return {Br, Bc<64>};
  if (p.d == 128) return {Br, Bc<128>};
  return {0, 0};
}

void launch(const Problem& p, ptx::Stream stream) {
  require_taken("05_fa2_partitioning/a_loop_swap", p);
  p.d == 64 ? launch_for<64>(p, stream) : launch_for<128>(p, stream);
}

}  // namespace flash::cuda::fa2_partitioning

FLASH_MODULE = {"05_fa2_partitioning/a_loop_swap", 75, "fp16", "Q K V O LSE", "causal window softcap alibi scale",
                flash::cuda::fa2_partitioning::tile_shape, flash::cuda::fa2_partitioning::launch};

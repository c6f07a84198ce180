// 05d asynchronous copies.
// Extends 05c. The change: cp.async brings K and V; each is on its way while the other one is multiplied.
// Why it helps: what was waited for comes while products are made, and no register holds what is under way.
// What it costs: nothing but order: who waits for which copies, and which barrier frees a tile.
// The ledger must now say: the same.
#include "cuda/common/kernel.hpp"

namespace flash::cuda::fa2_partitioning {

// Four warps of 32 rows. S takes Br·Bc/128 registers of a thread, O Br·d/128, together 192: with 255 two CTAs to an SM.
// A tile takes 4·Br·Bc·d FLOPs and moves 4·Bc·d bytes (K, V); a row block 4·Br·d + 4·Br more (Q, O, LSE).
constexpr int Br = 128;
template <int d>
constexpr int Bc = 8192 / d;
constexpr int warps = 4, threads = 32 * warps;
using Mma = K16<Fp16>;

template <int d>
struct Smem {
  SwizzledTile<Br, d> Q;                                           // in the end O takes its place
  SwizzledTile<Bc<d>, d> K, V;
};
static_assert(sizeof(Smem<64>) == 49'152 && sizeof(Smem<128>) == 65'536);

template <int d>
__global__ void __launch_bounds__(threads) forward(const Problem problem) {
  constexpr int Bc = fa2_partitioning::Bc<d>;
  auto& sm = ptx::dynamic_smem<Smem<d>>();
  ptx::name("Q", sm.Q), ptx::name("K", sm.K), ptx::name("V", sm.V);
  const auto [head, row_block] = last_block_first(blockIdx.x, problem.Nq, Br);
  const Problem p = of_head(problem, head);                     // one CTA: one row block of one head
  const unsigned thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
  const VisibleTiles visible(p, Br, Bc);
  const SightMask mask(p, Br, Bc);
  const float to_log2 = p.scale * log2_e;                       // e^(scale·(s − m)) is 2^(to_log2·(s − m))
  const Range rows = tile_range(row_block, p.Nq, Br);           // Alg. 1, line 3
  const Tiles seen = visible.cols(rows);
  // ---- load
  if (!visible.none(rows)) {
    copy_async<threads>(sm.Q, p.Q, rows, thread);               // [Br,d], line 4
    copy_async<threads>(sm.K, p.K, seen.first(), thread);       // [Bc,d], line 7: the first K comes with Q
  }
  ptx::cp_async_commit_group();
  WarpTile<Br / warps, d, Mma> O(warp * Br / warps, 0, lane);   // [Br,d], line 5
  Column<Br / warps> m(lowest), l(0);                           // m: of S, unscaled; l: of the lane's own columns
  for (Range cols : seen) {                                     // line 6
    ptx::mark("column tile", static_cast<int>(cols.begin / Bc));
    // ---- load
    ptx::cp_async_wait_group<0>();
    __syncthreads();  // K and Q are there; nobody reads the V before any more
    copy_async<threads>(sm.V, p.V, cols, thread);               // [Bc,d], line 7: while S is made
    ptx::cp_async_commit_group();
    // ---- scores
    WarpTile<Br / warps, Bc, Mma> S(warp * Br / warps, 0, lane);  // [Br,Bc]
    S.add_product(sm.Q, transposed(sm.K));                      // line 8
    ptx::watch("S", S), ptx::watch("O", O);
    // ---- load (j+1)
    ptx::cp_async_wait_group<0>();
    __syncthreads();  // V is there; nobody reads K any more
    if (const Range next = seen.next(cols); next.size() > 0)
      copy_async<threads>(sm.K, p.K, next, thread);             // during the softmax and the product with V
    ptx::cp_async_commit_group();
    // ---- mask
    mask.apply(S, rows, cols);
    // ---- softmax
    const auto max = S.row_max();
    Column<Br / warps> alpha;
#pragma unroll
    for (int r = 0; r < S.rows; ++r) {
      const float m_new = fmaxf(m[r], max[r]);                  // line 9
      alpha[r] = ptx::ex2(to_log2 * (m[r] - m_new));            // the old sums under the new maximum
      m[r] = m_new;
    }
    auto& P = S;                                                // the same registers: P takes the place of S
    P.transform([&](int r, int, float s) { return ptx::ex2(to_log2 * (s - m[r])); });
    const auto sum = P.lane_sum();
#pragma unroll
    for (int r = 0; r < S.rows; ++r) l[r] = alpha[r] * l[r] + sum[r];
    // ---- accumulate
    O.transform([&](int r, int, float o) { return alpha[r] * o; });  // line 10
    O.add_product(P.as_operand(), sm.V);
  }
  // ---- store
  const auto row_sum = sum_over_quads(l);
  O.transform([&](int r, int, float o) { return inverse_of_sum(row_sum[r]) * o; });  // line 12
  __syncwarp();  // the warp's lanes have read its rows of Q, which no other warp reads
  O.write(sm.Q);
  __syncthreads();  // all of O is there
  store_rows<threads>(p.O, sm.Q, rows, thread);                 // line 14
  const auto LSE = [&](int r) { return p.scale * m[r] + __logf(row_sum[r]); };  // −∞ for a row that has seen no key
  store_column(p.LSE, O, rows, LSE);                            // line 13, 15
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
  require_taken("05_fa2_partitioning/d_async_copies", p);
  p.d == 64 ? launch_for<64>(p, stream) : launch_for<128>(p, stream);
}

}  // namespace flash::cuda::fa2_partitioning

FLASH_MODULE = {"05_fa2_partitioning/d_async_copies", 80, "fp16", "Q K V O LSE", "causal window",
                flash::cuda::fa2_partitioning::tile_shape, flash::cuda::fa2_partitioning::launch};

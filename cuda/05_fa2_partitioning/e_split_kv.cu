// 05e split KV: for decoding, where few queries meet many keys; and all options.
// Extends 05d. The change: the grid splits the keys, too; each split leaves its own O and LSE, and a second kernel
// combines them.
// Why it helps: one row block of each head does not fill a GPU; its splits do, and together they read K and V at full
// speed.
// What it costs: O in fp32 and LSE of each split go to HBM and back.
// The ledger must now say: with one split the same; with S, 2S·(Nd + N) more, and Q read S times.
#include "cuda/common/kernel.hpp"

namespace flash::cuda::fa2_partitioning {

/// What a problem asks for. `plain`: nothing but causal and window, one split. `causal`: that, with d = 256, where
/// smaller tiles keep closer to the diagonal. `few`: up to 16 queries, as in decoding, with all options: one warp is a
/// CTA, so that many copies are under way. `other`: modifiers, which need registers; splits, up to 64 queries, and
/// small devices, which want small tiles.
enum class Use { plain, causal, few, other };

/// Tiles and warps.
template <int d, Use use>
struct Tiling {
  static constexpr int warps = use == Use::few ? 1 : d > 128 && use == Use::plain ? 8 : 4, threads = 32 * warps;
  static constexpr int Br = use == Use::plain ? 128 : 16 * warps;
  static constexpr int Bc = use == Use::causal ? 48
                            : use == Use::plain ? d <= 64 ? 128 : d <= 192 ? 64 : 96
                                                : d <= 128 ? 64 : 32;
};
// S takes Br·Bc/threads registers of a thread, O Br·d/threads, together 192 at most: with 255 two CTAs of four warps,
// or one of eight, to an SM.
// A tile takes 4·Br·Bc·d FLOPs and moves 4·Bc·d bytes (K, V); a row block 4·Br·d + 4·Br more (Q, O, LSE), each split of
// it 6·Br·d + 4·Br.

template <int d, Use use>
struct Smem {
  SwizzledTile<Tiling<d, use>::Br, d> Q;                        // in the end O takes its place
  SwizzledTile<Tiling<d, use>::Bc, d> K, V;
  float slope;
};

template <class Element, int d, Use use>
__global__ void __launch_bounds__(Tiling<d, use>::threads) forward(const Problem problem) {
  using T = Tiling<d, use>;
  constexpr bool plain = use == Use::plain || use == Use::causal;
  using Mma = K16<Element>;
  constexpr int Br = T::Br, Bc = T::Bc, warps = T::warps, threads = T::threads;
  auto& sm = ptx::dynamic_smem<Smem<d, use>>();
  ptx::name("Q", sm.Q), ptx::name("K", sm.K), ptx::name("V", sm.V);
  const Splits splits(problem, Bc);
  const int split = blockIdx.x % splits.count;
  const auto [head, row_block] = last_block_first(blockIdx.x / splits.count, problem.Nq, Br);
  const Problem p = of_head(problem, head);                     // one CTA: one split of one row block of one head
  const unsigned thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
  const VisibleTiles visible(p, Br, Bc);
  const ScoreMask mask(p, &sm.slope, Br, Bc);
  const SightMask sight(p, Br, Bc);
  const Dropout dropout(p);
  if (!plain && p.slopes && thread == 0) sm.slope = *p.slopes;
  const float scale = plain ? p.scale : 1;                      // of S as it is exponentiated: modifiers want it scaled
  const float to_log2 = scale * log2_e;                         // e^(scale·(s − m)) is 2^(to_log2·(s − m))
  const Range rows = tile_range(row_block, p.Nq, Br);           // Alg. 1, line 3
  const Tiles seen = splits.part(visible.cols(rows), split);
  // ---- load
  if (!seen.empty()) {
    copy_async<threads>(sm.Q, p.Q, rows, thread);               // [Br,d], line 4
    copy_async<threads>(sm.K, p.K, seen.first(), thread);       // [Bc,d], line 7: the first K comes with Q
  }
  ptx::cp_async_commit_group();
  WarpTile<Br / warps, d, Mma> O(warp * Br / warps, 0, lane);   // [Br,d], line 5
  Column<Br / warps> m(lowest), l(0);                           // m: of S; l: of the lane's own columns
  for (Range cols : seen) {                                     // line 6
    ptx::mark("column tile", static_cast<int>(cols.begin / Bc));
    // ---- load
    ptx::cp_async_wait_group<0>();
    __syncthreads();  // K, Q and the slope are there; nobody reads the V before any more
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
    if constexpr (plain) {
      sight.apply(S, rows, cols);
    } else {
      S.transform([&](int, int, float s) { return __fmul_rn(p.scale, s); });  // rounded before m is subtracted
      mask.apply(S, rows, cols);
    }
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
    if constexpr (!plain) dropout.apply(P, rows, cols);
    // ---- accumulate
    O.transform([&](int r, int, float o) { return alpha[r] * o; });  // line 10
    O.add_product(P.as_operand(), sm.V);
  }
  // ---- store
  const auto row_sum = sum_over_quads(l);
  O.transform([&](int r, int, float o) { return inverse_of_sum(row_sum[r]) * o; });  // line 12
  const auto LSE = [&](int r) { return scale * m[r] + __logf(row_sum[r]); };  // −∞ for a row that has seen no key
  if (!plain && splits.count > 1) {
    O.store(p.partial_O + split * p.Nq * d, d, rows);
    store_column(p.partial_LSE + split * p.Nq, O, rows, LSE);
    return;
  }
  __syncwarp();  // the warp's lanes have read its rows of Q, which no other warp reads
  O.write(sm.Q);
  __syncthreads();  // all of O is there
  store_rows<threads>(p.O, sm.Q, rows, thread);                 // line 14
  store_column(p.LSE, O, rows, LSE);                            // line 13, 15
}

// == pass: combine
// O = Σ e^(LSE_s − LSE)·O_s, LSE = ln Σ e^LSE_s. One warp for each row; a lane knows LSE_s of the splits lane, 32 +
// lane, …
constexpr int most_splits = 128, combine_threads = 128;

template <class Element, int d>
__global__ void __launch_bounds__(combine_threads) combine(const Problem problem, int splits) {
  const unsigned lane = threadIdx.x % 32;
  const i64 index = (i64(blockIdx.x) * combine_threads + threadIdx.x) / 32, row = index % problem.Nq;
  if (index >= problem.batch * problem.heads * problem.Nq) return;
  const Problem p = of_head(problem, index / problem.Nq);
  // ---- load
  float weight[most_splits / 32], max = lowest, sum = 0, O[d / 32] = {};
#pragma unroll
  for (int k = 0; k < most_splits / 32; ++k) {
    const int split = 32 * k + lane;
    weight[k] = split < splits ? p.partial_LSE[split * p.Nq + row] : -INFINITY;
    max = fmaxf(max, weight[k]);
  }
  // ---- softmax
  max = max_over<32>(max);
#pragma unroll
  for (float& w : weight) w = exp(w - max), sum += w;
  sum = sum_over<32>(sum);
  // ---- accumulate
#pragma unroll
  for (int k = 0; k < most_splits / 32; ++k)
    for (int split = 32 * k; split < min(splits, 32 * k + 32); ++split) {
      const float w = __shfl_sync(0xffffffffu, weight[k], split % 32) * inverse_of_sum(sum);
#pragma unroll
      for (int c = 0; c < d / 32; ++c) O[c] += w * p.partial_O[(split * p.Nq + row) * d + 32 * c + lane];
    }
  // ---- store
#pragma unroll
  for (int c = 0; c < d / 32; ++c) store_number<Element>(p.O + row * d + 32 * c + lane, O[c]);
  if (lane == 0) p.LSE[row] = max + __logf(sum);                // −∞ where no split has seen a key
}

template <class Element, int d, Use use>
void launch_with(const Problem& p, ptx::Stream stream) {
  using T = Tiling<d, use>;
  const int splits = Splits(p, T::Bc).count;
  ptx::launch("fa2_partitioning::forward", forward<Element, d, use>,
              grid(p.batch * p.heads * ceil_div(p.Nq, T::Br) * splits), T::threads, sizeof(Smem<d, use>), stream, p);
  if (splits > 1)
    ptx::launch("fa2_partitioning::combine", combine<Element, d>,
                grid(ceil_div(p.batch * p.heads * p.Nq, combine_threads / 32)), combine_threads, 0, stream, p, splits);
}

/// Where a CTA can have `smem` bytes of shared memory.
template <int d>
Use use_of(const Problem& p, std::size_t smem) {
  const bool modified = p.softcap > 0 || p.slopes || p.dropout > 0 || !(p.scale > 0);
  if (p.Nq <= Tiling<d, Use::few>::Br) return Use::few;
  if (modified || p.splits > 1 || p.Nq <= Tiling<d, Use::other>::Br) return Use::other;
  if (d == 256 && p.sees.right == 0 && sizeof(Smem<d, Use::causal>) <= smem) return Use::causal;
  return sizeof(Smem<d, Use::plain>) <= smem ? Use::plain : Use::other;
}

template <class Element, int d>
void launch_for(const Problem& p, ptx::Stream stream) {
  const Use use = p.Nq > 0 ? use_of<d>(p, ptx::device_limits().smem_per_cta) : Use::few;  // without a device, too
  if (use == Use::plain) launch_with<Element, d, Use::plain>(p, stream);
  if constexpr (d == 256)
    if (use == Use::causal) launch_with<Element, d, Use::causal>(p, stream);
  if (use == Use::few) launch_with<Element, d, Use::few>(p, stream);
  if (use == Use::other) launch_with<Element, d, Use::other>(p, stream);
}

template <int d, Use use>
constexpr TileShape shape_of() {
  return {Tiling<d, use>::Br, Tiling<d, use>::Bc};
}

TileShape tile_shape(const Problem& p, std::size_t smem) {
  TileShape shape{0, 0};
  with_head_size<32, 64, 96, 128, 192, 256>(p.d, [&](auto d) {
    const Use use = use_of<d>(p, smem);
    shape = use == Use::plain    ? shape_of<d, Use::plain>()
            : use == Use::causal ? shape_of<d, Use::causal>()
            : use == Use::few    ? shape_of<d, Use::few>()
                                 : shape_of<d, Use::other>();
  });
  return shape;
}

void launch(const Problem& p, ptx::Stream stream) {
  require_taken("05_fa2_partitioning/e_split_kv", p, {32, 64, 96, 128, 192, 256});
  require_splits("05_fa2_partitioning/e_split_kv", p.splits, most_splits);
  with_head_size<32, 64, 96, 128, 192, 256>(
      p.d, [&](auto d) { p.bf16 ? launch_for<Bf16, d>(p, stream) : launch_for<Fp16, d>(p, stream); });
}

}  // namespace flash::cuda::fa2_partitioning

FLASH_MODULE = {"05_fa2_partitioning/e_split_kv", 80, "fp16 bf16", "Q K V O LSE partial_O partial_LSE",
                "causal window softcap alibi dropout scale splits",
                flash::cuda::fa2_partitioning::tile_shape, flash::cuda::fa2_partitioning::launch};

// 05d asynchronous copies, the backward pass (Dao 2023, Algorithm 2), on Ampere's instructions; all options.
// Extends 05a. The change: cp.async brings the next Q and dO while this one's products are made; swizzled tiles without
// padding; and dQ's sums lie in HBM in the order of registers, so that a warp adds to 128 bytes at once.
// Why it helps: copies overlap with products, no product waits for banks, and a warp's additions meet 4 sectors, not 8.
// What it costs: two buffers for Q and dO; the last pass has to bring dQ's rows into their order.
// The ledger must now say: the same.
#include "cuda/common/kernel.hpp"

namespace flash::cuda::fa2_partitioning {

/// Tiles; warps, and how many rows of warps share S and dP, dK and dV, and dQ; buffers of Q and dO.
template <int Br_, int Bc_, int warps_, int S_rows_, int dK_rows_, int dQ_rows_, int buffers_>
struct Tiling {
  static constexpr int Br = Br_, Bc = Bc_, warps = warps_, threads = 32 * warps, buffers = buffers_;
  static constexpr int S_rows = S_rows_, dK_rows = dK_rows_, dQ_rows = dQ_rows_;
};

/// `plain`: nothing but causal and window. Everything else takes smaller tiles and one buffer: modifiers need
/// registers, small devices shared memory.
template <int d, bool plain>
constexpr auto tiling() {
  if constexpr (!plain && d > 128) return Tiling<32, 32, 4, 2, 2, 2, 1>();
  else if constexpr (!plain) return Tiling<64, 64, 8, 4, 4, 4, 1>();
  else if constexpr (d <= 64) return Tiling<128, 128, 8, 4, 4, 4, 2>();
  else if constexpr (d == 96) return Tiling<64, 128, 8, 2, 4, 4, 2>();
  else if constexpr (d == 128) return Tiling<64, 128, 8, 2, 4, 2, 2>();
  else return Tiling<64, 64, 8, 4, 2, 2, 2>();
}
template <int d, bool plain>
using TilingOf = decltype(tiling<d, plain>());

// dK and dV stay in registers over the inner loop, 2·Bc·d/threads of a thread; P and dP take Br·Bc/threads each, S as
// much with a softcap, dQ, when P and dP are gone, Br·d/threads: one CTA of eight warps, or two of four, fill an SM.
// A tile takes 10·Br·Bc·d FLOPs and moves 12·Br·d + 8·Br bytes (Q, dO, LSE, D; dQ both ways), K to dV 8·Bc·d a CTA.
template <int d, class T>
struct Smem {
  SwizzledTile<T::Bc, d> K, V;                                  // in the end dK and dV take their place
  SwizzledTile<T::Br, d> Q[T::buffers], dO[T::buffers];
  SwizzledTile<T::Br, T::Bc> P, dS;
  float LSE[T::buffers][T::Br], D[T::buffers][T::Br];
  float slope;
};

/// dQ of a tile of rows, as a warp holds it.
template <class Mma, int d, class T>
__device__ __forceinline__ auto dQ_part(unsigned warp, unsigned lane) {
  return part_of_tile<Mma, T::Br, d, T::warps, T::dQ_rows>(warp, lane);
}

/// Where its sums lie.
template <int d, class T>
__device__ __forceinline__ float* dQ_sums(const Problem& problem, i64 head, Range rows) {
  return problem.dQ_acc + (head * ceil_div(problem.Nq, T::Br) * T::Br + rows.begin) * d;
}

template <class Element, int d, class T>
__global__ void __launch_bounds__(T::threads) prepare(const Problem problem) {
  constexpr int threads = T::threads, lanes = d <= 64 ? 8 : d <= 128 ? 16 : 32;  // neighbouring threads share a row
  const auto [head, row_block] = last_block_first(blockIdx.x, problem.Nq, T::Br);
  const Problem p = of_head(problem, head);                     // one CTA: one tile of rows
  const unsigned thread = threadIdx.x;
  const Range rows = tile_range(row_block, p.Nq, T::Br);
  // ---- store
  dQ_part<K16<Element>, d, T>(thread / 32, thread % 32)
      .template store_registers<threads>(dQ_sums<d, T>(problem, head, rows), rows);  // zeros, Alg. 2, line 3
  if (p.deterministic && thread == 0) p.turn[row_block] = 0;
  for (int i = thread / lanes; i < rows.size(); i += threads / lanes) {
    // ---- load
    const i64 at = (rows.begin + i) * d + thread % lanes * 8;
    const bool there = thread % lanes < d / 8;
    const uint4 dO = there ? load_eight(p.dO + at) : uint4{}, O = there ? load_eight(p.O + at) : uint4{};
    // ---- dS
    const float D = sum_over<lanes>(dot<Element>(dO, O));       // line 4
    // ---- store
    if (thread % lanes == 0) p.D[rows.begin + i] = D;
  }
}

template <class Element, int d, bool plain>
__global__ void __launch_bounds__(TilingOf<d, plain>::threads) backward(const Problem problem) {
  using T = TilingOf<d, plain>;
  using Mma = K16<Element>;
  constexpr int Br = T::Br, Bc = T::Bc, warps = T::warps, threads = T::threads;
  auto& sm = ptx::dynamic_smem<Smem<d, T>>();
  ptx::name("Q", sm.Q), ptx::name("K", sm.K), ptx::name("V", sm.V), ptx::name("dO", sm.dO), ptx::name("P", sm.P);
  ptx::name("dS", sm.dS), ptx::name("LSE", sm.LSE), ptx::name("D", sm.D);
  const unsigned Tc = static_cast<unsigned>(ceil_div(problem.Nk, Bc));
  const i64 kv_head = blockIdx.x / Tc, group = problem.heads / problem.kv_heads;
  const Problem kv = of_head(problem, kv_head * group);         // one CTA: one tile of a KV head's keys
  const unsigned thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
  const VisibleTiles visible(kv, Br, Bc);
  const ScoreMask mask(kv, &sm.slope, Br, Bc);
  const SightMask sight(kv, Br, Bc);
  const Range cols = tile_range(blockIdx.x % Tc, kv.Nk, Bc);    // line 5
  const Tiles seen = visible.rows(cols);
  // ---- load
  if (!seen.empty()) {
    copy_async<threads>(sm.K, kv.K, cols, thread);              // [Bc,d], line 6
    copy_async<threads>(sm.V, kv.V, cols, thread);
  }
  auto dK = part_of_tile<Mma, Bc, d, warps, T::dK_rows>(warp, lane), dV = dK;  // [Bc,d], line 7
  int buffer = 0;
  for (i64 head = kv_head * group; head < (kv_head + 1) * group; ++head) {  // that share the KV head
    const Problem p = of_head(problem, head);
    const Dropout dropout(p);
    if (!plain && p.slopes && thread == 0) sm.slope = *p.slopes;
    const auto copy = [&](Range rows, int buffer) {
      copy_async<threads>(sm.dO[buffer], p.dO, rows, thread);   // [Br,d], line 9
      copy_async<threads>(sm.Q[buffer], p.Q, rows, thread);
      if (thread < Br) {
        const int bytes = int(thread) < rows.size() ? 4 : 0;    // zeros beyond
        ptx::cp_async_4(&sm.LSE[buffer][thread], p.LSE + rows.begin + thread, bytes);
        ptx::cp_async_4(&sm.D[buffer][thread], p.D + rows.begin + thread, bytes);
      }
    };
    if (!seen.empty()) copy(seen.first(), buffer);
    for (Range rows : seen) {                                   // line 8
      ptx::mark("row tile", static_cast<int>(rows.begin / Br));
      // ---- load
      ptx::cp_async_wait_all();
      __syncthreads();  // Q, dO, LSE, D, K, V, the slope are there; nobody reads those before, P and dS any more
      const Range next = seen.next(rows);
      if (T::buffers == 2 && next.size() > 0) copy(next, buffer ^ 1);
      // ---- scores
      auto S = part_of_tile<Mma, Br, Bc, warps, T::S_rows>(warp, lane), dP = S;  // [Br,Bc]
      S.add_product(sm.Q[buffer], transposed(sm.K));            // line 10
      ptx::watch("S", S), ptx::watch("dP", dP), ptx::watch("dK", dK), ptx::watch("dV", dV);
      // ---- mask
      S.transform([&](int, int, float s) { return __fmul_rn(p.scale, s); });  // rounded before LSE is subtracted
      if constexpr (plain)
        sight.apply(S, rows, cols);
      else
        mask.apply(S, rows, cols);
      // ---- probabilities
      auto P = S;                                               // [Br,Bc]
      const auto LSE = S.column(sm.LSE[buffer]);
      P.transform([&](int r, int, float s) { return exp(s - fmaxf(LSE[r], lowest)); });  // line 11, with LSE
      // ---- dV
      if constexpr (plain) {
        P.write(sm.P);
      } else {
        auto Z_P = P;
        dropout.apply(Z_P, rows, cols);
        Z_P.write(sm.P);
      }
      // ---- dP
      dP.add_product(sm.dO[buffer], transposed(sm.V));          // line 13
      if constexpr (!plain) dropout.apply(dP, rows, cols);
      // ---- dS
      auto& dS = dP;                                            // the same registers: dS takes the place of dP
      const auto D = S.column(sm.D[buffer]);
      dS.transform([&](int r, int c, float dp) { return P(r, c) * (dp - D[r]); });  // line 14
      if constexpr (!plain) mask.derivative(dS, S, rows, cols);  // of softcap
      dS.write(sm.dS);
      __syncthreads();  // P and dS are there
      // ---- dV
      dV.add_product(transposed(sm.P), sm.dO[buffer]);          // line 12
      // ---- dQ
      auto dQ = dQ_part<Mma, d, T>(warp, lane);                 // [Br,d]
      dQ.add_product(sm.dS, sm.K);                              // line 15, without the scale
      const i64 row_tile = rows.begin / Br;
      const int turn = static_cast<int>((cols.begin - visible.cols(rows).first().begin) / Bc);  // column tiles before
      if (p.deterministic) wait_for_turn(p.turn, row_tile, turn, thread);
      dQ.template accumulate_registers<threads>(dQ_sums<d, T>(problem, head, rows), rows);
      if (p.deterministic) pass_turn(p.turn, row_tile, turn, thread);
      // ---- dK
      dK.add_product(transposed(sm.dS), sm.Q[buffer]);          // line 16, without the scale
      if (T::buffers == 2) {
        buffer ^= 1;
      } else {
        __syncthreads();  // nobody reads Q, dO, LSE and D any more
        if (next.size() > 0) copy(next, buffer);
      }
    }
  }
  // ---- store
  dK.transform([&](int, int, float dk) { return kv.scale * dk; });
  __syncthreads();  // nobody reads K any more
  dK.write(sm.K), dV.write(sm.V);
  __syncthreads();  // all of dK and dV is there
  store_rows<threads>(kv.dK, sm.K, cols, thread);               // line 18
  store_rows<threads>(kv.dV, sm.V, cols, thread);
}

template <class Element, int d, class T>
__global__ void __launch_bounds__(T::threads) convert(const Problem problem) {
  const auto [head, row_block] = last_block_first(blockIdx.x, problem.Nq, T::Br);
  const Problem p = of_head(problem, head);                     // one CTA: one tile of rows
  const Range rows = tile_range(row_block, p.Nq, T::Br);
  // ---- load
  auto dQ = dQ_part<K16<Element>, d, T>(threadIdx.x / 32, threadIdx.x % 32);
  dQ.template load_registers<T::threads>(dQ_sums<d, T>(problem, head, rows), rows);
  // ---- store
  dQ.transform([&](int, int, float dq) { return p.scale * dq; });
  dQ.store(p.dQ, d, rows);
}

template <class Element, int d, bool plain>
void launch_with(const Problem& p, ptx::Stream stream) {
  using T = TilingOf<d, plain>;
  const dim3 row_tiles = grid(p.batch * p.heads * ceil_div(p.Nq, T::Br));
  const dim3 column_tiles = grid(p.batch * p.kv_heads * ceil_div(p.Nk, T::Bc));
  ptx::launch("fa2_partitioning::prepare", prepare<Element, d, T>, row_tiles, T::threads, 0, stream, p);
  ptx::launch("fa2_partitioning::backward", backward<Element, d, plain>, column_tiles, T::threads, sizeof(Smem<d, T>),
              stream, p);
  ptx::launch("fa2_partitioning::convert", convert<Element, d, T>, row_tiles, T::threads, 0, stream, p);
}

inline bool is_plain(const Problem& p) { return !(p.softcap > 0 || p.slopes || p.dropout > 0 || !(p.scale > 0)); }

template <int d>
bool fits(std::size_t smem) {
  return sizeof(Smem<d, TilingOf<d, true>>) <= smem;
}

template <class Element, int d>
void launch_for(const Problem& p, ptx::Stream stream) {
  is_plain(p) && fits<d>(ptx::device_limits().smem_per_cta) ? launch_with<Element, d, true>(p, stream)
                                                            : launch_with<Element, d, false>(p, stream);
}

TileShape tile_shape(const Problem& p, std::size_t smem) {
  TileShape shape{0, 0};
  with_head_size<32, 64, 96, 128, 192, 256>(p.d, [&](auto d) {
    using Plain = TilingOf<d, true>;
    using Other = TilingOf<d, false>;
    shape = is_plain(p) && fits<d>(smem) ? TileShape{Plain::Br, Plain::Bc} : TileShape{Other::Br, Other::Bc};
  });
  return shape;
}

void launch(const Problem& p, ptx::Stream stream) {
  require_taken("05_fa2_partitioning/d_async_copies_backward", p, {32, 64, 96, 128, 192, 256});
  with_head_size<32, 64, 96, 128, 192, 256>(
      p.d, [&](auto d) { p.bf16 ? launch_for<Bf16, d>(p, stream) : launch_for<Fp16, d>(p, stream); });
}

}  // namespace flash::cuda::fa2_partitioning

FLASH_MODULE = {"05_fa2_partitioning/d_async_copies_backward", 80, "fp16 bf16",
                "Q K V O LSE dO dQ dK dV dQ_acc D turn", "causal window softcap alibi dropout scale deterministic",
                flash::cuda::fa2_partitioning::tile_shape, flash::cuda::fa2_partitioning::launch};

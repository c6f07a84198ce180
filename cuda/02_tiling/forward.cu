// 02 tiling: the same three passes by tiles that fit in shared memory.
// Extends 01. The change: one CTA makes a Br × Bc tile; its operands come to shared memory once, for the tensor cores.
// Why it helps: an operand is fetched once for a tile instead of once for an element, and unseen tiles are skipped.
// What it costs: barriers, and S is still written, read twice and read again as P.
// The ledger must now say: 5N² + (2Tr + Tc)Nd + Nd elements: honest, and still N² however large shared memory is.
#include "cuda/common/kernel.hpp"

namespace flash::cuda::tiling {

// A square tile of S fetches least. Four warps, each of which makes a quarter of the tile's columns: [Br,Bc/4] of S and
// [Br,d/4] of O, Br·Bc/128 and Br·d/128 registers of a thread.
// A tile takes 2·Br·Bc·d FLOPs in each product; Q, K or V come with 2·Br·d bytes, S and P with 2·Br·Bc.
constexpr int Br = 64, Bc = 64;
constexpr int warps = 4, threads = 32 * warps;

template <int d>
struct ScoresSmem {
  Tile<Br, d> Q;
  Tile<Bc, d> K;
  Tile<Br, Bc> S;
  float slope;
};

template <int d>
struct OutputSmem {
  Tile<Br, Bc> P;
  Tile<Bc, d> V;
};
static_assert(sizeof(ScoresSmem<64>) == 27'664 && sizeof(ScoresSmem<128>) == 44'048);
static_assert(sizeof(OutputSmem<64>) == 18'432 && sizeof(OutputSmem<128>) == 26'624);

// == pass: scores
template <int d>
__global__ void __launch_bounds__(threads) scores(const Problem problem) {
  auto& sm = ptx::dynamic_smem<ScoresSmem<d>>();
  ptx::name("Q", sm.Q), ptx::name("K", sm.K), ptx::name("S", sm.S);
  const Problem p = of_head(problem, blockIdx.x);
  const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
  const Range rows = tile_range(blockIdx.y, p.Nq, Br), cols = tile_range(blockIdx.z, p.Nk, Bc);
  if (!rules::tile_visible(p.sees, rows.begin, rows.end, cols.begin, cols.end)) return;
  const ScoreMask mask(p, &sm.slope, Br, Bc);
  // ---- load
  Transfer<Tile<Br, d>, threads> Q(thread);                     // [Br,d]
  Transfer<Tile<Bc, d>, threads> K(thread);                     // [Bc,d]
  Q.read(p.Q, rows), K.read(p.K, cols);
  Q.write(sm.Q), K.write(sm.K);
  if (p.slopes && thread == 0) sm.slope = *p.slopes;
  __syncthreads();  // Q, K and the slope are there
  // ---- scores
  WarpTile<Br, Bc / warps> S(0, warp * Bc / warps, lane);
  S.add_product(sm.Q, transposed(sm.K));
  S.transform([&](int, int, float s) { return p.scale * s; });  // Alg. 0, line 1
  ptx::watch("S", S);
  // ---- mask
  mask.apply(S, rows, cols);
  // ---- store
  S.write(sm.S);
  __syncthreads();  // every warp's part of S is there
  Transfer<Tile<Br, Bc>, threads> out(thread);
  out.read(sm.S);
  out.write(p.S, p.Nk, rows, cols);
}

// == pass: softmax
__global__ void __launch_bounds__(threads) softmax(const Problem problem) {
  const Problem p = of_head(problem, blockIdx.x);
  const int thread = threadIdx.x;
  const Range rows = tile_range(blockIdx.y, p.Nq, Br);
  const VisibleTiles visible(p, Br, Bc);
  Transfer<Tile<Br, Bc>, threads> tile(thread);                 // never in shared memory: eight lanes hold a row
  float m[tile.count], l[tile.count];
#pragma unroll
  for (int r = 0; r < tile.count; ++r) m[r] = lowest, l[r] = 0;
  for (Range cols : visible.cols(rows)) {                       // first sweep: maximum and sum
    // ---- load
    tile.read(p.S, p.Nk, rows, cols, minus_infinity_f16);
    // ---- softmax
#pragma unroll
    for (int r = 0; r < tile.count; ++r) {
      float S[8], m_new = m[r], sum = 0;
      unpack(tile.eight[r], S);
#pragma unroll
      for (int k = 0; k < 8; ++k) m_new = fmaxf(m_new, S[k]);
      m_new = max_over<tile.lanes>(m_new);                      // Alg. 0, line 2
#pragma unroll
      for (int k = 0; k < 8; ++k) sum += exp(S[k] - m_new);
      l[r] = exp(m[r] - m_new) * l[r] + sum_over<tile.lanes>(sum);
      m[r] = m_new;
    }
  }
  for (Range cols : visible.cols(rows)) {                       // second sweep: normalise
    // ---- load
    tile.read(p.S, p.Nk, rows, cols, minus_infinity_f16);
    // ---- softmax
#pragma unroll
    for (int r = 0; r < tile.count; ++r) {
      float P[8];
      unpack(tile.eight[r], P);
#pragma unroll
      for (int k = 0; k < 8; ++k) P[k] = exp(P[k] - m[r]) * inverse_of_sum(l[r]);
      tile.eight[r] = pack(P);
    }
    // ---- store
    tile.write(p.P, p.Nk, rows, cols);
  }
}

// == pass: output
template <int d>
__global__ void __launch_bounds__(threads) output(const Problem problem) {
  auto& sm = ptx::dynamic_smem<OutputSmem<d>>();
  ptx::name("P", sm.P), ptx::name("V", sm.V);
  const Problem p = of_head(problem, blockIdx.x);
  const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
  const Range rows = tile_range(blockIdx.y, p.Nq, Br);
  const VisibleTiles visible(p, Br, Bc);
  WarpTile<Br, d / warps> O(0, warp * d / warps, lane);
  for (Range cols : visible.cols(rows)) {
    // ---- load
    Transfer<Tile<Br, Bc>, threads> P(thread);                  // [Br,Bc]
    Transfer<Tile<Bc, d>, threads> V(thread);                   // [Bc,d]
    P.read(p.P, p.Nk, rows, cols), V.read(p.V, cols);
    __syncthreads();  // nobody reads the P and V before any more
    P.write(sm.P), V.write(sm.V);
    __syncthreads();  // P and V are there
    // ---- accumulate
    O.add_product(sm.P, sm.V);                                  // Alg. 0, line 3
  }
  // ---- store
  O.store(p.O, d, rows);
}

template <int d>
void forward(const Problem& p, ptx::Stream stream) {
  const i64 heads = p.batch * p.heads, Tr = ceil_div(p.Nq, Br), Tc = ceil_div(p.Nk, Bc);
  ptx::launch("tiling::scores", scores<d>, grid(heads, Tr, Tc), threads, sizeof(ScoresSmem<d>), stream, p);
  ptx::launch("tiling::softmax", softmax, grid(heads, Tr), threads, 0, stream, p);
  ptx::launch("tiling::output", output<d>, grid(heads, Tr), threads, sizeof(OutputSmem<d>), stream, p);
}

TileShape tile_shape(const Problem& p, std::size_t) { return p.d == 64 || p.d == 128 ? TileShape{Br, Bc} : TileShape{0, 0}; }

void launch(const Problem& p, ptx::Stream stream) {
  require_taken("02_tiling/forward", p);
  p.d == 64 ? forward<64>(p, stream) : forward<128>(p, stream);
}

}  // namespace flash::cuda::tiling

FLASH_MODULE = {"02_tiling/forward", 75, "fp16", "Q K V O S P", "causal window softcap alibi scale",
                flash::cuda::tiling::tile_shape, flash::cuda::tiling::launch};

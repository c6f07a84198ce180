// Where one head's matrices lie.
#pragma once

#include "cuda/common/visible_tiles.hpp"

namespace flash::cuda {

/// Several query heads add to one dK, dV.
__host__ __device__ inline bool grouped(const Problem& p) { return p.heads != p.kv_heads; }

/// The problem of one query head: every tensor begins with its matrix, K, V, dK and dV with that of the KV head that it
/// reads. `index` counts heads batch after batch. What is not used costs nothing: the compiler drops it.
__device__ __forceinline__ Problem of_head(Problem p, i64 index) {
  const i64 b = index / p.heads, h = index % p.heads, kv = b * p.kv_heads + rules::kv_head(h, p.heads, p.kv_heads);
  const auto begin_at = [](auto*& tensor, i64 matrix, i64 rows, i64 cols) {
    if (tensor) tensor += matrix * rows * cols;
  };
  begin_at(p.slopes, h, 1, 1);
  begin_at(p.Q, index, p.Nq, p.d), begin_at(p.K, kv, p.Nk, p.d), begin_at(p.V, kv, p.Nk, p.d);
  begin_at(p.O, index, p.Nq, p.d), begin_at(p.O_acc, index, p.Nq, p.d);
  begin_at(p.l, index, p.Nq, 1), begin_at(p.m, index, p.Nq, 1), begin_at(p.LSE, index, p.Nq, 1);
  begin_at(p.S, index, p.Nq, p.Nk), begin_at(p.P, index, p.Nq, p.Nk);
  begin_at(p.dP, index, p.Nq, p.Nk), begin_at(p.dS, index, p.Nq, p.Nk);
  begin_at(p.dO, index, p.Nq, p.d), begin_at(p.dQ, index, p.Nq, p.d), begin_at(p.dQ_acc, index, p.Nq, p.d);
  begin_at(p.D, index, p.Nq, 1), begin_at(p.turn, index, p.Nq, 1);
  begin_at(p.partial_O, index, p.splits * p.Nq, p.d), begin_at(p.partial_LSE, index, p.splits * p.Nq, 1);
  begin_at(p.dK, kv, p.Nk, p.d), begin_at(p.dV, kv, p.Nk, p.d);
  p.sequence = static_cast<int>(b), p.head = static_cast<int>(h);
  return p;
}

/// One block of one head's rows or columns.
struct HeadBlock {
  i64 head, block;
};

/// CTA number `cta` of as many as all heads have blocks: a head's CTAs are neighbours, so that they meet in the L2
/// cache. Its last block comes first: under a causal mask it has the most to do, and short ones fill the gaps at the
/// end.
__device__ __forceinline__ HeadBlock last_block_first(unsigned cta, i64 length, int block) {
  const unsigned blocks = static_cast<unsigned>(ceil_div(length, block));
  return {cta / blocks, blocks - 1 - cta % blocks};
}

/// The problem of one KV head: dK and dV begin with its matrices. `index` counts KV heads batch after batch.
__device__ __forceinline__ Problem of_kv_head(Problem p, i64 index) {
  p.dK += index * p.Nk * p.d, p.dV += index * p.Nk * p.d;
  return p;
}

}  // namespace flash::cuda

// Scalar rules that the Eigen stages and the CUDA kernels share: who sees whom, which KV head, which entry drops.
// The oracle does not use this file: it writes the rules again by itself.
#pragma once

#include <cstdint>

#ifdef __CUDACC__
#define FLASH_RULE __host__ __device__ inline
#else
#define FLASH_RULE inline
#endif

namespace flash::rules {

using i64 = std::int64_t;

/// Causal and window together. A negative side is unbounded; sides are clamped so that no sum overflows.
struct Visibility {
  i64 Nq, Nk;
  i64 left, right;  // keys before and after the centre i + (Nk − Nq)
};

FLASH_RULE Visibility visibility(i64 Nq, i64 Nk, bool causal, i64 window_left, i64 window_right) {
  const i64 everything = Nq + Nk;
  Visibility v{Nq, Nk, everything, everything};
  if (window_left >= 0 && window_left < everything) v.left = window_left;
  if (window_right >= 0 && window_right < everything) v.right = window_right;
  if (causal) v.right = 0;
  return v;
}

FLASH_RULE i64 centre(const Visibility& v, i64 i) { return i + (v.Nk - v.Nq); }

FLASH_RULE bool visible(const Visibility& v, i64 i, i64 j) {
  return j >= centre(v, i) - v.left && j <= centre(v, i) + v.right;
}

/// Does any query of [i0, i1) see any key of [j0, j1)? Neighbouring rows' intervals overlap or touch, so that their
/// union has no holes.
FLASH_RULE bool tile_visible(const Visibility& v, i64 i0, i64 i1, i64 j0, i64 j1) {
  return j1 > centre(v, i0) - v.left && j0 <= centre(v, i1 - 1) + v.right;
}

/// Does every query of [i0, i1) see every key of [j0, j1)?
FLASH_RULE bool tile_full(const Visibility& v, i64 i0, i64 i1, i64 j0, i64 j1) {
  return j0 >= centre(v, i1 - 1) - v.left && j1 - 1 <= centre(v, i0) + v.right;
}

/// GQA: the KV head that query head h reads; heads repeat, they are not tiled.
FLASH_RULE i64 kv_head(i64 h, i64 heads, i64 kv_heads) { return h * kv_heads / heads; }

/// ALiBi subtracts slope × this from the scaled score.
FLASH_RULE i64 alibi_distance(const Visibility& v, i64 i, i64 j) {
  const i64 distance = centre(v, i) - j;
  return distance < 0 ? -distance : distance;
}

/// Philox4x32-10 (Salmon et al. 2011): word `index` (0..3) of the block with this counter and key.
FLASH_RULE std::uint32_t philox_word(std::uint64_t key, std::uint32_t c0, std::uint32_t c1, std::uint32_t c2,
                                     std::uint32_t c3, int index) {
  std::uint32_t k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = 0xD2511F53ull * c0, p1 = 0xCD9E8D57ull * c2;
    const std::uint32_t hi0 = static_cast<std::uint32_t>(p0 >> 32), hi1 = static_cast<std::uint32_t>(p1 >> 32);
    c0 = hi1 ^ c1 ^ k0;
    c1 = static_cast<std::uint32_t>(p1);
    c2 = hi0 ^ c3 ^ k1;
    c3 = static_cast<std::uint32_t>(p0);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  const std::uint32_t words[4] = {c0, c1, c2, c3};
  return words[index];
}

/// The word that decides whether P[b,h,i,j] drops: it depends on position alone, never on tile sizes.
FLASH_RULE std::uint32_t dropout_word(std::uint64_t seed, i64 b, i64 h, i64 i, i64 j) {
  return philox_word(seed, static_cast<std::uint32_t>(j / 4), static_cast<std::uint32_t>(i),
                     static_cast<std::uint32_t>(h), static_cast<std::uint32_t>(b), static_cast<int>(j % 4));
}

/// Kept iff word >= p·2³².
FLASH_RULE bool dropout_keeps(std::uint32_t word, double p) { return word >= p * 4294967296.0; }

}  // namespace flash::rules

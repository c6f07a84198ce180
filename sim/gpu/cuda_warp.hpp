// What the lanes of a warp tell each other: shuffles, votes, matches, reductions.
#pragma once

#include <type_traits>

#include "sim/gpu/cuda_half2.hpp"
#include "sim/gpu/instructions.hpp"

constexpr int warpSize = 32;

namespace flash::gpu {

/// The types that CUDA shuffles; smaller integers become int before.
template <class T>
concept Shuffled = std::is_arithmetic_v<T> || is_16_bit<T>;

/// 8 bytes are two instructions, as on a GPU.
template <Shuffled T>
FLASH_CUDA T shuffled(Shuffle kind, unsigned mask, T value, unsigned operand, int width) {
  if constexpr (sizeof(T) == 8) {
    const auto whole = bytes_as<std::uint64_t>(value);
    const std::uint64_t low = shuffle(kind, mask, static_cast<std::uint32_t>(whole), operand, width);
    const std::uint64_t high = shuffle(kind, mask, static_cast<std::uint32_t>(whole >> 32), operand, width);
    return bytes_as<T>(high << 32 | low);
  } else {
    static_assert(sizeof(T) <= 4, "shuffles of 8 bytes at most");
    return bytes_as<T>(shuffle(kind, mask, bytes_as<std::uint32_t>(value), operand, width));
  }
}

}  // namespace flash::gpu

#define FLASH_CUDA_SHUFFLE(NAME, KIND, OPERAND)                                                                  \
  template <class T>                                                                                             \
  FLASH_CUDA auto NAME(unsigned mask, T value, OPERAND operand, int width = warpSize) {                          \
    return flash::gpu::shuffled(flash::gpu::Shuffle::KIND, mask, +value, static_cast<unsigned>(operand), width); \
  }
FLASH_CUDA_SHUFFLE(__shfl_sync, from_lane, int)
FLASH_CUDA_SHUFFLE(__shfl_up_sync, up, unsigned)
FLASH_CUDA_SHUFFLE(__shfl_down_sync, down, unsigned)
FLASH_CUDA_SHUFFLE(__shfl_xor_sync, exclusive_or, int)
#undef FLASH_CUDA_SHUFFLE

FLASH_CUDA int __any_sync(unsigned mask, int p) { return flash::gpu::vote(flash::gpu::Vote::any, mask, p != 0) != 0; }
FLASH_CUDA int __all_sync(unsigned mask, int p) { return flash::gpu::vote(flash::gpu::Vote::all, mask, p != 0) != 0; }
FLASH_CUDA unsigned __ballot_sync(unsigned mask, int p) {
  return flash::gpu::vote(flash::gpu::Vote::ballot, mask, p != 0);
}
/// A GPU promises nothing about the lanes beside the caller's own. Here they are those that come to this call while
/// the others run as far as they can.
FLASH_CUDA unsigned __activemask() { return flash::gpu::active_mask(); }

// ---- lanes that have the same value, by its bits
template <class T>
requires std::is_arithmetic_v<T> FLASH_CUDA unsigned __match_any_sync(unsigned mask, T value) {
  return flash::gpu::match(flash::gpu::Match::any, mask, flash::gpu::bytes_as<std::uint64_t>(+value), sizeof(+value));
}
/// All lanes of the mask where they all have it, else none.
template <class T>
requires std::is_arithmetic_v<T> FLASH_CUDA unsigned __match_all_sync(unsigned mask, T value, int* all) {
  const unsigned lanes =
      flash::gpu::match(flash::gpu::Match::all, mask, flash::gpu::bytes_as<std::uint64_t>(+value), sizeof(+value));
  *all = lanes != 0;
  return lanes;
}

// ---- reductions, sm_80
#define FLASH_CUDA_REDUCE(NAME, KIND)                                           \
  FLASH_CUDA unsigned NAME(unsigned mask, unsigned value) {                     \
    return flash::gpu::reduce(flash::gpu::Reduction::KIND, mask, value, false); \
  }
#define FLASH_CUDA_REDUCE_SIGNED(NAME, KIND)                                                        \
  FLASH_CUDA_REDUCE(NAME, KIND)                                                                     \
  FLASH_CUDA int NAME(unsigned mask, int value) {                                                   \
    return static_cast<int>(                                                                        \
        flash::gpu::reduce(flash::gpu::Reduction::KIND, mask, static_cast<unsigned>(value), true)); \
  }
FLASH_CUDA_REDUCE_SIGNED(__reduce_add_sync, add)
FLASH_CUDA_REDUCE_SIGNED(__reduce_min_sync, min)
FLASH_CUDA_REDUCE_SIGNED(__reduce_max_sync, max)
FLASH_CUDA_REDUCE(__reduce_and_sync, bit_and)
FLASH_CUDA_REDUCE(__reduce_or_sync, bit_or)
FLASH_CUDA_REDUCE(__reduce_xor_sync, bit_xor)
#undef FLASH_CUDA_REDUCE_SIGNED
#undef FLASH_CUDA_REDUCE

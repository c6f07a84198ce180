// 16-bit floating-point formats as bits.
#pragma once

#include <bit>
#include <cstdint>

namespace flash::gpu {

/// IEEE binary16. Exact; written without branches, so that loops over it become vector code.
inline float from_f16(std::uint16_t h) {
  const std::uint32_t sign = static_cast<std::uint32_t>(h & 0x8000u) << 16, rest = h & 0x7fffu;
  const float scaled = std::bit_cast<float>(rest << 13) * 0x1p112f;  // subnormals, too
  const std::uint32_t special = rest >= 0x7c00u ? 0x7f800000u : 0;   // infinities and NaN
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(scaled) | special | sign);
}

/// A subnormal number as zero of its sign (.ftz).
inline float flushed(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  return bits & 0x7f800000u ? x : std::bit_cast<float>(bits & 0x80000000u);
}

inline float from_bf16(std::uint16_t h) { return std::bit_cast<float>(static_cast<std::uint32_t>(h) << 16); }

/// Rounded to nearest even; a NaN becomes the one that the hardware makes.
inline std::uint16_t to_f16(float x) {
  if (x != x) return 0x7fff;
  return std::bit_cast<std::uint16_t>(static_cast<_Float16>(x));
}

inline std::uint16_t to_bf16(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  if (x != x) return 0x7fff;
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

}  // namespace flash::gpu

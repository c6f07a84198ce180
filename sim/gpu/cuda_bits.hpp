// Integers as bits: CUDA's integer intrinsics, and numbers taken as other numbers' bits.
#pragma once

#include <bit>
#include <cstdint>

#include "sim/gpu/cuda_types.hpp"

namespace flash::gpu {

/// The bytes of `x` as a `To`, which may be larger. (std::bit_cast won't have types whose assignment is their own.)
template <class To, class From>
FLASH_CUDA To bytes_as(From x) {
  To to{};
  __builtin_memcpy(static_cast<void*>(&to), &x, sizeof(To) < sizeof(From) ? sizeof(To) : sizeof(From));
  return to;
}

}  // namespace flash::gpu

FLASH_CUDA float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
FLASH_CUDA unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
FLASH_CUDA float __int_as_float(int x) { return std::bit_cast<float>(x); }
FLASH_CUDA int __float_as_int(float x) { return std::bit_cast<int>(x); }
FLASH_CUDA double __longlong_as_double(long long x) { return std::bit_cast<double>(x); }
FLASH_CUDA long long __double_as_longlong(double x) { return std::bit_cast<long long>(x); }
FLASH_CUDA double __hiloint2double(int high, int low) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(static_cast<unsigned>(high)) << 32 |
                               static_cast<unsigned>(low));
}
FLASH_CUDA int __double2hiint(double x) { return static_cast<int>(std::bit_cast<std::uint64_t>(x) >> 32); }
FLASH_CUDA int __double2loint(double x) { return static_cast<int>(std::bit_cast<std::uint64_t>(x)); }

FLASH_CUDA int __popc(unsigned x) { return std::popcount(x); }
FLASH_CUDA int __popcll(unsigned long long x) { return std::popcount(x); }
FLASH_CUDA int __clz(int x) { return std::countl_zero(static_cast<unsigned>(x)); }
FLASH_CUDA int __clzll(long long x) { return std::countl_zero(static_cast<unsigned long long>(x)); }
FLASH_CUDA int __ffs(int x) { return x == 0 ? 0 : std::countr_zero(static_cast<unsigned>(x)) + 1; }
FLASH_CUDA int __ffsll(long long x) { return x == 0 ? 0 : std::countr_zero(static_cast<unsigned long long>(x)) + 1; }
FLASH_CUDA unsigned __brev(unsigned x) {
  unsigned reversed = 0;
  for (int i = 0; i < 32; ++i) reversed |= (x >> i & 1) << (31 - i);
  return reversed;
}
FLASH_CUDA unsigned long long __brevll(unsigned long long x) {
  return static_cast<unsigned long long>(__brev(static_cast<unsigned>(x))) << 32 |
         __brev(static_cast<unsigned>(x >> 32));
}
/// Each digit of the selector names one of the eight bytes of x (0 to 3) and y (4 to 7); its fourth bit counts not.
FLASH_CUDA unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  const std::uint64_t bytes = static_cast<std::uint64_t>(y) << 32 | x;
  unsigned chosen = 0;
  for (int i = 0; i < 4; ++i) chosen |= static_cast<unsigned>(bytes >> 8 * (selector >> 4 * i & 7) & 0xff) << 8 * i;
  return chosen;
}
/// The upper (l) or lower (r) word of high:low, shifted by the lower five bits of `shift`, or by 32 at most (c).
FLASH_CUDA unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>((static_cast<std::uint64_t>(high) << 32 | low) << (shift & 31) >> 32);
}
FLASH_CUDA unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>((static_cast<std::uint64_t>(high) << 32 | low) >> (shift & 31));
}
FLASH_CUDA unsigned __funnelshift_lc(unsigned low, unsigned high, unsigned shift) {
  return shift >= 32 ? low : __funnelshift_l(low, high, shift);
}
FLASH_CUDA unsigned __funnelshift_rc(unsigned low, unsigned high, unsigned shift) {
  return shift >= 32 ? high : __funnelshift_r(low, high, shift);
}

FLASH_CUDA int __mulhi(int x, int y) { return static_cast<int>(static_cast<std::int64_t>(x) * y >> 32); }
FLASH_CUDA unsigned __umulhi(unsigned x, unsigned y) {
  return static_cast<unsigned>(static_cast<std::uint64_t>(x) * y >> 32);
}
FLASH_CUDA long long __mul64hi(long long x, long long y) {
  return static_cast<long long>(static_cast<__int128>(x) * y >> 64);
}
FLASH_CUDA unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
  return static_cast<unsigned long long>(static_cast<unsigned __int128>(x) * y >> 64);
}
/// Of the lower 24 bits.
FLASH_CUDA unsigned __umul24(unsigned x, unsigned y) { return (x & 0xffffff) * (y & 0xffffff); }
FLASH_CUDA int __mul24(int x, int y) {
  const auto extended = [](int z) {
    return static_cast<std::int64_t>(static_cast<int>(static_cast<unsigned>(z) << 8) >> 8);
  };
  return static_cast<int>(extended(x) * extended(y));
}
/// Averages, rounded down (h) and up (rh), without overflow.
FLASH_CUDA int __hadd(int x, int y) { return static_cast<int>((static_cast<std::int64_t>(x) + y) >> 1); }
FLASH_CUDA int __rhadd(int x, int y) { return static_cast<int>((static_cast<std::int64_t>(x) + y + 1) >> 1); }
FLASH_CUDA unsigned __uhadd(unsigned x, unsigned y) {
  return static_cast<unsigned>((static_cast<std::uint64_t>(x) + y) >> 1);
}
FLASH_CUDA unsigned __urhadd(unsigned x, unsigned y) {
  return static_cast<unsigned>((static_cast<std::uint64_t>(x) + y + 1) >> 1);
}
/// c + the dot product of four bytes.
FLASH_CUDA int __dp4a(int x, int y, int c) {
  auto sum = static_cast<unsigned>(c);
  for (int i = 0; i < 32; i += 8)
    sum += static_cast<unsigned>(static_cast<signed char>(x >> i) * static_cast<signed char>(y >> i));
  return static_cast<int>(sum);
}
FLASH_CUDA unsigned __dp4a(unsigned x, unsigned y, unsigned c) {
  for (int i = 0; i < 32; i += 8) c += (x >> i & 0xff) * (y >> i & 0xff);
  return c;
}

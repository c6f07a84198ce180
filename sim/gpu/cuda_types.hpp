// CUDA's vector types, for the host compiler.
#pragma once

#include <cstdint>

// An assignment is one access of all bytes, as on a GPU. The compiler by itself would make it one for each member, or,
// from a function's result, none that is seen.
#pragma GCC diagnostic ignored "-Wdeprecated-copy"
#define FLASH_ASSIGNED_AS(T, Word)                                             \
  __attribute__((always_inline)) T& operator=(const T& other) {                \
    typedef Word __attribute__((may_alias)) Whole;                             \
    *reinterpret_cast<Whole*>(this) = *reinterpret_cast<const Whole*>(&other); \
    return *this;                                                              \
  }

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};
struct uint3 {
  unsigned x, y, z;
};

struct alignas(8) uint2 {
  std::uint32_t x, y;
  FLASH_ASSIGNED_AS(uint2, std::uint64_t)
};
struct alignas(16) uint4 {
  std::uint32_t x, y, z, w;
  FLASH_ASSIGNED_AS(uint4, unsigned __int128)
};
struct alignas(8) int2 {
  int x, y;
  FLASH_ASSIGNED_AS(int2, std::uint64_t)
};
struct alignas(16) int4 {
  int x, y, z, w;
  FLASH_ASSIGNED_AS(int4, unsigned __int128)
};
struct alignas(8) float2 {
  float x, y;
  FLASH_ASSIGNED_AS(float2, std::uint64_t)
};
struct alignas(16) float4 {
  float x, y, z, w;
  FLASH_ASSIGNED_AS(float4, unsigned __int128)
};

inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
inline int2 make_int2(int x, int y) { return {x, y}; }
inline int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }

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
// What is aligned as one of its members is accessed member by member.
#define FLASH_ASSIGNED_ONE_BY_ONE(T)                            \
  __attribute__((always_inline)) T& operator=(const T& other) { \
    x = other.x, y = other.y, z = other.z;                      \
    return *this;                                               \
  }

// Code of a kernel's own: always inline, so that an access by it is one of the kernel's source line.
#define FLASH_CUDA inline __attribute__((always_inline))

#define FLASH_CUDA_VECTORS(NAME, T, Two, Four)                           \
  struct alignas(2 * sizeof(T)) NAME##2 {                                \
    T x, y;                                                              \
    FLASH_ASSIGNED_AS(NAME##2, Two)                                      \
  };                                                                     \
  struct NAME##3 {                                                       \
    T x, y, z;                                                           \
    FLASH_ASSIGNED_ONE_BY_ONE(NAME##3)                                   \
  };                                                                     \
  struct alignas(4 * sizeof(T)) NAME##4 {                                \
    T x, y, z, w;                                                        \
    FLASH_ASSIGNED_AS(NAME##4, Four)                                     \
  };                                                                     \
  FLASH_CUDA NAME##2 make_##NAME##2(T x, T y) { return {x, y}; }         \
  FLASH_CUDA NAME##3 make_##NAME##3(T x, T y, T z) { return {x, y, z}; } \
  FLASH_CUDA NAME##4 make_##NAME##4(T x, T y, T z, T w) { return {x, y, z, w}; }
FLASH_CUDA_VECTORS(char, signed char, std::uint16_t, std::uint32_t)
FLASH_CUDA_VECTORS(uchar, unsigned char, std::uint16_t, std::uint32_t)
FLASH_CUDA_VECTORS(short, short, std::uint32_t, std::uint64_t)
FLASH_CUDA_VECTORS(ushort, unsigned short, std::uint32_t, std::uint64_t)
FLASH_CUDA_VECTORS(int, int, std::uint64_t, unsigned __int128)
FLASH_CUDA_VECTORS(uint, unsigned, std::uint64_t, unsigned __int128)
FLASH_CUDA_VECTORS(float, float, std::uint64_t, unsigned __int128)
#undef FLASH_CUDA_VECTORS

#define FLASH_CUDA_PAIR(NAME, T)               \
  struct alignas(16) NAME {                    \
    T x, y;                                    \
    FLASH_ASSIGNED_AS(NAME, unsigned __int128) \
  };                                           \
  FLASH_CUDA NAME make_##NAME(T x, T y) { return {x, y}; }
FLASH_CUDA_PAIR(double2, double)
FLASH_CUDA_PAIR(longlong2, long long)
FLASH_CUDA_PAIR(ulonglong2, unsigned long long)
#undef FLASH_CUDA_PAIR

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
  constexpr dim3(uint3 of) : x(of.x), y(of.y), z(of.z) {}
  constexpr operator uint3() const { return {x, y, z}; }
};

// CUDA C++ for the host compiler: what a kernel may say without cuda/ptx. Everything has CUDA's own name and meaning.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "sim/gpu/instructions.hpp"

// What a kernel's file must not say, with what to say instead.
#define __shared__ static_assert(false, "no __shared__ here: one struct Smem, and ptx::dynamic_smem<Smem>()");
#define asm static_assert(false, "no asm here: a function of cuda/ptx for each instruction");

#define __global__
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(n) alignas(n)
#define __restrict__ __restrict
#define __grid_constant__
#define __cluster_dims__(...)

#define threadIdx (flash::gpu::thread_index())
#define blockIdx (flash::gpu::block_index())
#define blockDim (flash::gpu::block_size())
#define gridDim (flash::gpu::grid_size())
constexpr int warpSize = 32;

#define FLASH_CUDA inline __attribute__((always_inline))

// ---- 16-bit numbers
struct __half {
  std::uint16_t bits;
  FLASH_ASSIGNED_AS(__half, std::uint16_t)
};
struct alignas(4) __half2 {
  __half x, y;
  FLASH_ASSIGNED_AS(__half2, std::uint32_t)
};
struct __nv_bfloat16 {
  std::uint16_t bits;
  FLASH_ASSIGNED_AS(__nv_bfloat16, std::uint16_t)
};
struct alignas(4) __nv_bfloat162 {
  __nv_bfloat16 x, y;
  FLASH_ASSIGNED_AS(__nv_bfloat162, std::uint32_t)
};
using half = __half;
using half2 = __half2;

FLASH_CUDA float __half2float(__half x) { return static_cast<float>(std::bit_cast<_Float16>(x.bits)); }
FLASH_CUDA __half __float2half_rn(float x) { return {std::bit_cast<std::uint16_t>(static_cast<_Float16>(x))}; }
FLASH_CUDA __half __float2half(float x) { return __float2half_rn(x); }
FLASH_CUDA float2 __half22float2(__half2 x) { return {__half2float(x.x), __half2float(x.y)}; }
FLASH_CUDA __half2 __floats2half2_rn(float x, float y) { return {__float2half_rn(x), __float2half_rn(y)}; }
FLASH_CUDA float __bfloat162float(__nv_bfloat16 x) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(x.bits) << 16);
}
FLASH_CUDA __nv_bfloat16 __float2bfloat16_rn(float x) {
  return {static_cast<std::uint16_t>(flash::gpu::round_bf16(x))};
}

// ---- arithmetic
FLASH_CUDA float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
FLASH_CUDA unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
FLASH_CUDA float __int_as_float(int x) { return std::bit_cast<float>(x); }
FLASH_CUDA int __float_as_int(float x) { return std::bit_cast<int>(x); }
FLASH_CUDA float __expf(float x) { return std::exp(x); }
FLASH_CUDA float __logf(float x) { return std::log(x); }
FLASH_CUDA float __fdividef(float x, float y) { return x / y; }
FLASH_CUDA float rsqrtf(float x) { return 1 / std::sqrt(x); }
using std::max;
using std::min;
// A NaN gives way to a number, a signalling one, too, and −0 is below +0.
FLASH_CUDA float max(float x, float y) {
  if (x != x || y != y) return x != x ? y : x;
  return x == y ? (std::signbit(x) ? y : x) : x > y ? x : y;
}
FLASH_CUDA float min(float x, float y) {
  if (x != x || y != y) return x != x ? y : x;
  return x == y ? (std::signbit(x) ? x : y) : x < y ? x : y;
}
FLASH_CUDA int __popc(unsigned x) { return std::popcount(x); }
FLASH_CUDA int __clz(int x) { return std::countl_zero(static_cast<unsigned>(x)); }
FLASH_CUDA int __ffs(int x) { return x == 0 ? 0 : std::countr_zero(static_cast<unsigned>(x)) + 1; }
template <class T>
FLASH_CUDA T __ldg(const T* p) {
  return *p;
}

// ---- barriers and fences
FLASH_CUDA void __syncthreads() { flash::gpu::bar_sync(0, 0); }
FLASH_CUDA int __syncthreads_count(int predicate) { return flash::gpu::bar_count(predicate != 0); }
FLASH_CUDA int __syncthreads_or(int predicate) { return flash::gpu::bar_count(predicate != 0) > 0; }
FLASH_CUDA int __syncthreads_and(int predicate) { return flash::gpu::bar_count(predicate == 0) == 0; }
FLASH_CUDA void __syncwarp(unsigned mask = 0xffffffffu) { flash::gpu::sync_warp(mask); }
FLASH_CUDA void __threadfence() { flash::gpu::thread_fence(); }
FLASH_CUDA void __nanosleep(unsigned) { flash::gpu::pause(); }

// ---- shuffles and votes
#define FLASH_CUDA_SHUFFLE(NAME, KIND, OPERAND)                                                                  \
  template <class T>                                                                                             \
  FLASH_CUDA T NAME(unsigned mask, T value, OPERAND operand, int width = warpSize) {                             \
    static_assert(sizeof(T) == 4, "shuffles of 4 bytes");                                                        \
    return std::bit_cast<T>(flash::gpu::shuffle(flash::gpu::Shuffle::KIND, mask, std::bit_cast<unsigned>(value), \
                                                static_cast<unsigned>(operand), width));                         \
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

// ---- atomics
FLASH_CUDA float atomicAdd(float* to, float x) { return flash::gpu::atomic_add(to, x); }
#define FLASH_CUDA_ATOMIC(NAME, KIND)                                                                     \
  FLASH_CUDA unsigned NAME(unsigned* to, unsigned x) {                                                    \
    return flash::gpu::atomic(flash::gpu::Atomic::KIND, to, x, false);                                    \
  }                                                                                                       \
  FLASH_CUDA int NAME(int* to, int x) {                                                                   \
    return static_cast<int>(flash::gpu::atomic(flash::gpu::Atomic::KIND, reinterpret_cast<unsigned*>(to), \
                                               static_cast<unsigned>(x), true));                          \
  }
FLASH_CUDA_ATOMIC(atomicAdd, add)
FLASH_CUDA_ATOMIC(atomicMax, max)
FLASH_CUDA_ATOMIC(atomicMin, min)
FLASH_CUDA_ATOMIC(atomicExch, exchange)
FLASH_CUDA_ATOMIC(atomicOr, bit_or)
FLASH_CUDA_ATOMIC(atomicAnd, bit_and)
#undef FLASH_CUDA_ATOMIC
FLASH_CUDA unsigned atomicCAS(unsigned* to, unsigned expected, unsigned desired) {
  return flash::gpu::atomic_cas(to, expected, desired);
}
FLASH_CUDA int atomicCAS(int* to, int expected, int desired) {
  return static_cast<int>(flash::gpu::atomic_cas(reinterpret_cast<unsigned*>(to), static_cast<unsigned>(expected),
                                                 static_cast<unsigned>(desired)));
}

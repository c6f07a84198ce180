// Sums and maxima over neighbouring lanes of a warp.
#pragma once

#include "cuda/ptx/target.hpp"

namespace flash::cuda {

/// f of all values in each group of `lanes` neighbours, a power of two: every lane gets its group's.
template <int lanes, class F>
__device__ __forceinline__ float reduce_over(float x, F f) {
#pragma unroll
  for (int step = 1; step < lanes; step *= 2) x = f(x, __shfl_xor_sync(0xffffffffu, x, step));
  return x;
}

template <int lanes>
__device__ __forceinline__ float sum_over(float x) {
  return reduce_over<lanes>(x, [](float a, float b) { return a + b; });
}

template <int lanes>
__device__ __forceinline__ float max_over(float x) {
  return reduce_over<lanes>(x, [](float a, float b) { return fmaxf(a, b); });
}

}  // namespace flash::cuda

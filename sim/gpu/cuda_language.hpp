// CUDA C++ for the host compiler: what a kernel may say without cuda/ptx. Everything has CUDA's own name and meaning.
#pragma once

// Before the words below: the standard library has __noinline__ for something else.
#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>

#include "sim/gpu/cuda_atomics.hpp"
#include "sim/gpu/cuda_bits.hpp"
#include "sim/gpu/cuda_half2.hpp"
#include "sim/gpu/cuda_math.hpp"
#include "sim/gpu/cuda_memory.hpp"
#include "sim/gpu/cuda_warp.hpp"

// What a kernel's file must not say, with what to say instead.
#define __shared__ static_assert(false, "no __shared__ here: one struct Smem, and ptx::dynamic_smem<Smem>()");
#define asm static_assert(false, "no asm here: a function of cuda/ptx for each instruction");

#define __global__
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __align__(n) alignas(n)
#define __restrict__ __restrict
#define __grid_constant__
#define __cluster_dims__(...)

#define threadIdx (flash::gpu::thread_index())
#define blockIdx (flash::gpu::block_index())
#define blockDim (flash::gpu::block_size())
#define gridDim (flash::gpu::grid_size())

FLASH_CUDA void __syncthreads() { flash::gpu::bar_sync(0, 0); }
FLASH_CUDA int __syncthreads_count(int predicate) { return flash::gpu::bar_count(predicate != 0); }
FLASH_CUDA int __syncthreads_or(int predicate) { return flash::gpu::bar_count(predicate != 0) > 0; }
FLASH_CUDA int __syncthreads_and(int predicate) { return flash::gpu::bar_count(predicate == 0) == 0; }
FLASH_CUDA void __syncwarp(unsigned mask = 0xffffffffu) { flash::gpu::sync_warp(mask); }
FLASH_CUDA void __nanosleep(unsigned) { flash::gpu::pause(); }
FLASH_CUDA void __trap() { flash::gpu::trap(); }
/// Nominal cycles of the warp: a shape, not a prediction.
FLASH_CUDA long long clock64() { return flash::gpu::clock_cycles(); }
FLASH_CUDA clock_t clock() noexcept { return flash::gpu::clock_cycles(); }

// assert() in a kernel is a report.
#define __assert_fail flash_assert_fail

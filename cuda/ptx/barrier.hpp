// bar: the sixteen named barriers of a CTA (__syncthreads() is barrier 0 with all threads). sm_75.
#pragma once

#include "cuda/ptx/target.hpp"

namespace flash::ptx {

/// Waits until `threads` threads, a multiple of 32, have arrived at barrier `id`, 0 to 15; this warp's are among them.
FLASH_PTX void bar_sync(uint32_t id, uint32_t threads) {
#ifdef __CUDACC__
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
#else
  gpu::bar_sync(id, threads);
#endif
}

/// Arrives without waiting.
FLASH_PTX void bar_arrive(uint32_t id, uint32_t threads) {
#ifdef __CUDACC__
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
#else
  gpu::bar_arrive(id, threads);
#endif
}

}  // namespace flash::ptx

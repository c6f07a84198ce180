// cp.async: copies from global to shared memory that the thread does not wait for. sm_80.
#pragma once

#include "cuda/ptx/shared_memory.hpp"

namespace flash::ptx {

/// 16 bytes past L1 (.cg). `bytes` < 16 reads as many and fills the rest with zeros; both addresses 16-byte aligned.
FLASH_PTX void cp_async_16(void* to_shared, const void* from_global, uint32_t bytes = 16) {
#ifdef __CUDACC__
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               :: "r"(shared_address(to_shared)), "l"(from_global), "r"(bytes) : "memory");
#else
  gpu::cp_async(to_shared, from_global, 16, bytes);
#endif
}

/// 8 bytes through L1 (.ca); both addresses 8-byte aligned.
FLASH_PTX void cp_async_8(void* to_shared, const void* from_global, uint32_t bytes = 8) {
#ifdef __CUDACC__
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;"
               :: "r"(shared_address(to_shared)), "l"(from_global), "r"(bytes) : "memory");
#else
  gpu::cp_async(to_shared, from_global, 8, bytes);
#endif
}

/// 4 bytes through L1 (.ca); both addresses 4-byte aligned.
FLASH_PTX void cp_async_4(void* to_shared, const void* from_global, uint32_t bytes = 4) {
#ifdef __CUDACC__
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;"
               :: "r"(shared_address(to_shared)), "l"(from_global), "r"(bytes) : "memory");
#else
  gpu::cp_async(to_shared, from_global, 4, bytes);
#endif
}

/// The thread's copies since its last commit become one group.
FLASH_PTX void cp_async_commit_group() {
#ifdef __CUDACC__
  asm volatile("cp.async.commit_group;" ::: "memory");
#else
  gpu::cp_async_commit();
#endif
}

/// Waits until at most the N youngest groups of this thread are in flight. Other threads need a barrier after it.
template <int N>
FLASH_PTX void cp_async_wait_group() {
#ifdef __CUDACC__
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
#else
  gpu::cp_async_wait(N);
#endif
}

/// Waits for all copies of this thread, committed or not.
FLASH_PTX void cp_async_wait_all() {
#ifdef __CUDACC__
  asm volatile("cp.async.wait_all;" ::: "memory");
#else
  gpu::cp_async_wait_all();
#endif
}

}  // namespace flash::ptx

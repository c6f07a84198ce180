// Fences, loads and stores by name, and the functions of C that copy memory, which the virtual GPU has to see.
#pragma once

#include <cstring>
#include <type_traits>

#include "sim/gpu/instructions.hpp"

// One fence for all scopes.
FLASH_CUDA void __threadfence() { flash::gpu::thread_fence(); }
FLASH_CUDA void __threadfence_block() { flash::gpu::thread_fence(); }
FLASH_CUDA void __threadfence_system() { flash::gpu::thread_fence(); }

// What they say about caches changes no result.
#define FLASH_CUDA_LOAD(NAME)     \
  template <class T>              \
  FLASH_CUDA T NAME(const T* p) { \
    return *p;                    \
  }
FLASH_CUDA_LOAD(__ldg)
FLASH_CUDA_LOAD(__ldca)
FLASH_CUDA_LOAD(__ldcg)
FLASH_CUDA_LOAD(__ldcs)
FLASH_CUDA_LOAD(__ldlu)
#undef FLASH_CUDA_LOAD
#define FLASH_CUDA_STORE(NAME)                            \
  template <class T>                                      \
  FLASH_CUDA void NAME(T* p, std::type_identity_t<T> x) { \
    *p = x;                                               \
  }
FLASH_CUDA_STORE(__stwb)
FLASH_CUDA_STORE(__stcg)
FLASH_CUDA_STORE(__stcs)
FLASH_CUDA_STORE(__stwt)
#undef FLASH_CUDA_STORE

FLASH_CUDA void* flash_memcpy(void* to, const void* from, std::size_t bytes) {
  return flash::gpu::copy(to, from, bytes);
}
FLASH_CUDA void* flash_memmove(void* to, const void* from, std::size_t bytes) {
  return flash::gpu::copy(to, from, bytes);
}
FLASH_CUDA void* flash_memset(void* to, int byte, std::size_t bytes) { return flash::gpu::fill(to, byte, bytes); }
namespace std {
using ::flash_memcpy;
using ::flash_memmove;
using ::flash_memset;
}  // namespace std
#define memcpy flash_memcpy
#define memmove flash_memmove
#define memset flash_memset

// Atomic operations, for the types that CUDA has each for. They are relaxed; fences are in cuda_memory.hpp.
#pragma once

#include <bit>

#include "sim/gpu/instructions.hpp"

FLASH_CUDA float atomicAdd(float* to, float x) { return flash::gpu::atomic_add(to, x); }
FLASH_CUDA double atomicAdd(double* to, double x) { return flash::gpu::atomic_add(to, x); }

#define FLASH_CUDA_ATOMIC(NAME, KIND, T, Word, is_signed)                                                            \
  FLASH_CUDA T NAME(T* to, T x) {                                                                                    \
    return static_cast<T>(                                                                                           \
        flash::gpu::atomic(flash::gpu::Atomic::KIND, reinterpret_cast<Word*>(to), static_cast<Word>(x), is_signed)); \
  }
#define FLASH_CUDA_ATOMIC_OF_WORDS(NAME, KIND)                  \
  FLASH_CUDA_ATOMIC(NAME, KIND, int, std::uint32_t, true)       \
  FLASH_CUDA_ATOMIC(NAME, KIND, unsigned, std::uint32_t, false) \
  FLASH_CUDA_ATOMIC(NAME, KIND, unsigned long long, std::uint64_t, false)
#define FLASH_CUDA_ATOMIC_OF_ALL(NAME, KIND) \
  FLASH_CUDA_ATOMIC_OF_WORDS(NAME, KIND)     \
  FLASH_CUDA_ATOMIC(NAME, KIND, long long, std::uint64_t, true)
FLASH_CUDA_ATOMIC_OF_WORDS(atomicAdd, add)
FLASH_CUDA_ATOMIC_OF_WORDS(atomicExch, exchange)
FLASH_CUDA_ATOMIC_OF_ALL(atomicMax, max)
FLASH_CUDA_ATOMIC_OF_ALL(atomicMin, min)
FLASH_CUDA_ATOMIC_OF_ALL(atomicAnd, bit_and)
FLASH_CUDA_ATOMIC_OF_ALL(atomicOr, bit_or)
FLASH_CUDA_ATOMIC_OF_ALL(atomicXor, bit_xor)
FLASH_CUDA_ATOMIC(atomicInc, increment, unsigned, std::uint32_t, false)  // 0 after x
FLASH_CUDA_ATOMIC(atomicDec, decrement, unsigned, std::uint32_t, false)  // x after 0, and for what is above x
#undef FLASH_CUDA_ATOMIC_OF_ALL
#undef FLASH_CUDA_ATOMIC_OF_WORDS
#undef FLASH_CUDA_ATOMIC

FLASH_CUDA unsigned atomicSub(unsigned* to, unsigned x) { return atomicAdd(to, 0u - x); }
FLASH_CUDA int atomicSub(int* to, int x) {
  return static_cast<int>(atomicSub(reinterpret_cast<unsigned*>(to), static_cast<unsigned>(x)));
}
FLASH_CUDA float atomicExch(float* to, float x) {
  return std::bit_cast<float>(atomicExch(reinterpret_cast<unsigned*>(to), std::bit_cast<unsigned>(x)));
}

#define FLASH_CUDA_CAS(T, Word)                                                                                        \
  FLASH_CUDA T atomicCAS(T* to, T expected, T desired) {                                                               \
    return static_cast<T>(                                                                                             \
        flash::gpu::atomic_cas(reinterpret_cast<Word*>(to), static_cast<Word>(expected), static_cast<Word>(desired))); \
  }
FLASH_CUDA_CAS(int, std::uint32_t)
FLASH_CUDA_CAS(unsigned, std::uint32_t)
FLASH_CUDA_CAS(unsigned long long, std::uint64_t)
#undef FLASH_CUDA_CAS

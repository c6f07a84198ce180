// red: atomic additions in global memory that give nothing back. (What CUDA spells atomicAdd is written so.)
#pragma once

#include "cuda/ptx/target.hpp"

namespace flash::ptx {

/// *to += x, fp32. sm_75.
FLASH_PTX void red_add_f32(float* to, float x) {
#ifdef __CUDACC__
  asm volatile("red.global.add.f32 [%0], %1;" ::"l"(to), "f"(x) : "memory");
#else
  gpu::red_add_f32(to, x);
#endif
}

/// Two neighbouring fp16, 4-byte aligned: each sum is rounded to fp16. sm_75.
FLASH_PTX void red_add_f16x2(void* to, uint32_t pair) {
#ifdef __CUDACC__
  asm volatile("red.global.add.noftz.f16x2 [%0], %1;" ::"l"(to), "r"(pair) : "memory");
#else
  gpu::red_add_f16x2(to, pair);
#endif
}

}  // namespace flash::ptx

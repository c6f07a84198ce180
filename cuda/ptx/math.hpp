// Special functions and conversions. sm_75 where nothing else is said.
#pragma once

#include "cuda/ptx/target.hpp"

namespace flash::ptx {

/// 2^x by the special function unit (ex2.approx.ftz.f32): about 2 ulp; 2^−∞ = 0, subnormal results are 0.
FLASH_PTX float ex2(float x) {
#ifdef __CUDACC__
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  return gpu::ex2(x);
#endif
}

/// Two fp32 to a register of two fp16, rounded to nearest even (cvt.rn.f16x2.f32; on sm_75 two
/// cvt.rn.f16.f32); `low` in the lower half.
FLASH_PTX uint32_t pack_f16(float low, float high) {
#ifdef __CUDACC__
  const __half2 pair = __floats2half2_rn(low, high);
  return reinterpret_cast<const uint32_t&>(pair);
#else
  return gpu::pack_f16(low, high);
#endif
}

/// The same to bf16 (cvt.rn.bf16x2.f32). sm_80.
FLASH_PTX uint32_t pack_bf16(float low, float high) {
#ifdef __CUDACC__
  uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
#else
  return gpu::pack_bf16(low, high);
#endif
}

/// A register of two fp16 as two fp32.
FLASH_PTX float2 unpack_f16(uint32_t pair) {
#ifdef __CUDACC__
  return __half22float2(reinterpret_cast<const __half2&>(pair));
#else
  return gpu::unpack_f16(pair);
#endif
}

}  // namespace flash::ptx

// The 16-bit formats of a kernel's tensors, and what the tensor core multiplies at once.
#pragma once

#include "cuda/ptx/math.hpp"
#include "cuda/ptx/mma.hpp"

namespace flash::cuda {

struct Fp16 {
  static __device__ __forceinline__ uint32_t pack(float low, float high) { return ptx::pack_f16(low, high); }
  static __device__ __forceinline__ float2 unpack(uint32_t pair) { return ptx::unpack_f16(pair); }
  static __device__ __forceinline__ void mma_k16(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
    ptx::mma_m16n8k16_f16(c, a, b);
  }
};

/// sm_80.
struct Bf16 {
  static __device__ __forceinline__ uint32_t pack(float low, float high) { return ptx::pack_bf16(low, high); }
  /// A bf16 is the upper half of an fp32.
  static __device__ __forceinline__ float2 unpack(uint32_t pair) {
    return make_float2(__uint_as_float(pair << 16), __uint_as_float(pair & 0xffff0000u));
  }
  static __device__ __forceinline__ void mma_k16(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
    ptx::mma_m16n8k16_bf16(c, a, b);
  }
};

/// One number, rounded.
template <class Element>
__device__ __forceinline__ void store_number(half* to, float x) {
  *reinterpret_cast<uint16_t*>(to) = static_cast<uint16_t>(Element::pack(x, 0));
}

// C [16,8] += A [16,16]·B [16,8] in `steps` instructions, in registers as load_a and load_b leave them.

/// mma.m16n8k8, sm_75: two of them.
struct K8 {
  using Element = Fp16;
  static constexpr int steps = 2;
  static __device__ __forceinline__ void multiply(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                                                  int step) {
    const uint32_t a_k8[2] = {a[2 * step], a[2 * step + 1]};
    ptx::mma_m16n8k8_f16(c, a_k8, b[step]);
  }
};

/// mma.m16n8k16, sm_80: one.
template <class Element_>
struct K16 {
  using Element = Element_;
  static constexpr int steps = 1;
  static __device__ __forceinline__ void multiply(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], int) {
    Element::mma_k16(c, a, b);
  }
};

}  // namespace flash::cuda

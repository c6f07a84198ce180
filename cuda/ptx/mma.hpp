// mma.sync: D[16,8] += A[16,K]·B[K,8] by one warp, fp32 accumulators. Fragments: layout::mma_a, mma_b, mma_c.
#pragma once

#include "cuda/ptx/target.hpp"

namespace flash::ptx {

/// fp16 operands, K = 8. sm_75.
FLASH_PTX void mma_m16n8k8_f16(float (&d)[4], const uint32_t (&a)[2], uint32_t b) {
#ifdef __CUDACC__
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(b));
#else
  gpu::mma(d, 8, gpu::Operand::f16, a, &b);
#endif
}

/// bf16 operands, K = 8. sm_80.
FLASH_PTX void mma_m16n8k8_bf16(float (&d)[4], const uint32_t (&a)[2], uint32_t b) {
#ifdef __CUDACC__
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(b));
#else
  gpu::mma(d, 8, gpu::Operand::bf16, a, &b);
#endif
}

/// fp16 operands, K = 16. sm_80.
FLASH_PTX void mma_m16n8k16_f16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
#ifdef __CUDACC__
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
  gpu::mma(d, 16, gpu::Operand::f16, a, b);
#endif
}

/// bf16 operands, K = 16. sm_80.
FLASH_PTX void mma_m16n8k16_bf16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
#ifdef __CUDACC__
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
  gpu::mma(d, 16, gpu::Operand::bf16, a, b);
#endif
}

}  // namespace flash::ptx

// ldmatrix: 8×8 matrices of 16-bit elements from shared memory to the registers of a warp. sm_75.
#pragma once

#include "cuda/ptx/shared_memory.hpp"

namespace flash::ptx {

/// Lane l gives the address of row l % 8 of matrix l / 8: 16 bytes, 16-byte aligned. Register m of a lane receives its
/// two elements of matrix m (layout::ldmatrix).
FLASH_PTX void ldmatrix_x4(uint32_t (&r)[4], const void* row) {
#ifdef __CUDACC__
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(shared_address(row)) : "memory");
#else
  gpu::ldmatrix(r, 4, false, row);
#endif
}

/// Two matrices; the addresses of lanes 0 to 15 are used.
FLASH_PTX void ldmatrix_x2(uint32_t (&r)[2], const void* row) {
#ifdef __CUDACC__
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];"
               : "=r"(r[0]), "=r"(r[1]) : "r"(shared_address(row)) : "memory");
#else
  gpu::ldmatrix(r, 2, false, row);
#endif
}

/// One matrix; the addresses of lanes 0 to 7 are used.
FLASH_PTX void ldmatrix_x1(uint32_t (&r)[1], const void* row) {
#ifdef __CUDACC__
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];"
               : "=r"(r[0]) : "r"(shared_address(row)) : "memory");
#else
  gpu::ldmatrix(r, 1, false, row);
#endif
}

/// Each matrix arrives transposed (layout::ldmatrix_trans).
FLASH_PTX void ldmatrix_x4_trans(uint32_t (&r)[4], const void* row) {
#ifdef __CUDACC__
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(shared_address(row)) : "memory");
#else
  gpu::ldmatrix(r, 4, true, row);
#endif
}

/// Each of two matrices arrives transposed.
FLASH_PTX void ldmatrix_x2_trans(uint32_t (&r)[2], const void* row) {
#ifdef __CUDACC__
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];"
               : "=r"(r[0]), "=r"(r[1]) : "r"(shared_address(row)) : "memory");
#else
  gpu::ldmatrix(r, 2, true, row);
#endif
}

/// One matrix arrives transposed.
FLASH_PTX void ldmatrix_x1_trans(uint32_t (&r)[1], const void* row) {
#ifdef __CUDACC__
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];"
               : "=r"(r[0]) : "r"(shared_address(row)) : "memory");
#else
  gpu::ldmatrix(r, 1, true, row);
#endif
}

}  // namespace flash::ptx

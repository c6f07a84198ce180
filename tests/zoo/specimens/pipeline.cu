// C = A·Bᵀ by one CTA of four warps: slices of A and B come by cp.async into two swizzled buffers while the tensor core
// works on the slice before.
#include <cmath>

#include "tests/zoo/specimen.hpp"

namespace ptx = flash::ptx;

namespace {

constexpr int M = 60, rows = 64, N = 64, K = 256, slice = 64, threads = 128;

struct Smem {
  half a[2][rows * slice], b[2][N * slice];
};

/// Sixteen bytes of a row, `chunk` 0 to 7: neighbouring rows put them in different banks.
__device__ __forceinline__ half* at(half* tile, int row, int chunk) {
  return tile + row * slice + ((chunk ^ (row & 7)) << 3);
}

__device__ __forceinline__ void copy_slice(half* tile, const half* matrix, int height, int k, int thread) {
#pragma unroll
  for (int i = 0; i < rows * 8 / threads; ++i) {
    const int row = (thread + i * threads) / 8, chunk = thread % 8;
    const uint32_t bytes = row < height ? 16 : 0;
    ptx::cp_async_16(at(tile, row, chunk), matrix + (row < height ? row : 0) * K + k + chunk * 8, bytes);
  }
}

__global__ void __launch_bounds__(threads) multiply(const half* A, const half* B, float* C) {
  Smem& sm = ptx::dynamic_smem<Smem>();
  ptx::name("a", sm.a);
  ptx::name("b", sm.b);
  const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
  float c[8][4] = {};
  copy_slice(sm.a[0], A, M, 0, thread);
  copy_slice(sm.b[0], B, N, 0, thread);
  ptx::cp_async_commit_group();
  for (int k = 0, now = 0; k < K; k += slice, now ^= 1) {
    ptx::mark("slice", k / slice);
    if (k + slice < K) {
      copy_slice(sm.a[now ^ 1], A, M, k + slice, thread);
      copy_slice(sm.b[now ^ 1], B, N, k + slice, thread);
    }
    ptx::cp_async_commit_group();
    ptx::cp_async_wait_group<1>();
    __syncthreads();  // everyone's part of the slice is there
#pragma unroll
    for (int kk = 0; kk < slice; kk += 16) {
      uint32_t a[4];
      ptx::ldmatrix_x4(a, at(sm.a[now], warp * 16 + lane % 16, kk / 8 + lane / 16));
#pragma unroll
      for (int n = 0; n < 8; n += 2) {
        uint32_t b[4];
        ptx::ldmatrix_x4(b, at(sm.b[now], n * 8 + lane % 8 + lane / 16 * 8, kk / 8 + lane / 8 % 2));
        const uint32_t left[2] = {b[0], b[1]}, right[2] = {b[2], b[3]};
        ptx::mma_m16n8k16_f16(c[n], a, left);
        ptx::mma_m16n8k16_f16(c[n + 1], a, right);
      }
    }
    __syncthreads();  // nobody needs the slice any more: the next copies overwrite it
  }
#pragma unroll
  for (int n = 0; n < 8; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const auto e = ptx::layout::mma_c(lane, i);
      const int row = warp * 16 + e.row;
      if (row < M) C[row * N + n * 8 + e.col] = c[n][i];
    }
}

std::string run(Allocate allocate) {
  half* A = static_cast<half*>(allocate("A", M * K * sizeof(half), true));
  half* B = static_cast<half*>(allocate("B", N * K * sizeof(half), true));
  float* C = static_cast<float*>(allocate("C", M * N * sizeof(float), false));
  for (int i = 0; i < M * K; ++i) A[i] = __float2half_rn(static_cast<float>((i * 7 + i / K) % 17 - 8));
  for (int i = 0; i < N * K; ++i) B[i] = __float2half_rn(static_cast<float>((i * 5 + i / K) % 13 - 6));
  ptx::launch("multiply", multiply, dim3(1), dim3(threads), sizeof(Smem), nullptr, A, B, C);
  for (int i = 0; i < M; ++i)
    for (int j = 0; j < N; ++j) {
      float sum = 0;
      for (int k = 0; k < K; ++k) sum += __half2float(A[i * K + k]) * __half2float(B[j * K + k]);
      if (!(C[i * N + j] == sum))
        return "C(" + std::to_string(i) + "," + std::to_string(j) + ") is " + std::to_string(C[i * N + j]) + ", not " +
               std::to_string(sum);
    }
  return "";
}

}  // namespace

FLASH_SPECIMEN = {80, run};

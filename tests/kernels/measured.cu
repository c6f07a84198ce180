// Patterns of access whose bytes, sectors and wavefronts follow from the addresses.
#include "cuda/ptx/ptx.hpp"

namespace ptx = flash::ptx;

namespace {

struct Words {
  alignas(16) float x[2048];
};

/// Each lane reads a word of global memory.
__global__ void global_stride(const float* A, float* B, int stride) {
  const float x = A[threadIdx.x * static_cast<unsigned>(stride)];  // @global_read
  if (threadIdx.x == 0) B[0] = x;                                  // @global_write
}
/// Each lane writes, then reads a word of shared memory.
__global__ void shared_stride(float* B, int stride) {
  Words& sm = ptx::dynamic_smem<Words>();
  float* mine = sm.x + threadIdx.x * static_cast<unsigned>(stride);
  *mine = 1;  // @shared_write
  __syncwarp();
  if (*mine < 0) B[0] = 1;  // @shared_read
}
__global__ void broadcast(float* B) {
  Words& sm = ptx::dynamic_smem<Words>();
  if (threadIdx.x < 2) sm.x[32 * threadIdx.x] = 1;
  __syncwarp();
  if (sm.x[0] < 0) B[0] = 1;                       // @broadcast
  if (sm.x[32 * (threadIdx.x % 2)] < 0) B[0] = 1;  // @two_words
}
/// Vectors of 2 and 4 words side by side.
__global__ void shared_vectors(float* B) {
  Words& sm = ptx::dynamic_smem<Words>();
  const int lane = threadIdx.x;
  *reinterpret_cast<float4*>(sm.x + 4 * lane) = make_float4(1, 2, 3, 4);  // @vector_write
  __syncwarp();
  const float2 two = *reinterpret_cast<const float2*>(sm.x + 2 * lane);  // @pair_read
  if (two.x + two.y < 0) B[0] = 1;
}
__global__ void global_vectors(const float* A, float* B) {
  const float4 four = *reinterpret_cast<const float4*>(A + 4 * threadIdx.x);                      // @vector_load
  *reinterpret_cast<float4*>(B + 4 * threadIdx.x) = make_float4(four.w, four.z, four.y, four.x);  // @vector_store
}
/// ldmatrix.x4 of rows that lie `row` words apart: 32 words are one row of all banks.
__global__ void rows(float* B, int row) {
  Words& sm = ptx::dynamic_smem<Words>();
  const int lane = threadIdx.x;
  for (int i = 0; i < 4; ++i) sm.x[lane * row + i] = 1;
  __syncwarp();
  uint32_t r[4];
  ptx::ldmatrix_x4(r, sm.x + lane * row);  // @rows
  if (r[0] == 1) B[0] = 1;
}
__global__ void bytes(const float* A, float* B, float* C) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < 100) {
    B[i] = A[i] + A[i + 1];
    reinterpret_cast<half*>(C)[i] = __float2half_rn(A[0]);
    atomicAdd(C + 200, 1.f);
  }
}

}  // namespace

#define FLASH_EXPORT extern "C" __attribute__((visibility("default")))
FLASH_EXPORT void flash_global_stride(const float* A, float* B, int stride) {
  ptx::launch("global_stride", global_stride, 1, 32, 0, nullptr, A, B, stride);
}
FLASH_EXPORT void flash_shared_stride(float* B, int stride) {
  ptx::launch("shared_stride", shared_stride, 1, 32, sizeof(Words), nullptr, B, stride);
}
FLASH_EXPORT void flash_broadcast(float* B) { ptx::launch("broadcast", broadcast, 1, 32, sizeof(Words), nullptr, B); }
FLASH_EXPORT void flash_shared_vectors(float* B) {
  ptx::launch("shared_vectors", shared_vectors, 1, 32, sizeof(Words), nullptr, B);
}
FLASH_EXPORT void flash_global_vectors(const float* A, float* B) {
  ptx::launch("global_vectors", global_vectors, 1, 32, 0, nullptr, A, B);
}
FLASH_EXPORT void flash_rows(float* B, int row) { ptx::launch("rows", rows, 1, 32, sizeof(Words), nullptr, B, row); }
FLASH_EXPORT void flash_bytes(const float* A, float* B, float* C) {
  ptx::launch("bytes", bytes, 2, 64, 0, nullptr, A, B, C);
}

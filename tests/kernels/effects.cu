// What an instruction does beside its result: when a copy arrives, who is stopped where, what the stepper is told.
#include "cuda/ptx/ptx.hpp"

namespace ptx = flash::ptx;

namespace {

template <class... Parameters, class... Arguments>
void launch(const char* name, void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t smem,
            Arguments... arguments) {
  ptx::launch(name, kernel, grid, block, smem, nullptr, arguments...);
}

struct Words {
  alignas(16) unsigned x[256];
};

/// Looks at the landing place before the copy has been waited for, and after.
__global__ void peek(const unsigned* A, unsigned* B) {
  Words& sm = ptx::dynamic_smem<Words>();
  const int lane = threadIdx.x;
  sm.x[lane] = 7;
  ptx::cp_async_4(sm.x + lane, A + lane);
  ptx::cp_async_commit_group();
  B[lane] = sm.x[lane];
  ptx::cp_async_wait_group<0>();
  B[32 + lane] = sm.x[lane];
}

/// Three groups of which the oldest two are waited for.
__global__ void groups(const unsigned* A, unsigned* B) {
  Words& sm = ptx::dynamic_smem<Words>();
  const int lane = threadIdx.x;
  for (int group = 0; group < 3; ++group) {
    ptx::cp_async_4(sm.x + 32 * group + lane, A + 32 * group + lane);
    ptx::cp_async_commit_group();
  }
  ptx::cp_async_wait_group<1>();
  for (int group = 0; group < 3; ++group) B[32 * group + lane] = sm.x[32 * group + lane];
  ptx::cp_async_wait_all();
}

/// Two tiles in shared memory, a local array and a mark for each; the second CTA has other numbers.
__global__ void steps(const unsigned* A, unsigned* B) {
  Words& sm = ptx::dynamic_smem<Words>();
  ptx::name("tile", sm.x);
  const int thread = threadIdx.x;
  unsigned sums[2] = {};
  ptx::watch("sums", sums);
  for (int j = 0; j < 2; ++j) {
    sm.x[thread] = A[64 * j + thread] + 1000 * blockIdx.x;
    __syncthreads();  // @first_barrier
    sums[j] = sm.x[63 - thread];
    ptx::mark("tile", j);                           // @mark
    sums[j] += __shfl_xor_sync(0xffffffff, 0u, 1);  // @shuffle
    __syncthreads();                                // @second_barrier
  }
  B[64 * blockIdx.x + thread] = sums[0] + sums[1];
}

/// Marks of warps of which lanes have exited, and in a branch.
__global__ void marks(unsigned* B) {
  if (threadIdx.x < 5) return;
  ptx::mark("left", 1);
  if (threadIdx.x == 5) ptx::mark("lowest", 2);
  if (threadIdx.x == 6) ptx::mark("another", 3);
  B[threadIdx.x] = 1;
}

__global__ void grid_of(unsigned* B, unsigned n) {
  const unsigned cta = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  if (cta < n && threadIdx.x == 0) B[cta] = cta;
}

__global__ void forever(volatile unsigned* A, unsigned* B) {
  B[threadIdx.x] = 1;
  ptx::mark("before", 0);
  while (A[1000] == 0) {
  }
}

}  // namespace

#define FLASH_EXPORT extern "C" __attribute__((visibility("default")))
FLASH_EXPORT void flash_peek(const unsigned* A, unsigned* B) { launch("peek", peek, 1, 32, sizeof(Words), A, B); }
FLASH_EXPORT void flash_groups(const unsigned* A, unsigned* B) { launch("groups", groups, 1, 32, sizeof(Words), A, B); }
FLASH_EXPORT void flash_steps(const unsigned* A, unsigned* B) { launch("steps", steps, 2, 64, sizeof(Words), A, B); }
FLASH_EXPORT void flash_marks(unsigned* B) { launch("marks", marks, 1, 64, 0, B); }
FLASH_EXPORT void flash_forever(unsigned* A, unsigned* B) {
  launch("forever", forever, 1, 64, 0, static_cast<volatile unsigned*>(A), B);
}
FLASH_EXPORT void flash_grid(unsigned* B, unsigned n, unsigned x, unsigned y, unsigned z, unsigned threads,
                             std::size_t smem) {
  launch("grid_of", grid_of, dim3(x, y, z), dim3(threads), smem, B, n);
}
/// What host code of a kernel file does is nobody's access, inside of Machine::run() and outside.
FLASH_EXPORT unsigned flash_host_code(unsigned* A, unsigned n) {
  static unsigned calls = 0;
  for (unsigned i = 1; i < n; ++i) A[i] += A[i - 1];
  return ++calls;
}

// Kernels that would kill their program or never end, and what else the tests of faults need.
#include <cstdlib>
#include <stdexcept>

#include "cuda/ptx/ptx.hpp"

namespace ptx = flash::ptx;

// The undefined-behaviour sanitizer would be there first.
#define DELIBERATE __attribute__((no_sanitize("undefined")))

namespace {

__global__ void ends(int* A) { A[threadIdx.x] = 1; }

__global__ void big_array(int* A) {  // @big_array
  int local[200000];
  ptx::watch("local", local);
  for (int i = 0; i < 200000; ++i) local[i] = A[i % 1024];
  A[threadIdx.x] = local[A[0]];
}

__device__ __attribute__((noinline)) int deeper(int* A, int n) {  // @recursion
  volatile int local[60] = {};
  local[n % 60] = A[n % 1024];
  return n == 0 ? A[5000] : deeper(A, n - 1) + local[n % 60];
}
__global__ void recursion(int* A, int depth) { A[threadIdx.x] = deeper(A, depth); }

__global__ DELIBERATE void below(int* A, int index) {
  int local[4] = {};
  ptx::watch("local", local);
  A[threadIdx.x] = local[index];  // @below
}

__global__ DELIBERATE void division(int* A) {
  if (threadIdx.x == 37) A[0] = 100 / A[1];  // @division
}

__global__ DELIBERATE void call(int* A, void (*function)(int*)) {
  function(A);  // @call
}

__global__ DELIBERATE void copy(int* A, const int* from, std::size_t bytes) {
  __builtin_memcpy(A, from, bytes);  // @copy
}

__global__ void aborts(int* A) {
  if (A[threadIdx.x] != 0 && blockIdx.x > 0)
    std::abort();  // @aborts
}

__global__ void trap(int* A) {
  if (A[0] == 0)
    __builtin_trap();  // @trap
}

__global__ void throws(int* A) {
  if (threadIdx.x == 3) throw std::runtime_error("the kernel says no");
  A[threadIdx.x] = 1;
}

__global__ void spins(int*) {
  for (;;) {}  // @spins
}

__global__ void waits(int* A) {
  if (blockIdx.x == 0)
    while (A[0] == 0) {}  // @waits
  else
    A[0] = 1;
}

/// Long, but the threads meet.
__global__ void meets(int* A, int times) {
  for (int i = 0; i < times; ++i) __syncwarp();
  A[threadIdx.x] = 1;
}

/// The machine is called with what it doesn't check.
__global__ void breaks_the_machine(int*) {
  int local = 0;
  ptx::watch("local", local);
  flash::gpu::watch(nullptr, &local, sizeof local, {});
}

template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, Arguments... arguments) {
  ptx::launch("faulty", kernel, grid, block, 0, nullptr, arguments...);
}

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default"))) void
EXPORT flash_ends(int* A) { launch(ends, 1, 64, A); }
EXPORT flash_big_array(int* A) { launch(big_array, 1, 32, A); }
EXPORT flash_recursion(int* A) { launch(recursion, 1, 32, A, A[1] ? A[1] : 1000000); }
EXPORT flash_below(int* A) { launch(below, 1, 32, A, -70000); }
EXPORT flash_division(int* A) { launch(division, 1, 64, A); }
EXPORT flash_null_call(int* A) { launch(call, 1, 32, A, nullptr); }
EXPORT flash_wild_call(int* A) { launch(call, 1, 32, A, reinterpret_cast<void (*)(int*)>(A)); }
EXPORT flash_copy(int* A) { launch(copy, 1, 32, A, nullptr, 64); }
EXPORT flash_aborts(int* A) { A[3] = 1, launch(aborts, 2, 32, A); }
EXPORT flash_trap(int* A) { launch(trap, 1, 32, A); }
EXPORT flash_throws(int* A) { launch(throws, 1, 32, A); }
EXPORT flash_spins(int* A) { launch(spins, 1, 32, A); }
EXPORT flash_waits(int* A) { launch(waits, 2, 32, A); }
EXPORT flash_meets(int* A) { launch(meets, 1, 32, A, 100000); }
EXPORT flash_breaks_the_machine(int* A) { launch(breaks_the_machine, 1, 32, A); }

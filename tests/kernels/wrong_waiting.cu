// More kernels of wrong.hpp: flags, atomics and copies whose source changes.
#include "tests/kernels/launch.hpp"
#include "tests/kernels/wrong.hpp"

namespace {

struct Words {
  alignas(16) int x[256];
};

__global__ void flag_that_nobody_raises(int* A) {
  Words& sm = ptx::dynamic_smem<Words>();
  volatile int* flag = sm.x;
  if (threadIdx.x == 0) *flag = 0;
  __syncthreads();
  while (*flag == 0) {  // @flag_that_nobody_raises
  }
  A[0] = 1;
}
__global__ void sum_that_stays(float* A) {
  while (atomicAdd(A, 0.f) == 0) {  // @sum_that_stays
  }
}

/// Warp 1 meets warp 2 at a barrier, warp 0's atomic is ordered before nothing.
__global__ void atomic_of_a_third(int* A) {
  Words& sm = ptx::dynamic_smem<Words>();
  const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (threadIdx.x == 0) sm.x[0] = 0;
  __syncthreads();
  if (warp == 0 && lane == 0) atomicAdd(&sm.x[0], 1);  // @atomic_of_a_third
  if (warp == 1) {
    if (lane == 0)
      while (atomicAdd(&sm.x[0], 0) == 0) {
      }
    if (lane == 0) atomicAdd(&sm.x[0], 1);
    __syncwarp();
    ptx::bar_sync(1, 64);
  }
  if (warp == 2) {
    ptx::bar_sync(1, 64);
    A[lane] = sm.x[0];  // @read_after_atomic_of_a_third
  }
}
/// Without a fence an own atomic orders nothing.
__global__ void store_after_atomics(int* A) {
  if (threadIdx.x > 0) return;
  if (blockIdx.x == 1)
    while (atomicAdd(A, 0) == 0) {
    }
  atomicAdd(A, 1);              // @atomic_before_the_store
  if (blockIdx.x == 1) *A = 9;  // @store_after_atomics
}

__global__ void source_changed(int* A, int* B) {
  Words& sm = ptx::dynamic_smem<Words>();
  const int thread = threadIdx.x;
  ptx::cp_async_16(&sm.x[4 * thread], A + 4 * thread);  // @source_changed
  A[4 * thread] = 100;                                  // @change_of_a_source
  ptx::cp_async_wait_all();
  B[thread] = sm.x[4 * thread];
}
__global__ void source_changed_by_another(int* A, int* B) {
  Words& sm = ptx::dynamic_smem<Words>();
  const int thread = threadIdx.x;
  ptx::cp_async_16(&sm.x[4 * thread], A + 4 * thread);  // @source_changed_by_another
  __syncthreads();
  A[4 * (31 - thread)] = 100;
  ptx::cp_async_wait_all();
  B[thread] = sm.x[4 * thread];
}
__global__ void source_in_shared_memory(int* B) {
  Words& sm = ptx::dynamic_smem<Words>();
  const int thread = threadIdx.x;
  for (int i = 0; i < 4; ++i) sm.x[4 * thread + i] = i;
  ptx::cp_async_16(&sm.x[128 + 4 * thread], &sm.x[4 * thread]);  // @source_in_shared_memory
  ptx::cp_async_wait_all();
  B[thread] = sm.x[128 + 4 * thread];
}

__global__ void barrier_of_a_warp_that_left(int* A) {
  if (threadIdx.x >= 96) return;
  ptx::bar_sync(0, 128);  // @barrier_of_a_warp_that_left
  A[threadIdx.x] = 1;
}
__global__ void barriers_in_branches(int* A) {
  if (threadIdx.x < 32)
    __syncthreads();  // @barrier_of_some
  else
    __syncthreads();  // @barrier_of_others
  A[threadIdx.x] = 1;
}

using T = const Tensors&;
constexpr std::size_t smem = sizeof(Words);

const Wrong kernels[] = {
    {"a flag that nobody raises", 75, "deadlock", "threads 0-31: volatile read at @flag_that_nobody_raises",
     [](T t) { launch(flag_that_nobody_raises, 1, 32, smem, t.A); }},
    {"a sum that stays", 75, "deadlock", "thread; at @sum_that_stays",
     [](T t) { launch(sum_that_stays, 1, 1, 0, reinterpret_cast<float*>(t.A)); }},
    {"an atomic of a third warp", 75, "race",
     "read; shared memory, byte 0; at @read_after_atomic_of_a_third; not ordered after the atomic access; thread 0 "
     "(warp "
     "0, lane 0); at @atomic_of_a_third",
     [](T t) { launch(atomic_of_a_third, 1, 96, smem, t.A); }},
    {"a store after atomics", 75, "race",
     "write; of A, byte 0; at @store_after_atomics; not ordered after the atomic access; at @atomic_before_the_store",
     [](T t) { launch(store_after_atomics, 2, 32, 0, t.A); }},
    {"a source that changes", 80, "race",
     "write; of A; at @change_of_a_source; asynchronous read; cp.async of thread; at @source_changed; "
     "cp.async.wait_group",
     [](T t) { launch(source_changed, 1, 32, smem, t.A, t.B); }},
    {"a source that another changes", 80, "race",
     "write; of A; asynchronous read; cp.async of thread; at @source_changed_by_another",
     [](T t) { launch(source_changed_by_another, 1, 32, smem, t.A, t.B); }},
    {"a source in shared memory", 80, "bounds", "cp.async; at @source_in_shared_memory; reads shared memory",
     [](T t) { launch(source_in_shared_memory, 1, 32, smem, t.B); }},
    {"a barrier of a warp that left", 75, "deadlock", "threads 0-95: bar.sync at @barrier_of_a_warp_that_left",
     [](T t) { launch(barrier_of_a_warp_that_left, 1, 128, 0, t.A); }},
    {"barriers in branches", 75, "barrier",
     "is at a barrier of all threads; others of its CTA; @barrier_of_some; @barrier_of_others",
     [](T t) { launch(barriers_in_branches, 1, 64, 0, t.A); }},
};

}  // namespace

extern "C" __attribute__((visibility("default")))
const WrongKernels flash_wrong = {kernels, sizeof kernels / sizeof kernels[0]};

// The kernels of wrong.hpp; the table at the end holds what their reports must say.
#include "tests/kernels/launch.hpp"
#include "tests/kernels/wrong.hpp"

namespace {

struct Words {
  alignas(16) int x[256];
};

// ---- bounds

__global__ void behind(int* A, int n) {
  for (int i = 0; i < n; ++i) A[threadIdx.x + 32 * i] = i;  // @behind
}
struct Three {
  int x[3];
};
__global__ void across_the_end(const int* A, int* B) {
  *reinterpret_cast<Three*>(B) = *reinterpret_cast<const Three*>(A + 1022);  // @across_the_end
}
__global__ void before(const int* A, int* B) {
  B[threadIdx.x] = A[static_cast<int>(threadIdx.x) - 3];  // @before
}
__global__ void int_index(int* A, int row) {
  const int stride = 1 << 20;
  A[row * stride + threadIdx.x] = 1;  // @int_index
}
__global__ void null(int* A) {
  A[threadIdx.x] = 1;  // @null
}
__global__ void of_another(int* A) {
  struct Smem {
    int* local;
  };
  Smem& sm = ptx::dynamic_smem<Smem>();
  int local[4] = {1, 2, 3, 4};
  if (threadIdx.x == 7) sm.local = local;
  __syncthreads();
  A[threadIdx.x] = sm.local[threadIdx.x % 4];  // @of_another
}
__global__ void behind_shared(int* A) {
  Words& sm = ptx::dynamic_smem<Words>();
  sm.x[300 + threadIdx.x] = 1;  // @behind_shared
  A[0] = 1;
}
__global__ void too_little_shared(int* A) {
  Words& sm = ptx::dynamic_smem<Words>();  // @too_little_shared
  sm.x[0] = A[0];
}
__global__ void of_the_host(int* A, const int* host) {
  A[threadIdx.x] = *host;  // @of_the_host
}
__device__ int of_the_file = 0;
__global__ void variable_of_the_file(int* A) {
  A[threadIdx.x] = ++of_the_file;  // @variable_of_the_file
}
__global__ void rows_outside(int* A) {
  Words& sm = ptx::dynamic_smem<Words>();
  uint32_t r[1];
  ptx::ldmatrix_x1(r, sm.x + 4 * (threadIdx.x + 60));  // @rows_outside
  A[threadIdx.x] = static_cast<int>(r[0]);
}

// ---- alignment

__global__ void vector_off(int* A) {
  *reinterpret_cast<int4*>(A + 1 + 4 * threadIdx.x) = make_int4(1, 2, 3, 4);  // @vector_off
}
__global__ void pair_off_in_shared(int* A) {
  Words& sm = ptx::dynamic_smem<Words>();
  *reinterpret_cast<float2*>(sm.x + 1) = make_float2(1, 2);  // @pair_off_in_shared
  A[0] = sm.x[1];
}
__global__ void rows_off(int* A) {
  Words& sm = ptx::dynamic_smem<Words>();
  for (int i = 0; i < 4; ++i) sm.x[threadIdx.x * 4 + i] = 0;
  __syncwarp();
  uint32_t r[1];
  ptx::ldmatrix_x1(r, sm.x + 4 * (threadIdx.x % 8) + (threadIdx.x == 3 ? 2 : 0));  // @rows_off
  A[threadIdx.x] = static_cast<int>(r[0]);
}
__global__ void copy_off(const int* A) {
  Words& sm = ptx::dynamic_smem<Words>();
  ptx::cp_async_16(sm.x, A + 2);  // @copy_off
}
__global__ void copy_to_off(const int* A) {
  Words& sm = ptx::dynamic_smem<Words>();
  ptx::cp_async_8(sm.x + 1, A);  // @copy_to_off
}
__global__ void red_off(half* A) {
  ptx::red_add_f16x2(A + 1, 0);  // @red_off
}

// ---- what nobody has written

__global__ void unwritten(const int* U, int* B) {
  B[threadIdx.x] = U[threadIdx.x];  // @unwritten
}
__global__ void unwritten_shared(int* A) {
  Words& sm = ptx::dynamic_smem<Words>();
  if (threadIdx.x < 20) sm.x[threadIdx.x] = 1;
  __syncthreads();
  A[threadIdx.x] = sm.x[threadIdx.x];  // @unwritten_shared
}
__global__ void partly_written(int* A, int* U) {
  reinterpret_cast<unsigned short*>(U)[0] = 1;
  A[0] = U[0];  // @partly_written
}
__global__ void rows_unwritten(int* A) {
  Words& sm = ptx::dynamic_smem<Words>();
  if (threadIdx.x != 5)
    for (int i = 0; i < 4; ++i) sm.x[threadIdx.x * 4 + i] = 0;
  __syncwarp();
  uint32_t r[1];
  ptx::ldmatrix_x1(r, sm.x + 4 * (threadIdx.x % 8));  // @rows_unwritten
  A[threadIdx.x] = static_cast<int>(r[0]);
}
__global__ void add_to_unwritten(float* U) {
  atomicAdd(U + 3, 1.f);  // @add_to_unwritten
}

// ---- races

__global__ void read_after_write(int* A) {
  Words& sm = ptx::dynamic_smem<Words>();
  ptx::name("exchange", sm.x);
  sm.x[threadIdx.x] = 1;                                        // @write_1
  A[threadIdx.x] = sm.x[threadIdx.x] + sm.x[63 - threadIdx.x];  // @read_1
}
__global__ void write_after_read(int* A) {
  Words& sm = ptx::dynamic_smem<Words>();
  sm.x[threadIdx.x] = 1;
  __syncthreads();
  A[threadIdx.x] = sm.x[63 - threadIdx.x];  // @read_2
  sm.x[threadIdx.x] = 2;                    // @write_2
}
__global__ void write_after_write(int* A) {
  Words& sm = ptx::dynamic_smem<Words>();
  sm.x[threadIdx.x % 32] = 1;  // @write_3
  A[threadIdx.x] = 0;
}
__global__ void lanes(int* A) {
  Words& sm = ptx::dynamic_smem<Words>();
  sm.x[threadIdx.x] = 1;
  __syncwarp();
  if (threadIdx.x % 2 == 0) sm.x[threadIdx.x] += sm.x[threadIdx.x + 1];  // @read_4
  if (threadIdx.x % 2 == 1) sm.x[threadIdx.x] = 5;                       // @write_4
  A[threadIdx.x] = 0;
}
__global__ void shuffle_is_no_barrier(int* A) {
  Words& sm = ptx::dynamic_smem<Words>();
  sm.x[threadIdx.x] = 1;  // @write_5
  __shfl_sync(0xffffffff, 1, 0);
  A[threadIdx.x] = sm.x[31 - threadIdx.x];  // @read_5
}
__global__ void ctas_write(int* A) {
  if (threadIdx.x == 33) A[10] = static_cast<int>(blockIdx.x);  // @write_6
}
__global__ void ctas_read(int* A, int* B) {
  A[blockIdx.x] = 1;                  // @write_7
  B[blockIdx.x] = A[1 - blockIdx.x];  // @read_7
}
__global__ void atomic_and_write(unsigned* A) {
  if (blockIdx.x == 0) atomicAdd(A, 1u);  // @atomic_8
  if (blockIdx.x == 1) *A = 2;            // @write_8
}
__global__ void atomic_and_read(unsigned* A, unsigned* B) {
  if (blockIdx.x == 0) atomicAdd(A, 1u);  // @atomic_9
  if (blockIdx.x == 1) *B = *A;           // @read_9
}
__global__ void a_byte_of_it(int* A) {
  if (threadIdx.x == 0) A[0] = 1;                            // @write_10
  if (threadIdx.x == 32) reinterpret_cast<char*>(A)[2] = 1;  // @write_10b
}
__global__ void no_fence(int* A, unsigned* B) {
  if (blockIdx.x == 0) {
    A[0] = 1;  // @write_11
    atomicExch(B, 1u);
  } else {
    while (atomicAdd(B, 0u) == 0) {
    }
    __threadfence();
    A[1] = A[0];  // @read_11
  }
}
/// The atomics on each CTA's shared memory carry nothing to another CTA, though the memory is the same.
__global__ void through_shared(int* A) {
  struct Smem {
    unsigned count;
    char rest[48 * 1024];
  };
  Smem& sm = ptx::dynamic_smem<Smem>();
  if (blockIdx.x == 0) {
    *A = 1;  // @write_12
    __threadfence();
  }
  sm.count = 0;
  atomicAdd(&sm.count, 1u);
  __threadfence();
  if (blockIdx.x == 1) *A = 2;  // @write_12b
}
__global__ void read_too_early(const int* A, int* B) {
  Words& sm = ptx::dynamic_smem<Words>();
  ptx::cp_async_4(sm.x + threadIdx.x, A + threadIdx.x);  // @copy_13
  ptx::cp_async_commit_group();
  B[threadIdx.x] = sm.x[threadIdx.x];  // @read_13
  ptx::cp_async_wait_group<0>();
}
__global__ void refill_too_early(const int* A, int* B) {
  Words& sm = ptx::dynamic_smem<Words>();
  sm.x[threadIdx.x] = 1;
  __syncthreads();
  B[threadIdx.x] = sm.x[63 - threadIdx.x];               // @read_14
  ptx::cp_async_4(sm.x + threadIdx.x, A + threadIdx.x);  // @copy_14
  ptx::cp_async_wait_all();
}
__global__ void waited_alone(const int* A, int* B) {
  Words& sm = ptx::dynamic_smem<Words>();
  ptx::cp_async_4(sm.x + threadIdx.x, A + threadIdx.x);  // @copy_15
  ptx::cp_async_wait_all();
  B[threadIdx.x] = sm.x[63 - threadIdx.x];  // @read_15
}

// ---- divergence

__global__ void mma_in_a_branch(int* A) {
  float d[4] = {};
  const uint32_t a[2] = {};
  if (threadIdx.x < 16) ptx::mma_m16n8k8_f16(d, a, 0);  // @mma_in_a_branch
  A[threadIdx.x] = static_cast<int>(d[0]);
}
__global__ void barrier_in_a_branch(int* A) {
  if (threadIdx.x % 2 == 0) __syncthreads();  // @barrier_in_a_branch
  A[threadIdx.x] = 1;
  __syncthreads();  // @the_other_barrier
}
__global__ void left_out(int* A) {
  A[threadIdx.x] = __shfl_sync(0x0000ffff, 1, 0);  // @left_out
}
__global__ void different_calls(int* A) {
  int x = 0;
  if (threadIdx.x < 16)
    x = __shfl_xor_sync(0xffffffff, 1, 1);  // @one_call
  else
    x = __any_sync(0xffffffff, 1);  // @other_call
  A[threadIdx.x] = x;
}
__global__ void rows_of_half_a_warp(int* A) {
  Words& sm = ptx::dynamic_smem<Words>();
  for (int i = 0; i < 4; ++i) sm.x[threadIdx.x * 4 + i] = 0;
  if (threadIdx.x >= 16) return;
  uint32_t r[1];
  ptx::ldmatrix_x1(r, sm.x + 4 * (threadIdx.x % 8));  // @rows_of_half_a_warp
  A[threadIdx.x] = static_cast<int>(r[0]);
}
__global__ void inactive_source(int* A) {
  if (threadIdx.x < 8) A[threadIdx.x] = __shfl_xor_sync(0x000000ff, 1, 8);  // @inactive_source
}

// ---- barriers that never open, and waiting for what can't come

__global__ void one_warp_short(int* A) {
  if (threadIdx.x < 64) ptx::bar_sync(2, 96);  // @one_warp_short
  A[threadIdx.x] = 1;
}
__global__ void barrier_16(int* A) {
  ptx::bar_sync(16, 32);  // @barrier_16
  A[0] = 1;
}
__global__ void half_a_warp_counted(int* A) {
  ptx::bar_sync(1, 48);  // @half_a_warp_counted
  A[0] = 1;
}
__global__ void two_counts(int* A) {
  if (threadIdx.x < 32)
    ptx::bar_sync(1, 64);  // @count_64
  else
    ptx::bar_sync(1, 96);  // @count_96
  A[threadIdx.x] = 1;
}
__global__ void waits_for_next(unsigned* A) {
  if (threadIdx.x == 0 && blockIdx.x + 1 < gridDim.x)
    while (atomicAdd(A + blockIdx.x + 1, 0u) == 0) {  // @waits_for_next
    }
  __syncthreads();
  if (threadIdx.x == 0) atomicExch(A + blockIdx.x, 1u);
}
__global__ void watches_next(volatile unsigned* A) {
  if (blockIdx.x + 1 < gridDim.x)
    while (A[blockIdx.x + 1] == 0) {  // @watches_next
    }
  A[blockIdx.x] = 1;
}
__global__ void votes_for_ever(volatile unsigned* A) {
  while (__any_sync(0xffffffff, *A == 0)) {  // @votes_for_ever
  }
}
/// The lane that sets the flag waits behind a barrier for those that wait for the flag.
__global__ void lock_step(unsigned* A) {
  __syncwarp();
  if (threadIdx.x > 0)
    while (atomicAdd(A, 0u) == 0) {  // @lock_step
    }
  __syncwarp();  // @behind_it
  if (threadIdx.x == 0) atomicExch(A, 1u);
}

// ---- instructions that the architecture lacks, and misuse

__global__ void copy_on_75(const int* A) {
  Words& sm = ptx::dynamic_smem<Words>();
  ptx::cp_async_16(sm.x, A);  // @copy_on_75
}
__global__ void k16_on_75(int* A) {
  float d[4] = {};
  const uint32_t a[4] = {}, b[2] = {};
  ptx::mma_m16n8k16_f16(d, a, b);  // @k16_on_75
  A[threadIdx.x] = static_cast<int>(d[0]);
}
__global__ void bf16_on_75(int* A) {
  float d[4] = {};
  const uint32_t a[2] = {};
  ptx::mma_m16n8k8_bf16(d, a, 0);  // @bf16_on_75
  A[threadIdx.x] = static_cast<int>(d[0]);
}
__global__ void pack_on_75(int* A) {
  A[threadIdx.x] = static_cast<int>(ptx::pack_bf16(1, 2));  // @pack_on_75
}
__global__ void exits_in_flight(const int* A) {
  Words& sm = ptx::dynamic_smem<Words>();
  ptx::cp_async_16(sm.x + 4 * threadIdx.x, A + 4 * threadIdx.x);  // @exits_in_flight
  ptx::cp_async_commit_group();
}
__global__ void too_many_bytes(const int* A) {
  Words& sm = ptx::dynamic_smem<Words>();
  ptx::cp_async_4(sm.x + threadIdx.x, A + threadIdx.x, 8);  // @too_many_bytes
  ptx::cp_async_wait_all();
}

using T = const Tensors&;
float* floats(int* p) { return reinterpret_cast<float*>(p); }
unsigned* unsigneds(int* p) { return reinterpret_cast<unsigned*>(p); }
constexpr std::size_t smem = sizeof(Words);

const Wrong kernels[] = {
    {"behind a tensor", 75, "bounds",
     "write of 4 bytes; thread 0 (warp 0, lane 0) of CTA (0,0,0) at @behind; 0 bytes behind the end of A (4096 bytes); "
     "check the index",
     [](T t) { launch(behind, 1, 32, 0, t.A, 33); }},
    {"across the end of a tensor", 75, "bounds", "read of 12 bytes; at @across_the_end; the end of A (4096 bytes)",
     [](T t) { launch(across_the_end, 1, 1, 0, t.A, t.B); }},
    {"before a tensor", 75, "bounds", "read of 4 bytes; at @before; 12 bytes before the begin of A (4096 bytes)",
     [](T t) { launch(before, 1, 32, 0, t.A, t.B); }},
    {"an index of 32 bits", 75, "bounds", "at @int_index; outside every tensor; of A (4096; 64 bits for global memory",
     [](T t) { launch(int_index, 1, 32, 0, t.A, 2048); }},
    {"a null pointer", 75, "bounds",
     "write of 4 bytes; at @null; null pointer; a tensor that this kernel was not given",
     [](T) { launch(null, 1, 32, 0, static_cast<int*>(nullptr)); }},
    {"another thread's variable", 75, "bounds", "read of 4 bytes; at @of_another; a local variable of thread 7",
     [](T t) { launch(of_another, 1, 32, 8, t.A); }},
    {"behind shared memory", 75, "bounds",
     "write of 4 bytes; at @behind_shared; outside the 1024 bytes of shared memory",
     [](T t) { launch(behind_shared, 1, 32, smem, t.A); }},
    {"less shared memory than used", 75, "bounds", "at @too_little_shared; uses 1024 bytes; its launch gave 512",
     [](T t) { launch(too_little_shared, 1, 32, 512, t.A); }},
    {"the host's memory", 75, "bounds", "read of 4 bytes; at @of_the_host; no tensor, shared memory or variable",
     [](T t) {
       int host = 1;
       launch(of_the_host, 1, 32, 0, t.A, static_cast<const int*>(&host));
     }},
    {"a variable of the file", 75, "bounds", "of 4 bytes; at @variable_of_the_file; keep it in a tensor",
     [](T t) { launch(variable_of_the_file, 1, 32, 0, t.A); }},
    {"rows outside shared memory", 75, "bounds",
     "ldmatrix of 16 bytes; thread 4 (warp 0, lane 4); at @rows_outside; outside the 1024 bytes",
     [](T t) { launch(rows_outside, 1, 32, smem, t.A); }},

    {"a vector off alignment", 75, "alignment",
     "write of 16 bytes; at @vector_off; no multiple of 16; a GPU stops at it",
     [](T t) { launch(vector_off, 1, 32, 0, t.A); }},
    {"a pair off alignment in shared memory", 75, "alignment",
     "write of 8 bytes; at @pair_off_in_shared; no multiple of 8",
     [](T t) { launch(pair_off_in_shared, 1, 1, smem, t.A); }},
    {"a row off alignment", 75, "alignment",
     "ldmatrix by thread 3 (warp 0, lane 3); at @rows_off; shared memory, byte 56; 16-byte aligned",
     [](T t) { launch(rows_off, 1, 32, smem, t.A); }},
    {"a copy from off alignment", 80, "alignment", "cp.async by thread 0; at @copy_off; no multiple of 16",
     [](T t) { launch(copy_off, 1, 1, smem, static_cast<const int*>(t.A)); }},
    {"a copy to off alignment", 80, "alignment", "cp.async by thread 0; at @copy_to_off; byte 4; 8-byte aligned",
     [](T t) { launch(copy_to_off, 1, 1, smem, static_cast<const int*>(t.A)); }},
    {"a pair of halves off alignment", 75, "alignment", "red.add.f16x2 of 4 bytes; at @red_off; no multiple of 4",
     [](T t) { launch(red_off, 1, 1, 0, reinterpret_cast<half*>(t.A)); }},

    {"a tensor that nobody wrote", 75, "uninitialised",
     "read of 4 bytes from U, byte 0 of 4096; thread 0; at @unwritten; reads what nobody has written",
     [](T t) { launch(unwritten, 1, 32, 0, t.U, t.B); }},
    {"shared memory that nobody wrote", 75, "uninitialised",
     "read of 4 bytes from shared memory, byte; (warp 0, lane; at @unwritten_shared; reads what nobody has written",
     [](T t) { launch(unwritten_shared, 1, 32, smem, t.A); }},
    {"a word of which half was written", 75, "uninitialised", "read of 4 bytes from U, byte 0; at @partly_written",
     [](T t) { launch(partly_written, 1, 1, 0, t.A, t.U); }},
    {"a row that nobody wrote", 75, "uninitialised",
     "ldmatrix of 16 bytes from shared memory, byte 80; thread 5 (warp 0, lane 5); at @rows_unwritten",
     [](T t) { launch(rows_unwritten, 1, 32, smem, t.A); }},
    {"an addition to what nobody wrote", 75, "uninitialised",
     "atom.add.f32 of 4 bytes from U, byte 12; at @add_to_unwritten",
     [](T t) { launch(add_to_unwritten, 1, 1, 0, floats(t.U)); }},

    {"shared: a read after a write", 75, "race",
     "read of shared memory; exchange + ; at @read_1; not ordered after the write by thread; at @write_1; "
     "a barrier between the two is missing; __syncthreads()",
     [](T t) { launch(read_after_write, 1, 64, smem, t.A); }},
    {"shared: a write after a read", 75, "race",
     "write of shared memory; at @write_2; not ordered after the read by thread; at @read_2; __syncthreads()",
     [](T t) { launch(write_after_read, 1, 64, smem, t.A); }},
    {"shared: two writes", 75, "race", "write of shared memory; at @write_3; not ordered after the write by thread",
     [](T t) { launch(write_after_write, 1, 64, smem, t.A); }},
    {"shared: lanes of a warp", 75, "race",
     "at @write_4; not ordered after the read by thread; (warp 0, lane; at @read_4; __syncwarp() within a warp",
     [](T t) { launch(lanes, 1, 32, smem, t.A); }},
    {"a shuffle is no barrier", 75, "race", "at @read_5; not ordered after the write; at @write_5",
     [](T t) { launch(shuffle_is_no_barrier, 1, 32, smem, t.A); }},
    {"global: two CTAs write", 75, "race",
     "write of A, byte 40 of 4096; thread 33 (warp 1, lane 1) of CTA (; at @write_6; not ordered after the write; two "
     "CTAs "
     "share it; add atomically",
     [](T t) { launch(ctas_write, 2, 64, 0, t.A); }},
    {"global: a CTA reads what another writes", 75, "race", "A, byte; @read_7; @write_7; two CTAs share it",
     [](T t) { launch(ctas_read, 2, 1, 0, t.A, t.B); }},
    {"global: atomic and written", 75, "race", "of A, byte 0; @atomic_8; @write_8; not ordered after the",
     [](T t) { launch(atomic_and_write, 2, 1, 0, unsigneds(t.A)); }},
    {"global: atomic and read", 75, "race", "of A, byte 0; @atomic_9; @read_9; not ordered after the",
     [](T t) { launch(atomic_and_read, 2, 1, 0, unsigneds(t.A), unsigneds(t.B)); }},
    {"global: one byte of a word", 75, "race", "A, byte; @write_10; @write_10b",
     [](T t) { launch(a_byte_of_it, 1, 64, 0, t.A); }},
    {"a flag without a fence before it", 75, "race",
     "read of A, byte 0; at @read_11; not ordered after the write; @write_11",
     [](T t) { launch(no_fence, 2, 1, 0, t.A, unsigneds(t.B)); }},
    {"CTAs that use the same shared memory one after the other", 75, "race",
     "write of A, byte 0; at @write_12b; not ordered after the write; @write_12",
     [](T t) { launch(through_shared, 2, 1, 60 * 1024, t.A); }},
    {"a copy that was not waited for", 80, "race",
     "read of shared memory; at @read_13; not ordered after the asynchronous write by cp.async of thread; @copy_13; "
     "cp.async.wait_group",
     [](T t) { launch(read_too_early, 1, 64, smem, t.A, t.B); }},
    {"a copy to what is still read", 80, "race",
     "cp.async of shared memory; at @copy_14; not ordered after the read by thread; @read_14; the copy may arrive at "
     "once",
     [](T t) { launch(refill_too_early, 1, 64, smem, t.A, t.B); }},
    {"a copy that another thread has waited for", 80, "race",
     "read of shared memory; at @read_15; not ordered after the asynchronous write by cp.async of thread; @copy_15; "
     "then a "
     "barrier",
     [](T t) { launch(waited_alone, 1, 64, smem, t.A, t.B); }},

    {"mma in a branch", 75, "divergence",
     "mma.sync.aligned.m16n8k8.f16; @mma_in_a_branch; the whole warp; lane 16 has exited",
     [](T t) { launch(mma_in_a_branch, 1, 32, 0, t.A); }},
    {"a barrier in a branch", 75, "divergence",
     "@barrier_in_a_branch; @the_other_barrier; must reach the same call; out of the branch",
     [](T t) { launch(barrier_in_a_branch, 1, 64, 0, t.A); }},
    {"a mask without the caller", 75, "divergence",
     "thread 16 (warp 0, lane 16); at @left_out; shfl.sync.idx; a mask that leaves it out; lanes 0-15",
     [](T t) { launch(left_out, 1, 32, 0, t.A); }},
    {"two different calls", 75, "divergence", "@one_call; @other_call; must reach the same call; out of the branch",
     [](T t) { launch(different_calls, 1, 32, 0, t.A); }},
    {"ldmatrix by half a warp", 75, "divergence",
     "ldmatrix.sync.aligned; @rows_of_half_a_warp; the whole warp; lane 16 has exited",
     [](T t) { launch(rows_of_half_a_warp, 1, 32, smem, t.A); }},
    {"a shuffle from a lane that takes no part", 75, "shuffle",
     "thread 0 (warp 0, lane 0); at @inactive_source; the value of lane 8; takes no part; undefined",
     [](T t) { launch(inactive_source, 1, 32, 0, t.A); }},

    {"a barrier for one warp more", 75, "deadlock", "threads 0-63: bar.sync at @one_warp_short; barrier 2 [; of 96",
     [](T t) { launch(one_warp_short, 1, 64, 0, t.A); }},
    {"barrier 16", 75, "barrier", "at @barrier_16; barrier 16; there are 0 to 15",
     [](T t) { launch(barrier_16, 1, 32, 0, t.A); }},
    {"a barrier for one and a half warps", 75, "barrier", "at @half_a_warp_counted; 48 threads; a multiple of 32",
     [](T t) { launch(half_a_warp_counted, 1, 64, 0, t.A); }},
    {"a barrier with two counts", 75, "barrier", "at barrier 1 for; 64; 96; those that wait there said",
     [](T t) { launch(two_counts, 1, 96, 0, t.A); }},
    {"atomics that wait for a CTA that is not resident", 75, "deadlock",
     "at @waits_for_next; waiting for another thread to change; 36 of 100 CTAs have not started; only 64 are resident; "
     "a CTA "
     "may not wait for one that is not resident",
     [](T t) { launch(waits_for_next, 100, 32, 0, unsigneds(t.A)); }},
    {"volatile reads that wait for a CTA that is not resident", 75, "deadlock",
     "volatile read at @watches_next; 36 of 100 CTAs have not started; not resident",
     [](T t) { launch(watches_next, 100, 1, 0, static_cast<volatile unsigned*>(unsigneds(t.A))); }},
    {"a vote that waits for ever", 75, "deadlock", "threads 0-31; @votes_for_ever",
     [](T t) { launch(votes_for_ever, 1, 32, 0, static_cast<volatile unsigned*>(unsigneds(t.A))); }},
    {"lanes that wait for each other", 75, "",
     "threads 0: bar.warp.sync at @behind_it; threads 1-31: atomic at @lock_step",
     [](T t) { launch(lock_step, 1, 32, 0, unsigneds(t.A)); }},

    {"cp.async on Turing", 75, "architecture", "cp.async at @copy_on_75; needs sm_80; runs on sm_75 (Turing)",
     [](T t) { launch(copy_on_75, 1, 1, smem, static_cast<const int*>(t.A)); }},
    {"m16n8k16 on Turing", 75, "architecture", "m16n8k16.f16 at @k16_on_75; needs sm_80; runs on sm_75",
     [](T t) { launch(k16_on_75, 1, 32, 0, t.A); }},
    {"bf16 on Turing", 75, "architecture", "m16n8k8.bf16 at @bf16_on_75; needs sm_80; runs on sm_75",
     [](T t) { launch(bf16_on_75, 1, 32, 0, t.A); }},
    {"packing bf16 on Turing", 75, "architecture", "bf16x2; at @pack_on_75; needs sm_80; runs on sm_75",
     [](T t) { launch(pack_on_75, 1, 32, 0, t.A); }},
    {"an exit with copies in flight", 80, "cp.async",
     "thread; at @exits_in_flight; exits with copies in flight; wait for",
     [](T t) { launch(exits_in_flight, 1, 32, smem, static_cast<const int*>(t.A)); }},
    {"a copy of more than it holds", 80, "cp.async", "at @too_many_bytes; copies 8 bytes into 4",
     [](T t) { launch(too_many_bytes, 1, 32, smem, static_cast<const int*>(t.A)); }},
};

}  // namespace

extern "C" __attribute__((visibility("default")))
const WrongKernels flash_wrong = {kernels, sizeof kernels / sizeof kernels[0]};

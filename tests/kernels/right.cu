// The kernels of right.hpp, each with its check.
#include "tests/kernels/launch.hpp"
#include "tests/kernels/right.hpp"

namespace {

float x_at(int i) { return static_cast<float>(i % 13); }

template <class Expected>
bool equal(const float* y, int count, Expected expected) {
  for (int i = 0; i < count; ++i)
    if (!(y[i] == expected(i))) return false;
  return true;
}

float sum_of(int begin, int end) {
  float sum = 0;
  for (int i = begin; i < end; ++i) sum += x_at(i);
  return sum;
}

// ---- exchanges in shared memory

__global__ void warp_sums(const float* x, float* y) {
  struct Smem {
    float x[128];
  };
  Smem& sm = ptx::dynamic_smem<Smem>();
  const int thread = threadIdx.x, lane = thread % 32;
  sm.x[thread] = x[thread];
  __syncwarp();
  for (int step = 16; step > 0; step /= 2) {
    const float other = lane < step ? sm.x[thread + step] : 0;
    __syncwarp();  // all have read
    if (lane < step) sm.x[thread] += other;
    __syncwarp();  // all have written
  }
  if (lane == 0) y[thread / 32] = sm.x[thread];
}
bool run_warp_sums(const Memory& m) {
  launch(warp_sums, 1, 128, 512, m.x, m.y);
  return equal(m.y, 4, [](int i) { return sum_of(32 * i, 32 * i + 32); });
}

/// Two buffers, one barrier a tile.
__global__ void double_buffer(const float* x, float* y, int tiles) {
  struct Smem {
    float x[2][64];
  };
  Smem& sm = ptx::dynamic_smem<Smem>();
  const int thread = threadIdx.x;
  float sum = 0;
  sm.x[0][thread] = x[thread];
  for (int j = 0; j < tiles; ++j) {
    __syncthreads();  // tile j is there, tile j − 1 has been read
    if (j + 1 < tiles) sm.x[(j + 1) % 2][thread] = x[(j + 1) * 64 + thread];
    sum += sm.x[j % 2][63 - thread];
  }
  y[thread] = sum;
}
bool run_double_buffer(const Memory& m) {
  launch(double_buffer, 1, 64, 512, m.x, m.y, 9);
  return equal(m.y, 64, [](int i) {
    float sum = 0;
    for (int j = 0; j < 9; ++j) sum += x_at(64 * j + 63 - i);
    return sum;
  });
}

/// Two warps fill a ring of two tiles, two others empty it.
__global__ void roles(const float* x, float* y, int tiles) {
  struct Smem {
    float x[2][64];
  };
  Smem& sm = ptx::dynamic_smem<Smem>();
  const int thread = threadIdx.x % 64;
  const auto full = [](int j) { return static_cast<uint32_t>(1 + j % 2); };
  const auto empty = [](int j) { return static_cast<uint32_t>(3 + j % 2); };
  if (threadIdx.x < 64) {
    for (int j = 0; j < tiles; ++j) {
      if (j >= 2) ptx::bar_sync(empty(j), 128);  // tile j − 2 has been read
      sm.x[j % 2][thread] = x[64 * j + thread];
      ptx::bar_arrive(full(j), 128);
    }
  } else {
    float sum = 0;
    for (int j = 0; j < tiles; ++j) {
      ptx::bar_sync(full(j), 128);  // tile j is there
      sum += sm.x[j % 2][63 - thread];
      if (j + 2 < tiles) ptx::bar_arrive(empty(j), 128);
    }
    y[thread] = sum;
  }
}
bool run_roles(const Memory& m) {
  launch(roles, 1, 128, 512, m.x, m.y, 7);
  return equal(m.y, 64, [](int i) {
    float sum = 0;
    for (int j = 0; j < 7; ++j) sum += x_at(64 * j + 63 - i);
    return sum;
  });
}

/// Three stages of cp.async.
__global__ void pipeline(const float* x, float* y, int tiles) {
  struct Smem {
    alignas(16) float x[3][128];
  };
  Smem& sm = ptx::dynamic_smem<Smem>();
  const int thread = threadIdx.x;
  const auto copy = [&](int j) {
    if (j < tiles) ptx::cp_async_16(&sm.x[j % 3][4 * thread], x + 128 * j + 4 * thread);
    ptx::cp_async_commit_group();
  };
  copy(0);
  copy(1);
  float sum = 0;
  for (int j = 0; j < tiles; ++j) {
    ptx::cp_async_wait_group<1>();
    __syncthreads();  // tile j is there for all, tile j − 1 has been read
    copy(j + 2);
    for (int i = 0; i < 4; ++i) sum += sm.x[j % 3][127 - (4 * thread + i)];
  }
  y[thread] = sum;
}
bool run_pipeline(const Memory& m) {
  launch(pipeline, 1, 32, 1536, m.x, m.y, 8);
  return equal(m.y, 32, [](int thread) {
    float sum = 0;
    for (int j = 0; j < 8; ++j) sum += sum_of(128 * j + 124 - 4 * thread, 128 * j + 128 - 4 * thread);
    return sum;
  });
}

__global__ void histogram(const float* x, float* y) {
  struct Smem {
    unsigned count[13];
  };
  Smem& sm = ptx::dynamic_smem<Smem>();
  const int thread = threadIdx.x;
  if (thread < 13) sm.count[thread] = 0;
  __syncthreads();  // the counts are zero
  atomicAdd(&sm.count[static_cast<int>(x[thread])], 1u);
  __syncthreads();  // all have been counted
  if (thread < 13) y[thread] = static_cast<float>(sm.count[thread]);
}
bool run_histogram(const Memory& m) {
  launch(histogram, 1, 130, 64, m.x, m.y);
  return equal(m.y, 13, [](int) { return 10.f; });
}

// ---- CTAs that work together

/// Each CTA adds up its part; the last to finish adds up the parts (CUDA's sample threadFenceReduction).
__global__ void last_cta(const float* x, float* y, unsigned* count) {
  struct Smem {
    bool last;
  };
  Smem& sm = ptx::dynamic_smem<Smem>();
  if (threadIdx.x == 0) {
    float sum = 0;
    for (int i = 0; i < 32; ++i) sum += x[32 * blockIdx.x + i];
    y[1 + blockIdx.x] = sum;
    __threadfence();  // the sum before the count
    sm.last = atomicAdd(count, 1u) == gridDim.x - 1;
    __threadfence();  // what the count says before the sums
  }
  __syncthreads();
  if (sm.last && threadIdx.x == 32) {
    float sum = 0;
    for (unsigned i = 0; i < gridDim.x; ++i) sum += y[1 + i];
    y[0] = sum;
    *count = 0;  // for the next launch
  }
}
bool run_last_cta(const Memory& m) {
  launch(last_cta, 40, 64, 1, m.x, m.y, m.words);
  launch(last_cta, 40, 64, 1, m.x, m.y, m.words);
  return m.y[0] == sum_of(0, 40 * 32) && m.words[0] == 0;
}

/// The same as CUDA's guide has it: volatile parts instead of the second fence.
__global__ void last_cta_volatile(const float* x, volatile float* y, unsigned* count) {
  struct Smem {
    bool last;
  };
  Smem& sm = ptx::dynamic_smem<Smem>();
  if (threadIdx.x == 0) {
    y[1 + blockIdx.x] = x[blockIdx.x];
    __threadfence();
    sm.last = atomicAdd(count, 1u) == gridDim.x - 1;
  }
  __syncthreads();
  if (sm.last && threadIdx.x == 0) {
    float sum = 0;
    for (unsigned i = 0; i < gridDim.x; ++i) sum += y[1 + i];
    y[0] = sum;
  }
}
bool run_last_cta_volatile(const Memory& m) {
  launch(last_cta_volatile, 40, 64, 1, m.x, static_cast<volatile float*>(m.y), m.words);
  return m.y[0] == sum_of(0, 40);
}

__global__ void message(const float* x, float* y, unsigned* flag) {
  if (blockIdx.x == 0) {
    y[0] = x[5];
    __threadfence();
    atomicExch(flag, 1u);
  } else {
    while (atomicAdd(flag, 0u) == 0) {
    }
    __threadfence();
    y[1] = y[0] + 1;
  }
}
bool run_message(const Memory& m) {
  launch(message, 2, 1, 0, m.x, m.y, m.words);
  return m.y[1] == 6;
}

__global__ void volatile_message(const float* x, float* y, volatile unsigned* flag) {
  if (blockIdx.x == 0) {
    y[0] = x[5];
    __threadfence();
    *flag = 1;
  } else {
    while (*flag == 0) {
    }
    __threadfence();
    y[1] = y[0] + 1;
  }
}
bool run_volatile_message(const Memory& m) {
  launch(volatile_message, 2, 1, 0, m.x, m.y, static_cast<volatile unsigned*>(m.words));
  return m.y[1] == 6;
}

/// A barrier of all CTAs, which are resident.
__global__ void grid_barrier(float* y, unsigned* arrived) {
  y[blockIdx.x * blockDim.x + threadIdx.x] = static_cast<float>(blockIdx.x);
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(arrived, 1u);
    while (atomicAdd(arrived, 0u) < gridDim.x) __nanosleep(20);
    __threadfence();
  }
  __syncthreads();
  const unsigned next = (blockIdx.x + 1) % gridDim.x;
  const float other = y[next * blockDim.x + threadIdx.x];
  y[1024 + blockIdx.x * blockDim.x + threadIdx.x] = other;
}
bool run_grid_barrier(const Memory& m) {
  launch(grid_barrier, 8, 40, 0, m.y, m.words);
  return equal(m.y + 1024, 320, [](int i) { return static_cast<float>((i / 40 + 1) % 8); });
}

__global__ void spin_lock(float* count, unsigned* lock) {
  while (atomicCAS(lock, 0u, 1u) != 0) __nanosleep(20);
  __threadfence();
  *count += 1;
  __threadfence();
  atomicExch(lock, 0u);
}
bool run_spin_lock(const Memory& m) {
  launch(spin_lock, 6, 40, 0, m.x, m.words);  // x[0] is 0
  return m.x[0] == 240;
}

__global__ void grid_stride(const float* x, float* y, int n) {
  const int step = static_cast<int>(gridDim.x * blockDim.x);
  for (int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); i < n; i += step) y[i] = 2 * x[i];
}
/// Two launches: the second may use what the first has written.
__global__ void in_place(float* y, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) y[n - 1 - i] += 1;
}
bool run_two_launches(const Memory& m) {
  launch(grid_stride, 5, 96, 0, m.x, m.y, 1001);
  launch(in_place, 8, 128, 0, m.y, 1001);
  return equal(m.y, 1001, [](int i) { return 2 * x_at(i) + 1; });
}

// ---- polling that is not waiting

__global__ void finite_polls(float* y, unsigned* words) {
  for (int i = 0; i < 20; ++i) atomicMax(words, 0u);
  const volatile unsigned* same = words;
  unsigned sum = 0;
  for (int i = 0; i < 20; ++i) sum += *same;
  y[threadIdx.x] = static_cast<float>(sum);
}
bool run_finite_polls(const Memory& m) {
  launch(finite_polls, 1, 40, 0, m.y, m.words);
  return equal(m.y, 40, [](int) { return 0.f; });
}

__global__ void two_flags(float* y, unsigned* words) {
  if (threadIdx.x == 32) {
    atomicExch(words, 1u);
    atomicExch(words + 1, 1u);
  }
  if (threadIdx.x == 0) {
    while (atomicAdd(words, 0u) + atomicAdd(words + 1, 0u) < 2) {
    }
    y[0] = 1;
  }
}
bool run_two_flags(const Memory& m) {
  launch(two_flags, 1, 64, 0, m.y, m.words);
  return m.y[0] == 1;
}

// ---- threads that exit, incomplete warps, groups of lanes

__global__ void early_exit(float* y, int n) {
  const int thread = threadIdx.x;
  if (thread >= n) return;
  y[thread] = static_cast<float>(thread);
  __syncthreads();
  const float other = y[n - 1 - thread];
  __syncthreads();
  y[thread] = other;
}
bool run_early_exit(const Memory& m) {
  for (const int n : {96, 95, 64, 33, 32, 1}) {
    launch(early_exit, 1, 96, 0, m.y, n);
    if (!equal(m.y, n, [=](int i) { return static_cast<float>(n - 1 - i); })) return false;
  }
  return true;
}

/// A warp whose other lanes have exited, or were never there, counts whole at a barrier.
__global__ void named_barrier(float* y, int n) {
  struct Smem {
    float x[64];
  };
  Smem& sm = ptx::dynamic_smem<Smem>();
  const int thread = threadIdx.x;
  if (thread >= n) return;
  sm.x[thread] = static_cast<float>(thread);
  ptx::bar_sync(1, 64);
  y[thread] = sm.x[n - 1 - thread];
}
bool run_named_barrier(const Memory& m) {
  launch(named_barrier, 1, 64, 256, m.y, 48);
  const bool right = equal(m.y, 48, [](int i) { return static_cast<float>(47 - i); });
  launch(named_barrier, 1, 40, 256, m.y, 40);
  return right && equal(m.y, 40, [](int i) { return static_cast<float>(39 - i); });
}

__global__ void masked_sum(const float* x, float* y, int n) {
  const int thread = threadIdx.x;
  const unsigned mask = __ballot_sync(0xffffffff, thread < n);
  if (thread < n) {
    float sum = x[thread];
    for (int step = 1; step < 8; step *= 2) sum += __shfl_xor_sync(mask, sum, step);
    y[thread] = sum;
  }
}
bool run_masked_sum(const Memory& m) {
  launch(masked_sum, 1, 32, 0, m.x, m.y, 24);
  return equal(m.y, 24, [](int i) { return sum_of(i / 8 * 8, i / 8 * 8 + 8); });
}

/// Lanes that meet at one barrier from two places: PTX asks for the same mask, not for the same line.
__global__ void two_places(float* y) {
  struct Smem {
    float x[32];
  };
  Smem& sm = ptx::dynamic_smem<Smem>();
  const int lane = threadIdx.x;
  if (lane < 16) {
    sm.x[lane] = 1;
    __syncwarp();
  } else {
    sm.x[lane] = 2;
    __syncwarp();
  }
  y[lane] = sm.x[31 - lane];
}
bool run_two_places(const Memory& m) {
  launch(two_places, 1, 32, 128, m.y);
  return equal(m.y, 32, [](int i) { return i < 16 ? 2.f : 1.f; });
}

__global__ void incomplete_warp(const float* x, float* y) {
  const unsigned there = __ballot_sync(0xffffffff, 1);
  y[threadIdx.x] = __shfl_sync(0xffffffff, x[threadIdx.x], 0) + static_cast<float>(__popc(there));
}
bool run_incomplete_warp(const Memory& m) {
  launch(incomplete_warp, 1, 40, 0, m.x, m.y);
  return equal(m.y, 40, [](int i) { return x_at(i / 32 * 32) + (i < 32 ? 32 : 8); });
}

// ---- accesses of all sizes

struct Two {
  float a, b;
};
struct Four {
  float a, b, c, d;
};
struct Eight {
  float x[8];
};

/// Structs are copied by their own alignment.
template <class T>
__global__ void copy_struct(const float* x, float* y) {
  struct Smem {
    float x[9];
  };
  Smem& sm = ptx::dynamic_smem<Smem>();
  T& in_shared = *reinterpret_cast<T*>(sm.x + 1);
  in_shared = *reinterpret_cast<const T*>(x + 1);
  *reinterpret_cast<T*>(y + 1) = in_shared;
}
template <class T>
bool run_copy_struct(const Memory& m) {
  launch(copy_struct<T>, 1, 1, 36, m.x, m.y);
  return equal(m.y + 1, sizeof(T) / 4, [](int i) { return x_at(1 + i); });
}

__global__ void clear_struct(float* y) {
  struct Smem {
    float x[256];
  };
  Smem& sm = ptx::dynamic_smem<Smem>();
  if (threadIdx.x == 0) sm = Smem{};
  __syncthreads();
  y[threadIdx.x] = sm.x[threadIdx.x];
}
bool run_clear_struct(const Memory& m) {
  launch(clear_struct, 1, 256, 1024, m.y);
  return equal(m.y, 256, [](int) { return 0.f; });
}

/// Neighbours of one and two bytes belong to different threads.
__global__ void narrow(float* y, unsigned* words) {
  struct Smem {
    unsigned char bytes[64];
    unsigned short shorts[64];
  };
  Smem& sm = ptx::dynamic_smem<Smem>();
  const int thread = threadIdx.x, i = static_cast<int>(blockIdx.x) * 64 + thread;
  auto* bytes = reinterpret_cast<unsigned char*>(words);
  auto* shorts = reinterpret_cast<unsigned short*>(words + 256);
  sm.bytes[thread] = static_cast<unsigned char>(thread);
  sm.shorts[thread] = static_cast<unsigned short>(2 * thread);
  bytes[i] = sm.bytes[thread];
  shorts[i] = sm.shorts[thread];
  bytes[i]++;
  shorts[i]++;
  __syncthreads();
  y[i] = static_cast<float>(sm.bytes[63 - thread] + sm.shorts[63 - thread] + bytes[i] + shorts[i]);
}
bool run_narrow(const Memory& m) {
  launch(narrow, 4, 64, 192, m.y, m.words);
  return equal(m.y, 256, [](int i) { return static_cast<float>(3 * (63 - i % 64) + 3 * (i % 64) + 2); });
}

/// The same bytes as halves, words and vectors.
__global__ void vectors(const float* x, float* y) {
  struct Smem {
    alignas(16) half h[256];
  };
  Smem& sm = ptx::dynamic_smem<Smem>();
  const int thread = threadIdx.x;
  const float4 four = *reinterpret_cast<const float4*>(x + 4 * thread);
  *reinterpret_cast<uint2*>(sm.h + 4 * thread) =
      make_uint2(ptx::pack_f16(four.x, four.y), ptx::pack_f16(four.z, four.w));
  __syncthreads();
  const uint4 eight = *reinterpret_cast<const uint4*>(sm.h + 8 * (thread % 8));
  *reinterpret_cast<float2*>(y + 2 * thread) = ptx::unpack_f16(thread < 32 ? eight.x : eight.w);
}
bool run_vectors(const Memory& m) {
  launch(vectors, 1, 64, 512, m.x, m.y);
  return equal(m.y, 128, [](int i) { return x_at(8 * (i / 2 % 8) + i % 2 + (i < 64 ? 0 : 6)); });
}

__constant__ float table[4] = {1, 2, 4, 8};

__attribute__((noinline)) __device__ void add_to(float* local, int i, float x) { local[i] += x; }

/// Constants of the file, arrays of the thread behind pointers, calls that are not inlined, all three dimensions.
__global__ void surroundings(float* y) {
  float local[4] = {};
  const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  const unsigned cta = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  for (int i = 0; i < 4; ++i) add_to(local, static_cast<int>((thread + static_cast<unsigned>(i)) % 4), table[i]);
  y[cta * 24 + thread] = local[0] + static_cast<float>(100 * __shfl_sync(0x00ffffff, static_cast<int>(thread), 23));
}
bool run_surroundings(const Memory& m) {
  launch(surroundings, dim3(2, 3, 4), dim3(4, 3, 2), 0, m.y);
  return equal(m.y, 24 * 24, [](int i) { return static_cast<float>(2300 + (1 << (4 - i % 24 % 4) % 4)); });
}

constexpr Right kernels[] = {
    {"warp sums", 75, run_warp_sums},
    {"double buffer", 75, run_double_buffer},
    {"roles", 75, run_roles},
    {"pipeline", 80, run_pipeline},
    {"histogram", 75, run_histogram},
    {"last CTA", 75, run_last_cta},
    {"last CTA, volatile", 75, run_last_cta_volatile},
    {"message", 75, run_message},
    {"volatile message", 75, run_volatile_message},
    {"grid barrier", 75, run_grid_barrier},
    {"spin lock", 75, run_spin_lock},
    {"two launches", 75, run_two_launches},
    {"finite polls", 75, run_finite_polls},
    {"two flags", 75, run_two_flags},
    {"early exit", 75, run_early_exit},
    {"named barrier", 75, run_named_barrier},
    {"masked sum", 75, run_masked_sum},
    {"two places", 75, run_two_places},
    {"incomplete warp", 75, run_incomplete_warp},
    {"struct of two", 75, run_copy_struct<Two>},
    {"struct of four", 75, run_copy_struct<Four>},
    {"struct of eight", 75, run_copy_struct<Eight>},
    {"clear struct", 75, run_clear_struct},
    {"narrow", 75, run_narrow},
    {"vectors", 75, run_vectors},
    {"surroundings", 75, run_surroundings},
};

}  // namespace

extern "C" __attribute__((visibility("default")))
const RightKernels flash_right = {kernels, sizeof kernels / sizeof kernels[0]};

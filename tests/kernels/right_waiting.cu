// More kernels of right.hpp: flags, fences and waiting; structs with padding.
#include "tests/kernels/launch.hpp"
#include "tests/kernels/right.hpp"

namespace {

/// The value that ended the wait is the last one read from the flag.
__global__ void flag_read_once(float* y, volatile unsigned* flag) {
  if (threadIdx.x > 0) return;
  if (blockIdx.x == 1) {
    y[1] = 42;
    __threadfence();
    *flag = 1;
  } else {
    while (*flag == 0) {
    }
    __threadfence();
    y[0] = y[1];
  }
}
bool run_flag_read_once(const Memory& m) {
  launch(flag_read_once, 2, 32, 0, m.y, m.words);
  return m.y[0] == 42;
}

/// All write and fence, one gives the signal; one waits and fences for all.
__global__ void one_signals(float* y, unsigned* flag) {
  struct Smem {
    float x[32];
  };
  Smem& sm = ptx::dynamic_smem<Smem>();
  const int lane = threadIdx.x % 32;
  if (threadIdx.x < 32) {
    sm.x[lane] = static_cast<float>(lane);
    __threadfence();
    __syncwarp();
    if (lane == 0) atomicExch(flag, 1u);
  } else {
    if (lane == 0)
      while (atomicAdd(flag, 0u) == 0) {
      }
    __syncwarp();
    __threadfence();
    y[lane] = sm.x[31 - lane];
  }
}
bool run_one_signals(const Memory& m) {
  launch(one_signals, 1, 64, 128, m.y, m.words);
  return m.y[0] == 31 && m.y[31] == 0;
}

__global__ void flag_in_shared_memory(float* y) {
  struct Smem {
    volatile unsigned flag;
    float x;
  };
  Smem& sm = ptx::dynamic_smem<Smem>();
  if (threadIdx.x == 0) sm.flag = 0;
  __syncthreads();
  if (threadIdx.x == 0) {
    sm.x = 7;
    __threadfence();
    sm.flag = 1;
  }
  if (threadIdx.x == 32) {
    while (sm.flag == 0) {
    }
    __threadfence();
    *y = sm.x;
  }
}
bool run_flag_in_shared_memory(const Memory& m) {
  launch(flag_in_shared_memory, 1, 64, 8, m.y);
  return m.y[0] == 7;
}

/// Much is read through a volatile pointer, and nobody is waited for.
__global__ void volatile_sum(const volatile float* x, float* y) {
  float sum = 0;
  for (int i = 0; i < 40'000; ++i) sum += x[i % 4096];
  y[threadIdx.x] = sum;
}
bool run_volatile_sum(const Memory& m) {
  launch(volatile_sum, 1, 1, 0, m.x, m.y);
  return m.y[0] > 0;
}

/// The maximum is there early; what follows changes nothing.
__global__ void maximum(const float* x, unsigned* words) {
  for (int i = 0; i < 20'000; ++i) atomicMax(words, static_cast<unsigned>(x[i % 4096]));
}
bool run_maximum(const Memory& m) {
  launch(maximum, 1, 1, 0, m.x, m.words);
  return m.words[0] == 12;
}

struct Padded {
  char c;
  double x;
  short s;
};
/// A struct is copied whole, its padding too, which nobody wrote.
__global__ void padding(float* y) {
  struct Smem {
    Padded x[32];
  };
  Smem& sm = ptx::dynamic_smem<Smem>();
  const int thread = threadIdx.x;
  sm.x[thread].c = 1;
  sm.x[thread].x = thread;
  sm.x[thread].s = 2;
  __syncwarp();
  const Padded other = sm.x[31 - thread];
  y[thread] = static_cast<float>(other.x) + static_cast<float>(other.c + other.s);
}
bool run_padding(const Memory& m) {
  launch(padding, 1, 32, 32 * sizeof(Padded), m.y);
  return m.y[0] == 34 && m.y[31] == 3;
}

constexpr Right kernels[] = {
    {"flag read once", 75, run_flag_read_once},
    {"one signals", 75, run_one_signals},
    {"flag in shared memory", 75, run_flag_in_shared_memory},
    {"volatile sum", 75, run_volatile_sum},
    {"maximum", 75, run_maximum},
    {"padding", 75, run_padding},
};

}  // namespace

extern "C" __attribute__((visibility("default")))
const RightKernels flash_right = {kernels, sizeof kernels / sizeof kernels[0]};

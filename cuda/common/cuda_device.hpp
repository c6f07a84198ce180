// What kernels/gpu/device.so offers: CUDA behind one symbol, so that the program itself is built and runs without it.
#pragma once

#include <cstddef>
#include <string>

#include "cuda/common/device.hpp"

namespace flash::cuda {

/// A GPU.
struct GpuFacts {
  std::string name;
  int arch = 0;  ///< 90 is sm_90
  int sms = 0;
  std::size_t memory_bytes = 0, l2_bytes = 0, smem_per_cta = 0;
};

/// Something well known that a card does, beside which kernels are measured.
class Yardstick {
 public:
  virtual ~Yardstick() = default;
  /// Does it `times` times, one after the other, in its device's stream. @return seconds of all, between two events.
  virtual double run(int times) = 0;
};

struct Cuda {
  const char* compiler;   ///< "nvcc 13.0.88"
  const char* built_for;  ///< "sm_75 (and its PTX), sm_90"
  /// @throws std::runtime_error with CUDA's reason where there is no driver or no GPU.
  int (*count)();
  int (*driver)();  ///< CUDA version of the driver, 13000 is 13.0; 0: there is none
  GpuFacts (*facts)(int ordinal);
  Device* (*open)(int ordinal);  ///< the caller's; it has a stream of its own
  double (*clock_mhz)(Device&);  ///< of its SMs, measured now in the device's stream: what the last run left it at
  /// cuBLAS's product of two n × n matrices of fp16 or bf16, drawn at random. @throws std::runtime_error where this
  /// machine has no cuBLAS, which is looked for only here.
  Yardstick* (*gemm)(Device&, bool bf16, int n);
  Yardstick* (*copy)(Device&, std::size_t bytes);  ///< from device memory to device memory
  /// Clears the L2 cache by reading, then launches the module's kernels once, alone, for a profiler that waits for
  /// cudaProfilerStart.
  void (*run_for_profiler)(Device&, const Module&, const Problem&);
};

}  // namespace flash::cuda

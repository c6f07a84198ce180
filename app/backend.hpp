// Where a run happens: on the CPU, or as kernels on the virtual GPU or on a GPU.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cuda/common/cuda_device.hpp"
#include "cuda/common/execute.hpp"
#include "cuda/common/virtual_device.hpp"

namespace flash::app {

struct RunOptions;

/// "cpu": nothing. @throws Refused for a backend that there isn't.
std::optional<cuda::Backend> parse_backend(std::string_view on);

/// Throws Refused for options that are another backend's: they are not ignored.
void require_own_options(const RunOptions& typed, std::optional<cuda::Backend> backend);

/// The stage's kernels and the device that `typed` asks for. @throws Refused where this build or machine has them not.
cuda::Kernels open_kernels(const RunOptions& typed, const Stage& stage, cuda::Backend backend);

/// Gives the kernels a virtual GPU of the architecture that they are written for.
void open_virtual_gpu(cuda::Kernels& kernels, gpu::Config config);

/// CUDA and the GPUs here. @throws Refused where the build has no CUDA or the machine no GPU.
struct Gpus {
  const cuda::Cuda* cuda = nullptr;
  int count = 0;
};
Gpus find_gpus();

/// One of them, by its number.
struct Gpu {
  const cuda::Cuda* cuda = nullptr;
  cuda::GpuFacts facts;
  std::shared_ptr<cuda::Device> device;
};
Gpu open_gpu(Index ordinal);

/// "580.65.06 (CUDA 13.0)", as far as it is known.
std::string driver_text(const cuda::Cuda& cuda);

std::string_view name(gpu::Completion completion);

}  // namespace flash::app

// Launches a kernel, or says in one sentence why it can't be.
#pragma once

#include <map>
#include <stdexcept>
#include <string>

#include "cuda/ptx/target.hpp"

namespace flash::ptx {

#ifdef __CUDACC__
using Stream = cudaStream_t;
#else
using Stream = void*;
#endif

/// What a device allows a launch.
struct Limits {
  std::string device;        ///< its name and architecture
  size_t smem_per_cta = 0;   ///< [bytes], after opting in
  unsigned threads_per_cta = 1024;
  unsigned grid_yz = 65535;  ///< largest grid in y and z; x goes to 2³¹ − 1
};

/// @throws std::runtime_error for a launch beyond the limits, before anything is launched.
inline void require_launch(const Limits& limits, const char* kernel, dim3 grid, dim3 block, size_t smem) {
  const auto text = [](size_t n) { return std::to_string(n); };
  const size_t threads = size_t(block.x) * block.y * block.z;
  if (threads > limits.threads_per_cta)
    throw std::runtime_error(std::string(kernel) + " was launched with " + text(threads) + " threads a CTA, but " +
                             limits.device + " takes " + text(limits.threads_per_cta) + "; take fewer");
  if (smem > limits.smem_per_cta)
    throw std::runtime_error(std::string(kernel) + " needs " + text(smem) + " bytes of shared memory a CTA, but " +
                             limits.device + " has " + text(limits.smem_per_cta) + "; take smaller tiles");
  if (grid.x > 0x7fffffffu || grid.y > limits.grid_yz || grid.z > limits.grid_yz)
    throw std::runtime_error(std::string(kernel) + " was launched with a grid of " + text(grid.x) + " x " +
                             text(grid.y) + " x " + text(grid.z) + ", but " + limits.device + " takes 2147483647 x " +
                             text(limits.grid_yz) + " x " + text(limits.grid_yz) + "; take a smaller problem");
}

#ifdef __CUDACC__

/// @throws std::runtime_error with CUDA's reason.
inline void require_success(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  throw std::runtime_error(std::string(what) + " was asked of CUDA, which answers: " + cudaGetErrorString(error));
}

/// Of the current device; asked of the driver once.
inline const Limits& device_limits() {
  static std::map<int, Limits> known;
  int device = 0;
  require_success(cudaGetDevice(&device), "the current device");
  if (const auto found = known.find(device); found != known.end()) return found->second;
  cudaDeviceProp properties{};
  require_success(cudaGetDeviceProperties(&properties, device), "the device's properties");
  return known[device] = {std::string(properties.name) + " (sm_" + std::to_string(properties.major) +
                              std::to_string(properties.minor) + ")",
                          properties.sharedMemPerBlockOptin, static_cast<unsigned>(properties.maxThreadsPerBlock)};
}

/// FLASH_BUILT_FOR: what the build asked nvcc for.
template <class... Parameters, class... Arguments>
void launch(const char* name, void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t smem, Stream stream,
            const Arguments&... arguments) {
  if (size_t(grid.x) * grid.y * grid.z == 0) return;
  const Limits& limits = device_limits();
  require_launch(limits, name, grid, block, smem);
  cudaFuncAttributes attributes{};
  if (const cudaError_t error = cudaFuncGetAttributes(&attributes, kernel); error != cudaSuccess) {
    cudaGetLastError();
    throw std::runtime_error(std::string(name) + " was asked of " + limits.device + ", but it was built for " +
                             FLASH_BUILT_FOR + " (" + cudaGetErrorString(error) +
                             "); build again with CMAKE_CUDA_ARCHITECTURES for this card");
  }
  require_success(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(smem)),
                  name);
  kernel<<<grid, block, smem, stream>>>(Parameters(arguments)...);
  require_success(cudaGetLastError(), name);
}

#else

/// Of the current virtual GPU.
inline Limits device_limits() {
  const gpu::DeviceLimits limits = gpu::device_limits();
  return {limits.device, limits.smem_per_cta};
}

/// Runs the kernel on the current virtual GPU to its end.
template <class... Parameters, class... Arguments>
void launch(const char* name, void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t smem, Stream,
            const Arguments&... arguments) {
  if (size_t(grid.x) * grid.y * grid.z == 0) return;
  require_launch(device_limits(), name, grid, block, smem);
  const auto thread = [=] { kernel(Parameters(arguments)...); };
  gpu::launch(name, grid, block, smem, &thread, sizeof thread,
              [](const void* closure) { (*static_cast<const decltype(thread)*>(closure))(); });
}

#endif

}  // namespace flash::ptx

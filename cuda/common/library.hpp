// The kernels of this build: shared objects in the folder `kernels` beside the program or above it, one for each kernel
// file and compiler, kernels/{vgpu,gpu}/NN_name_program.so. FLASH_KERNELS in the environment names another
// folder.
#pragma once

#include <string>
#include <string_view>

namespace flash::cuda {

struct Cuda;
struct Module;

enum class Backend { vgpu, gpu };
constexpr std::string_view name(Backend backend) { return backend == Backend::vgpu ? "vgpu" : "gpu"; }

/// Why a build has no kernels for the virtual GPU.
std::string why_no_virtual_gpu();

/// Has this build kernels for the backend?
bool has_kernels(Backend backend);

/// The kernels of one file, "03_online_softmax/forward"; null where this build has none.
/// @throws Refused where the shared object is there and can't be used.
const Module* find_module(Backend backend, std::string_view source);

/// CUDA, from kernels/gpu/device.so; null in a build without it. @throws Refused likewise.
const Cuda* find_cuda();

}  // namespace flash::cuda

// Which compiler is this? nvcc makes GPU code of the wrappers; any other makes calls into the virtual GPU.
#pragma once

#include <cstddef>
#include <cstdint>

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#define FLASH_PTX __device__ __forceinline__
#define FLASH_LAYOUT __host__ __device__ constexpr
#else
#include "sim/gpu/cuda_language.hpp"
#include "sim/gpu/instructions.hpp"
// Always inline: the return address that the virtual GPU sees then lies in the kernel's own source line.
#define FLASH_PTX inline __attribute__((always_inline))
#define FLASH_LAYOUT constexpr
#endif

// A CTA's dynamic shared memory.
#pragma once

#include "cuda/ptx/target.hpp"

namespace flash::ptx {

/// The CTA's dynamic shared memory as one struct, the kernel's map of it; aligned to 1024 bytes.
template <class Smem>
FLASH_PTX Smem& dynamic_smem() {
#ifdef __CUDACC__
  extern __shared__ __align__(1024) unsigned char flash_dynamic_smem[];
  return *reinterpret_cast<Smem*>(flash_dynamic_smem);
#else
  return *static_cast<Smem*>(gpu::dynamic_smem(sizeof(Smem)));
#endif
}

/// Address in the shared window, as PTX instructions take it.
FLASH_PTX uint32_t shared_address(const void* p) {
#ifdef __CUDACC__
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
#else
  return gpu::shared_address(p);
#endif
}

}  // namespace flash::ptx

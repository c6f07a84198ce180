// What an architecture has: the virtual GPU refuses the rest.
#pragma once

#include <cstddef>

namespace flash::gpu {

/// Limits of a compute capability (CUDA C++ Programming Guide, "Technical specifications per compute capability").
struct Architecture {
  int number;                ///< 75 is sm_75
  const char* name;          ///< "Turing"
  std::size_t smem_per_sm;   ///< [bytes]
  std::size_t smem_per_cta;  ///< [bytes], after opting in
  int threads_per_sm;
  int ctas_per_sm;
};

/// @throws std::runtime_error naming those there are.
const Architecture& architecture(int number);

}  // namespace flash::gpu

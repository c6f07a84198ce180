// Right kernels: what correct CUDA does and the virtual GPU must not complain about, each with its own check.
#pragma once

#include <cstddef>

/// Global memory of a right kernel.
struct Memory {
  static constexpr int size = 4096;
  float* x;         ///< [size] given: x[i] = i % 13
  float* y;         ///< [size] nothing may be read before it is written
  unsigned* words;  ///< [size] zeros
};

struct Right {
  const char* name;
  int arch;
  bool (*run)(const Memory&);  ///< launches the kernel; are its numbers right?
};

/// The symbol that their files export: `flash_right`.
struct RightKernels {
  const Right* first;
  std::size_t count;

  const Right* begin() const { return first; }
  const Right* end() const { return first + count; }
};

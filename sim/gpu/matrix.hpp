// Arrays of a kernel read as matrices, while it is stopped: what lies in shared memory, what a warp holds in registers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace flash::gpu {

enum class NumberKind : std::uint8_t { f16, f32, i32 };

/// Where the elements [rows, cols] of an array in shared memory lie.
struct SharedLayout {
  int rows = 0, cols = 0;  ///< 0: not a matrix
  NumberKind number = NumberKind::f32;
  int (*offset)(int row, int col) = nullptr;  ///< [bytes] from its begin
};

/// Where in a warp's matrix the numbers of one thread's local array belong.
struct RegisterLayout {
  struct Place {
    int row, col;
  };
  int count = 0;  ///< numbers of one thread; 0: not a matrix
  NumberKind number = NumberKind::f32;
  const void* (*numbers)(const void* local) = nullptr;
  Place (*place)(const void* local, int n) = nullptr;  ///< of number n
};

/// Rows [row0, row0 + rows) × columns [col0, col0 + cols), row-major.
struct Matrix {
  std::string name;
  int row0 = 0, col0 = 0, rows = 0, cols = 0;
  std::vector<double> values;
  std::vector<bool> known;          ///< written (shared memory), held by some lane of the warp (registers)
  std::vector<std::size_t> places;  ///< in the CTA's shared memory [bytes]; none for registers
  double operator()(int i, int j) const { return values[static_cast<std::size_t>(i) * cols + j]; }
};

}  // namespace flash::gpu

// Tiles in shared memory, and their way to and from global memory.
#pragma once

#include "cuda/common/eight.hpp"
#include "cuda/common/visible_tiles.hpp"

namespace flash::cuda {

/// [rows, cols] of fp16 in shared memory. A row is padded by 16 bytes: then any eight neighbouring rows begin in eight
/// different groups of four banks, and ldmatrix, which reads 16 bytes of each, has no bank conflict.
template <int rows_, int cols_>
struct alignas(16) Tile {
  using Number = half;
  static constexpr int rows = rows_, cols = cols_;
  half x[rows][cols + 8];

  /// Of an element [bytes].
  static constexpr int offset(int row, int col) { return (row * (cols + 8) + col) * int(sizeof(half)); }
};

/// A tile on its way between global and shared memory, in the registers of a CTA: a thread holds `count` times eight
/// neighbours. Read early and write late: nothing waits for a register before it is needed.
template <class T, int threads>
struct Transfer {
  static constexpr int lanes = T::cols / 8;  ///< neighbouring threads that share a row
  static constexpr int count = T::rows * lanes / threads;
  static_assert(T::rows * lanes % threads == 0 && threads % lanes == 0, "all threads have as much to carry");

  const int thread;
  uint4 eight[count];

  __device__ __forceinline__ explicit Transfer(int thread) : thread(thread) {}
  __device__ __forceinline__ int row(int k) const { return thread / lanes + k * (threads / lanes); }
  __device__ __forceinline__ int col() const { return thread % lanes * 8; }

  /// `rows` of a matrix that is as wide as the tile; zeros for rows beyond, which are not read.
  __device__ __forceinline__ void read(const half* matrix, Range rows) {
#pragma unroll
    for (int k = 0; k < count; ++k)
      eight[k] =
          row(k) < rows.size() ? load_eight(matrix + rows.begin * T::cols + (row(k) * T::cols + col())) : uint4{};
  }

  /// `rows` × `cols` of a matrix of `width` columns; `fill`, the bits of an fp16, for what is beyond.
  __device__ __forceinline__ void read(const half* matrix, i64 width, Range rows, Range cols, uint32_t fill = 0) {
#pragma unroll
    for (int k = 0; k < count; ++k)
      eight[k] = load_eight(matrix + (rows.begin + row(k)) * width, cols.begin + col(),
                            row(k) < rows.size() ? width : 0, fill);
  }

  /// To shared memory.
  __device__ __forceinline__ void write(T& tile) const {
#pragma unroll
    for (int k = 0; k < count; ++k) *reinterpret_cast<uint4*>(&tile.x[row(k)][col()]) = eight[k];
  }

  /// From shared memory.
  __device__ __forceinline__ void read(const T& tile) {
#pragma unroll
    for (int k = 0; k < count; ++k) eight[k] = load_eight(&tile.x[row(k)][col()]);
  }

  /// To `rows` × `cols` of a matrix of `width` columns.
  __device__ __forceinline__ void write(half* matrix, i64 width, Range rows, Range cols) const {
#pragma unroll
    for (int k = 0; k < count; ++k)
      store_eight(matrix + (rows.begin + row(k)) * width, cols.begin + col(), row(k) < rows.size() ? width : 0,
                  eight[k]);
  }
};

/// Zeros in `rows` of a matrix of `cols` columns, fp16 or fp32, by a whole CTA.
template <int threads, class Number>
__device__ __forceinline__ void store_zeros(Number* matrix, Range rows, int cols, int thread) {
  constexpr int numbers = 16 / sizeof(Number);  // in 16 bytes
  for (i64 n = thread * numbers; n < rows.size() * i64(cols); n += threads * numbers)
    *reinterpret_cast<uint4*>(matrix + rows.begin * cols + n) = uint4{};
}

}  // namespace flash::cuda

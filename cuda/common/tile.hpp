// Tiles in shared memory, and their way to and from global memory.
#pragma once

#include "cuda/common/eight.hpp"
#include "cuda/common/visible_tiles.hpp"
#include "cuda/ptx/cp_async.hpp"

namespace flash::cuda {

/// [rows, cols] of 16-bit numbers in shared memory. A row is padded by 16 bytes: then any eight neighbouring rows begin
/// in eight different groups of four banks, and ldmatrix, which reads 16 bytes of each, has no bank conflict.
template <int rows_, int cols_>
struct alignas(16) Tile {
  using Number = half;
  static constexpr int rows = rows_, cols = cols_;
  half x[rows][cols + 8];

  /// Eight neighbours from (row, col) on; col is a multiple of 8. And two, where it is even.
  __device__ __forceinline__ half* at(unsigned row, unsigned col) { return &x[row][col]; }
  __device__ __forceinline__ const half* at(unsigned row, unsigned col) const { return &x[row][col]; }

  /// Of an element [bytes].
  static constexpr int offset(int row, int col) { return (row * (cols + 8) + col) * int(sizeof(half)); }
};

/// The same without padding: no shared memory is lost, but where a row is a multiple of 128 bytes long, eight
/// neighbouring rows begin in the same four banks, and ldmatrix takes eight times as long.
template <int rows_, int cols_, class Number_ = half>
struct alignas(128) PlainTile {
  using Number = Number_;
  static constexpr int rows = rows_, cols = cols_;
  Number x[rows][cols];

  __device__ __forceinline__ Number* at(unsigned row, unsigned col) { return &x[row][col]; }
  __device__ __forceinline__ const Number* at(unsigned row, unsigned col) const { return &x[row][col]; }

  static constexpr int offset(int row, int col) { return (row * cols + col) * int(sizeof(Number)); }
};

/// The same size, and eight neighbours of a row are moved as one: their place in the row is XORed with the row's number
/// modulo 8, so that ldmatrix finds those of eight neighbouring rows in eight different groups of four banks.
template <int rows_, int cols_, class Number_ = half>
struct alignas(128) SwizzledTile {
  using Number = Number_;
  static constexpr int rows = rows_, cols = cols_;
  Number x[rows][cols];

  __device__ __forceinline__ Number* at(unsigned row, unsigned col) { return &x[row][place(row, col)]; }
  __device__ __forceinline__ const Number* at(unsigned row, unsigned col) const { return &x[row][place(row, col)]; }

  static constexpr int offset(int row, int col) { return (row * cols + place(row, col)) * int(sizeof(Number)); }

 private:
  /// 128 bytes are all banks once. Rows of a multiple of that begin in the same bank, and eight places are exchanged;
  /// others begin 64 bytes apart in turn, and four places are exchanged, by pairs of rows.
  static constexpr __host__ __device__ unsigned place(unsigned row, unsigned col) {
    return cols % 64 == 0 ? col / 64 * 64 + (col % 64 ^ row % 8 * 8) : col / 32 * 32 + (col % 32 ^ row / 2 % 4 * 8);
  }
};

/// A tile on its way between global and shared memory, in the registers of a CTA: a thread holds `count` times eight
/// neighbours. Read early and write late: nothing waits for a register before it is needed.
template <class T, int threads>
struct Transfer {
  static constexpr int lanes = T::cols / 8;  ///< neighbouring threads that share a row
  static constexpr int count = T::rows * lanes / threads, step = threads / lanes;
  static_assert(T::rows * lanes % threads == 0 && threads % lanes == 0, "all threads have as much to carry");

  const unsigned thread;
  uint4 eight[count];

  __device__ __forceinline__ explicit Transfer(unsigned thread) : thread(thread) {}
  __device__ __forceinline__ int row(int k) const { return thread / lanes + k * step; }
  __device__ __forceinline__ int col() const { return thread % lanes * 8; }

  /// `rows` of a matrix that is as wide as the tile; zeros for rows beyond, which are not read.
  __device__ __forceinline__ void read(const half* matrix, Range rows) {
    const half* from = matrix + (rows.begin + row(0)) * T::cols + col();
#pragma unroll
    for (int k = 0; k < count; ++k)
      eight[k] = row(k) < rows.size() ? load_eight(from + k * step * T::cols) : uint4{};
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
    for (int k = 0; k < count; ++k) *reinterpret_cast<uint4*>(tile.at(row(k), col())) = eight[k];
  }

  /// From shared memory.
  __device__ __forceinline__ void read(const T& tile) {
#pragma unroll
    for (int k = 0; k < count; ++k) eight[k] = load_eight(tile.at(row(k), col()));
  }

  /// To `rows` × `cols` of a matrix of `width` columns.
  __device__ __forceinline__ void write(half* matrix, i64 width, Range rows, Range cols) const {
#pragma unroll
    for (int k = 0; k < count; ++k)
      store_eight(matrix + (rows.begin + row(k)) * width, cols.begin + col(), row(k) < rows.size() ? width : 0,
                  eight[k]);
  }
};

/// Copies `rows` of a matrix that is as wide as the tile to shared memory, through registers; zeros for rows beyond. By
/// a whole CTA.
template <int threads, class T>
__device__ __forceinline__ void copy(T& tile, const half* matrix, Range rows, unsigned thread) {
  constexpr int lanes = T::cols / 8;  // neighbouring threads share a row
  static_assert(T::rows * lanes % threads == 0, "all threads have as much to carry");
  const half* from = matrix + rows.begin * T::cols;
#pragma unroll 4
  for (unsigned n = thread; n < T::rows * lanes; n += threads) {
    const unsigned row = n / lanes, col = n % lanes * 8;
    *reinterpret_cast<uint4*>(tile.at(row, col)) =
        int(row) < rows.size() ? load_eight(from + row * T::cols + col) : uint4{};
  }
}

/// The same without waiting: the tile is there once its group, or all, have been waited for, and behind a barrier.
template <int threads, class T>
__device__ __forceinline__ void copy_async(T& tile, const half* matrix, Range rows, unsigned thread) {
  constexpr int lanes = T::cols / 8;  // neighbouring threads share a row
  static_assert(T::rows * lanes % threads == 0, "all threads have as much to carry");
  const half* begin = matrix + rows.begin * T::cols;
  if constexpr (threads % lanes == 0) {  // a thread keeps its column: one address, and constants to add to it
    const unsigned first = thread / lanes, col = thread % lanes * 8;
    const half* from = begin + first * T::cols + col;
#pragma unroll
    for (unsigned n = 0; n < T::rows; n += threads / lanes)
      ptx::cp_async_16(tile.at(first + n, col), from + n * T::cols, int(first + n) < rows.size() ? 16 : 0);
  } else {
#pragma unroll
    for (unsigned n = 0; n < T::rows * lanes; n += threads) {
      const unsigned row = (thread + n) / lanes, col = (thread + n) % lanes * 8;
      ptx::cp_async_16(tile.at(row, col), begin + row * T::cols + col, int(row) < rows.size() ? 16 : 0);
    }
  }
}

/// A shared tile's rows to `rows` of a matrix that is as wide, 16 bytes a thread, by a whole CTA.
template <int threads, class T>
__device__ __forceinline__ void store_rows(half* matrix, const T& tile, Range rows, unsigned thread) {
  constexpr int lanes = T::cols / 8;  // neighbouring threads share a row
  half* to = matrix + rows.begin * T::cols;
#pragma unroll
  for (int n = thread; n < T::rows * lanes; n += threads)
    if (const int row = n / lanes, col = n % lanes * 8; row < rows.size())
      *reinterpret_cast<uint4*>(to + row * T::cols + col) = *reinterpret_cast<const uint4*>(tile.at(row, col));
}

/// Zeros in `rows` of a matrix of `cols` columns, fp16 or fp32, by a whole CTA.
template <int threads, class Number>
__device__ __forceinline__ void store_zeros(Number* matrix, Range rows, int cols, int thread) {
  constexpr int numbers = 16 / sizeof(Number);  // in 16 bytes
  for (i64 n = thread * numbers; n < rows.size() * i64(cols); n += threads * numbers)
    *reinterpret_cast<uint4*>(matrix + rows.begin * cols + n) = uint4{};
}

}  // namespace flash::cuda

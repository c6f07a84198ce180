// One warp's part of a tile, in its registers, and the products that the tensor core makes there.
#pragma once

#include "cuda/common/element.hpp"
#include "cuda/common/lanes.hpp"
#include "cuda/common/tile.hpp"
#include "cuda/ptx/layout.hpp"
#include "cuda/ptx/ldmatrix.hpp"

namespace flash::cuda {

// ---- operands of a product: a shared tile as it lies, or its transpose

template <class T>
struct Transposed {
  static constexpr int rows = T::cols, cols = T::rows;
  const T& tile;
};

template <class T>
__device__ __forceinline__ Transposed<T> transposed(const T& tile) {
  return {tile};
}

// ldmatrix brings 16 × 16 elements as four 8 × 8 matrices, one for each register of a lane; lane l tells where row l %
// 8 of matrix l / 8 lies. So the addresses decide which quarter comes to which register. .trans turns each matrix over:
// for A it is wanted where the tile holds Aᵀ; for B, of which mma takes columns, where it holds B itself.

/// A [16,16] from (row0 + 16m, k) on. Registers 0, 1: rows 0–7, 8–15 of its first eight columns; 2, 3: of the other
/// eight.
template <class T>
__device__ __forceinline__ void load_a(uint32_t (&r)[4], const T& a, unsigned row0, unsigned m, unsigned k,
                                       unsigned lane) {
  ptx::ldmatrix_x4(r, a.at(row0 + 16 * m + lane % 16, k + lane / 16 * 8));
}
template <class T>
__device__ __forceinline__ void load_a(uint32_t (&r)[4], Transposed<T> a, unsigned row0, unsigned m, unsigned k,
                                       unsigned lane) {
  ptx::ldmatrix_x4_trans(r, a.tile.at(k + lane % 8 + lane / 16 * 8, row0 + 16 * m + lane / 8 % 2 * 8));
}

/// B [16,16] from (k, n) on, in the same order.
template <class T>
__device__ __forceinline__ void load_b(uint32_t (&r)[4], const T& b, unsigned k, unsigned n, unsigned lane) {
  ptx::ldmatrix_x4_trans(r, b.at(k + lane % 16, n + lane / 16 * 8));
}
template <class T>
__device__ __forceinline__ void load_b(uint32_t (&r)[4], Transposed<T> b, unsigned k, unsigned n, unsigned lane) {
  ptx::ldmatrix_x4(r, b.tile.at(n + lane % 8 + lane / 16 * 8, k + lane / 8 % 2 * 8));
}

/// A [M,K] that is in the warp's registers already.
template <int M, int K>
struct Operand {
  static constexpr int rows = M, cols = K;
  uint32_t x[M / 16][K / 16][4];
};
template <int M, int K>
__device__ __forceinline__ void load_a(uint32_t (&r)[4], const Operand<M, K>& a, unsigned, unsigned m, unsigned k,
                                       unsigned) {
#pragma unroll
  for (int n = 0; n < 4; ++n) r[n] = a.x[m][k / 16][n];
}

// ---- the warp's part

/// A number for each of M rows. A lane holds those of its own rows, 8r + lane / 4, as its quad's other lanes do.
template <int M>
struct Column {
  float x[M / 8];

  Column() = default;
  __device__ __forceinline__ explicit Column(float value) {
#pragma unroll
    for (int r = 0; r < M / 8; ++r) x[r] = value;
  }
  __device__ __forceinline__ float& operator[](int r) { return x[r]; }
  __device__ __forceinline__ float operator[](int r) const { return x[r]; }

  /// To shared memory.
  __device__ __forceinline__ void write(float (&column)[M], int lane) const {
    if (lane % 4 == 0)
#pragma unroll
      for (int r = 0; r < M / 8; ++r) column[8 * r + lane / 4] = x[r];
  }
};

/// Each lane has a part of its rows' numbers: the sums over the quad that shares these rows.
template <int M>
__device__ __forceinline__ Column<M> sum_over_quads(Column<M> column) {
#pragma unroll
  for (int r = 0; r < M / 8; ++r) column[r] = sum_over<4>(column[r]);
  return column;
}

/// Rows [row0, row0 + M) × columns [col0, col0 + N) of a tile, fp32, spread over the lanes of a warp as mma leaves it.
/// A lane holds M/8 × N/4 elements: its rows r times its columns c. The four lanes of a quad have the same rows.
template <int M, int N, class Mma = K8>
struct WarpTile {
  using Element = typename Mma::Element;
  static constexpr int rows = M / 8, cols = N / 4;  ///< of one lane

  const int row0, col0, lane;
  float x[M / 16][N / 8][4] = {};  ///< one mma's accumulator after the other

  __device__ __forceinline__ WarpTile(int row0, int col0, int lane) : row0(row0), col0(col0), lane(lane) {}

  __device__ __forceinline__ float& operator()(int r, int c) { return x[r / 2][c / 2][r % 2 * 2 + c % 2]; }
  __device__ __forceinline__ float operator()(int r, int c) const { return x[r / 2][c / 2][r % 2 * 2 + c % 2]; }
  /// Where the lane's row r and column c lie in the tile.
  __device__ __forceinline__ int row(int r) const {
    return row0 + r / 2 * 16 + ptx::layout::mma_c(lane, r % 2 * 2).row;
  }
  __device__ __forceinline__ int col(int c) const { return col0 + c / 2 * 8 + ptx::layout::mma_c(lane, c % 2).col; }

  /// Where number n of x lies in the tile.
  ptx::layout::Element place(int n) const {
    const auto [row, col] = ptx::layout::mma_c(lane, n % 4);
    return {row0 + n / 4 / (N / 8) * 16 + row, col0 + n / 4 % (N / 8) * 8 + col};
  }

  /// Of a column in shared memory, the numbers of the lane's rows.
  template <int R>
  __device__ __forceinline__ Column<M> column(const float (&shared)[R]) const {
    Column<M> result;
#pragma unroll
    for (int r = 0; r < rows; ++r) result[r] = shared[row(r)];
    return result;
  }

  /// x <- f(r, c, x) for each element of the lane.
  template <class F>
  __device__ __forceinline__ void transform(F f) {
#pragma unroll
    for (int r = 0; r < rows; ++r)
#pragma unroll
      for (int c = 0; c < cols; ++c) (*this)(r, c) = f(r, c, (*this)(r, c));
  }

  /// Of each row: the lane's own elements and those of the other lanes of its quad.
  __device__ __forceinline__ Column<M> row_max() const {
    Column<M> result;
#pragma unroll
    for (int r = 0; r < rows; ++r) {
      result[r] = (*this)(r, 0);
#pragma unroll
      for (int c = 1; c < cols; ++c) result[r] = fmaxf(result[r], (*this)(r, c));
      result[r] = max_over<4>(result[r]);
    }
    return result;
  }

  __device__ __forceinline__ Column<M> row_sum() const { return sum_over_quads(lane_sum()); }

  /// Of each row the lane's own elements.
  __device__ __forceinline__ Column<M> lane_sum() const {
    Column<M> result;
#pragma unroll
    for (int r = 0; r < rows; ++r) {
      result[r] = (*this)(r, 0);
#pragma unroll
      for (int c = 1; c < cols; ++c) result[r] += (*this)(r, c);
    }
    return result;
  }

  /// += A·B, rows row0… of A [.,K] times columns col0… of B [K,.].
  template <class A, class B>
  __device__ __forceinline__ void add_product(const A& a, const B& b) {
    static_assert(A::cols == B::rows && A::cols % 16 == 0 && M % 16 == 0 && N % 16 == 0);
#pragma unroll
    for (int k = 0; k < A::cols; k += 16) {
      uint32_t a_k[M / 16][4];
#pragma unroll
      for (int m = 0; m < M / 16; ++m) load_a(a_k[m], a, row0, m, k, lane);
#pragma unroll
      for (int n = 0; n < N / 16; ++n) {
        uint32_t b_kn[4];
        load_b(b_kn, b, k, col0 + 16 * n, lane);
#pragma unroll
        for (int step = 0; step < Mma::steps; ++step)
#pragma unroll
          for (int n8 = 0; n8 < 2; ++n8)
#pragma unroll
            for (int m = 0; m < M / 16; ++m) {
              const uint32_t b_n8[2] = {b_kn[2 * n8], b_kn[2 * n8 + 1]};
              Mma::multiply(x[m][2 * n + n8], a_k[m], b_n8, step);
            }
      }
    }
  }

  /// Rounded to the element's format, as the left side of a product. mma leaves C as it takes A: no lane needs
  /// another's.
  __device__ __forceinline__ Operand<M, N> as_operand() const {
    Operand<M, N> a;
#pragma unroll
    for (int m = 0; m < M / 16; ++m)
#pragma unroll
      for (int n = 0; n < N / 8; ++n) {
        a.x[m][n / 2][n % 2 * 2] = Element::pack(x[m][n][0], x[m][n][1]);
        a.x[m][n / 2][n % 2 * 2 + 1] = Element::pack(x[m][n][2], x[m][n][3]);
      }
    return a;
  }

  /// Rounded to the element's format, to its place in a shared tile.
  template <class T>
  __device__ __forceinline__ void write(T& tile) const {
    pairs([&](int r, int c, float left, float right) {
      *reinterpret_cast<uint32_t*>(tile.at(row(r), col(c))) = Element::pack(left, right);
    });
  }

  // Global memory, a matrix of `width` columns whose rows `in` hold the tile: two neighbours a lane, so that a quad
  // moves 32 bytes of fp32, one sector. Rows beyond the range are not touched.

  /// Zeros for rows beyond.
  __device__ __forceinline__ void load(const float* matrix, int width, Range in) {
#pragma unroll
    for (int r = 0; r < rows; ++r)
#pragma unroll
      for (int c = 0; c < cols; c += 2) {
        float2 pair = {0, 0};
        if (row(r) < in.size()) pair = *reinterpret_cast<const float2*>(place(matrix, width, in, r, c));
        (*this)(r, c) = pair.x, (*this)(r, c + 1) = pair.y;
      }
  }

  __device__ __forceinline__ void store(float* matrix, int width, Range in) const {
    pairs([&](int r, int c, float left, float right) {
      if (row(r) < in.size()) *reinterpret_cast<float2*>(place(matrix, width, in, r, c)) = make_float2(left, right);
    });
  }

  /// Added to what is there.
  __device__ __forceinline__ void accumulate(float* matrix, int width, Range in) const {
    pairs([&](int r, int c, float left, float right) {
      if (row(r) >= in.size()) return;
      float* to = place(matrix, width, in, r, c);
      ptx::red_add_f32(to, left), ptx::red_add_f32(to + 1, right);
    });
  }

  // The same in the order of registers, for who brings the tile back to the same registers: number n of thread t of a
  // CTA lies at n·threads + t, so that a warp moves 128 bytes at once. `tile` has room for all rows.

  template <int threads>
  __device__ __forceinline__ void load_registers(const float* tile, Range in) {
    registers<threads>(in, [&](int r, int c, int at) { (*this)(r, c) = tile[at]; });
  }
  template <int threads>
  __device__ __forceinline__ void store_registers(float* tile, Range in) const {
    registers<threads>(in, [&](int r, int c, int at) { tile[at] = (*this)(r, c); });
  }
  /// Added to what is there.
  template <int threads>
  __device__ __forceinline__ void accumulate_registers(float* tile, Range in) const {
    registers<threads>(in, [&](int r, int c, int at) { ptx::red_add_f32(tile + at, (*this)(r, c)); });
  }

  /// Rounded to the element's format.
  __device__ __forceinline__ void store(half* matrix, int width, Range in) const {
    pairs([&](int r, int c, float left, float right) {
      if (row(r) < in.size()) *reinterpret_cast<uint32_t*>(place(matrix, width, in, r, c)) = Element::pack(left, right);
    });
  }

  /// Added to what is there; each sum is rounded to fp16.
  __device__ __forceinline__ void accumulate(half* matrix, int width, Range in) const {
    pairs([&](int r, int c, float left, float right) {
      if (row(r) < in.size()) ptx::red_add_f16x2(place(matrix, width, in, r, c), ptx::pack_f16(left, right));
    });
  }

 private:
  template <class Number>
  __device__ __forceinline__ Number* place(Number* matrix, int width, Range in, int r, int c) const {
    return matrix + in.begin * width + (row(r) * width + col(c));
  }

  /// f(r, c, at) for each number of a row within `in`.
  template <int threads, class F>
  __device__ __forceinline__ void registers(Range in, F f) const {
#pragma unroll
    for (int r = 0; r < rows; ++r)
#pragma unroll
      for (int c = 0; c < cols; ++c)
        if (row(r) < in.size()) f(r, c, (r * cols + c) * threads + threadIdx.x);
  }

  /// f(r, c, left, right) for each two neighbours.
  template <class F>
  __device__ __forceinline__ void pairs(F f) const {
#pragma unroll
    for (int r = 0; r < rows; ++r)
#pragma unroll
      for (int c = 0; c < cols; c += 2) f(r, c, (*this)(r, c), (*this)(r, c + 1));
  }
};

/// Of an M × N tile the part that falls to a warp where `warps` of them share it, in `warp_rows` rows of warps. All
/// zeros.
template <class Mma, int M, int N, int warps, int warp_rows>
__device__ __forceinline__ auto part_of_tile(unsigned warp, unsigned lane) {
  constexpr int warp_cols = warps / warp_rows, m = M / warp_rows, n = N / warp_cols;
  return WarpTile<m, n, Mma>(warp / warp_cols * m, warp % warp_cols * n, lane);
}

/// A column whose number in the lane's row r is f(r), to the rows `in` of global memory.
template <int M, int N, class Mma, class F>
__device__ __forceinline__ void store_column(float* column, const WarpTile<M, N, Mma>& tile, Range in, F f) {
#pragma unroll
  for (int r = 0; r < tile.rows; ++r)
    if (tile.lane % 4 == 0 && tile.row(r) < in.size()) column[in.begin + tile.row(r)] = f(r);
}

}  // namespace flash::cuda

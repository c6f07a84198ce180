// What happens to scores between the product and the softmax: softcap, ALiBi, causal and window. The rules are in
// rules.hpp. And the arithmetic of the softmax itself.
#pragma once

#include <cfloat>

#include "cuda/common/warp_tile.hpp"

namespace flash::cuda {

/// Stands for −∞ as a maximum of nothing: −∞ − (−∞) is NaN.
constexpr float lowest = -FLT_MAX;

/// The bits of −∞ in fp16.
constexpr uint32_t minus_infinity_f16 = 0xfc00;

constexpr float log2_e = 1.44269504f;

/// e^x by the special function unit; e^0 is exactly 1, e^−∞ exactly 0.
__device__ __forceinline__ float exp(float x) { return ptx::ex2(x * log2_e); }

/// 1/l. A row's maximum contributes e⁰, so l >= 1; a row that sees no key has l = 0, and its zeros stay zeros.
__device__ __forceinline__ float inverse_of_sum(float l) { return 1 / fmaxf(l, 1); }

/// Which keys a query sees, and nothing else: causal, window, and where the matrices end.
class SightMask {
 public:
  /// Tiles are Br × Bc.
  __device__ __forceinline__ SightMask(const Problem& p, int Br, int Bc) : sees_(p.sees), Br_(Br), Bc_(Bc) {}

  /// A warp's part of a tile of scores: −∞ where the query does not see the key, or there is none.
  template <int M, int N, class Mma>
  __device__ __forceinline__ void apply(WarpTile<M, N, Mma>& S, Range rows, Range cols) const {
    const bool full =
        rows.size() == Br_ && cols.size() == Bc_ && rules::tile_full(sees_, rows.begin, rows.end, cols.begin, cols.end);
    if (full) return;
    // A row sees an interval of keys (rules::visible): as columns of this tile, it is cheap to compare with.
    const auto column = [&](i64 j) { return static_cast<int>(min(max(j - cols.begin, i64(0)), i64(cols.size()))); };
    int first[M / 8], end[M / 8];
#pragma unroll
    for (int r = 0; r < M / 8; ++r) {
      const i64 i = rows.begin + S.row(r), centre = rules::centre(sees_, i);
      first[r] = column(centre - sees_.left);
      end[r] = i < sees_.Nq ? column(centre + sees_.right + 1) : 0;
    }
    S.transform([&](int r, int c, float s) { return first[r] <= S.col(c) && S.col(c) < end[r] ? s : -INFINITY; });
  }

 private:
  rules::Visibility sees_;
  int Br_, Bc_;
};

/// What happens to a tile of scores between the product and the softmax, on the device.
class ScoreMask {
 public:
  /// `slope`: where the head's ALiBi slope is when the mask is applied; not read without ALiBi. Tiles are Br × Bc.
  __device__ __forceinline__ ScoreMask(const Problem& p, const float* slope, int Br = 1, int Bc = 1)
      : sight_(p, Br, Bc), sees_(p.sees), softcap_(p.softcap), slope_(p.slopes ? slope : nullptr) {}

  /// A warp's part of a tile of scores: s <- c·tanh(s/c), s <- s − slope·distance, and −∞ where the query does not see
  /// the key, or there is none.
  template <int M, int N, class Mma>
  __device__ __forceinline__ void apply(WarpTile<M, N, Mma>& S, Range rows, Range cols) const {
    if (softcap_ > 0) S.transform([&](int, int, float s) { return capped(s); });
    if (slope_)
      S.transform([&](int r, int c, float s) { return s - bias(rows.begin + S.row(r), cols.begin + S.col(c)); });
    sight_.apply(S, rows, cols);
  }

  /// One score.
  __device__ __forceinline__ float apply(float s, i64 i, i64 j) const {
    if (softcap_ > 0) s = capped(s);
    if (slope_) s -= bias(i, j);
    return visible(i, j) ? s : -INFINITY;
  }

  /// dS through the softcap: d(c·tanh(s/c))/ds = 1 − tanh². `S` is what apply() left.
  template <int M, int N, class Mma>
  __device__ __forceinline__ void derivative(WarpTile<M, N, Mma>& dS, const WarpTile<M, N, Mma>& S, Range rows,
                                             Range cols) const {
    if (softcap_ > 0)
      dS.transform([&](int r, int c, float ds) {
        return derivative(ds, S(r, c), rows.begin + S.row(r), cols.begin + S.col(c));
      });
  }

  /// One element of dS.
  __device__ __forceinline__ float derivative(float ds, float s, i64 i, i64 j) const {
    if (s == -INFINITY) return 0;
    const float tanh = (slope_ ? s + bias(i, j) : s) / softcap_;
    return ds * (1 - tanh * tanh);
  }

 private:
  __device__ __forceinline__ float capped(float s) const { return softcap_ * tanhf(s / softcap_); }
  /// rules::alibi_distance; it fits 32 bits, which are cheaper here.
  __device__ __forceinline__ float bias(i64 i, i64 j) const {
    return *slope_ * static_cast<float>(abs(static_cast<int>(rules::centre(sees_, i) - j)));
  }
  __device__ __forceinline__ bool visible(i64 i, i64 j) const {
    return i < sees_.Nq && j < sees_.Nk && rules::visible(sees_, i, j);
  }

  SightMask sight_;
  rules::Visibility sees_;
  float softcap_;
  const float* slope_;
};

}  // namespace flash::cuda

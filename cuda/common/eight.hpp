// Eight neighbours of a row, 16 bits each: what a thread moves between memories at once.
#pragma once

#include "cuda/common/element.hpp"
#include "cuda/common/problem.hpp"
#include "cuda/ptx/reduce.hpp"

namespace flash::cuda {

/// Their values.
template <class Element = Fp16>
__device__ __forceinline__ void unpack(uint4 eight, float (&x)[8]) {
  const uint32_t pairs[4] = {eight.x, eight.y, eight.z, eight.w};
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const float2 pair = Element::unpack(pairs[k]);
    x[2 * k] = pair.x, x[2 * k + 1] = pair.y;
  }
}

__device__ __forceinline__ uint4 pack(const float (&x)[8]) {
  return make_uint4(ptx::pack_f16(x[0], x[1]), ptx::pack_f16(x[2], x[3]), ptx::pack_f16(x[4], x[5]),
                    ptx::pack_f16(x[6], x[7]));
}

template <class Element = Fp16>
__device__ __forceinline__ float dot(uint4 a, uint4 b) {
  float x[8], y[8], sum = 0;
  unpack<Element>(a, x), unpack<Element>(b, y);
#pragma unroll
  for (int k = 0; k < 8; ++k) sum += x[k] * y[k];
  return sum;
}

/// sum += weight · eight.
__device__ __forceinline__ void add(float (&sum)[8], half weight, uint4 eight) {
  float x[8];
  unpack(eight, x);
#pragma unroll
  for (int k = 0; k < 8; ++k) sum[k] += __half2float(weight) * x[k];
}

// At a 16-byte aligned address.
__device__ __forceinline__ uint4 load_eight(const half* from) { return *reinterpret_cast<const uint4*>(from); }
__device__ __forceinline__ void store_eight(half* to, uint4 eight) { *reinterpret_cast<uint4*>(to) = eight; }
/// Added to what is there; each sum is rounded to fp16.
__device__ __forceinline__ void add_eight(half* to, uint4 eight) {
  ptx::red_add_f16x2(to, eight.x), ptx::red_add_f16x2(to + 2, eight.y);
  ptx::red_add_f16x2(to + 4, eight.z), ptx::red_add_f16x2(to + 6, eight.w);
}

/// From column `col` of a row of `length` elements. Rows that are no multiple of 16 bytes long begin anywhere: they
/// come element by element. `fill`, the bits of an fp16, stands for what is beyond the row's end.
__device__ __forceinline__ uint4 load_eight(const half* row, i64 col, i64 length, uint32_t fill) {
  if (length % 8 == 0 && col < length) return load_eight(row + col);
  const uint16_t* bits = reinterpret_cast<const uint16_t*>(row);
  uint32_t pairs[4];
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const uint32_t low = col + 2 * k < length ? bits[col + 2 * k] : fill;
    const uint32_t high = col + 2 * k + 1 < length ? bits[col + 2 * k + 1] : fill;
    pairs[k] = low | high << 16;
  }
  return make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
}

/// The same way back.
__device__ __forceinline__ void store_eight(half* row, i64 col, i64 length, uint4 eight) {
  if (length % 8 == 0 && col < length) return store_eight(row + col, eight);
  uint16_t* bits = reinterpret_cast<uint16_t*>(row);
  const uint32_t pairs[4] = {eight.x, eight.y, eight.z, eight.w};
#pragma unroll
  for (int k = 0; k < 8; ++k)
    if (col + k < length) bits[col + k] = static_cast<uint16_t>(pairs[k / 2] >> k % 2 * 16);
}

}  // namespace flash::cuda

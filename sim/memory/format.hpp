// Number formats of tensors and tiles: how many bytes an element takes and how a value rounds.
#pragma once

#include <string_view>

#include "sim/memory/eigen.hpp"

namespace flash {

enum class Format { fp64, fp32, fp16, bf16, u8 };

constexpr Index bytes_per_element(Format format) {
  switch (format) {
    case Format::fp64: return 8;
    case Format::fp32: return 4;
    case Format::fp16:
    case Format::bf16: return 2;
    case Format::u8: return 1;
  }
  return 0;
}

constexpr std::string_view name(Format format) {
  switch (format) {
    case Format::fp64: return "fp64";
    case Format::fp32: return "fp32";
    case Format::fp16: return "fp16";
    case Format::bf16: return "bf16";
    case Format::u8: return "u8";
  }
  return "";
}

/// Distance from 1 to the next larger number of the format.
constexpr double epsilon(Format format) {
  switch (format) {
    case Format::fp64: return 0x1p-52;
    case Format::fp32: return 0x1p-23;
    case Format::fp16: return 0x1p-10;
    case Format::bf16: return 0x1p-7;
    case Format::u8: return 1;
  }
  return 0;
}

/// Sums (S, O, l, LSE, dQ) are kept in fp32, and in fp64 when everything is.
constexpr Format accumulator(Format format) { return format == Format::fp64 ? Format::fp64 : Format::fp32; }

constexpr bool is_16_bit(Format format) { return format == Format::fp16 || format == Format::bf16; }

/// `value` rounded to the nearest number of `format`, ties to even; fp16 overflows to infinity beyond 65504.
template <class Real>
Real rounded(Real value, Format format) {
  switch (format) {
    case Format::fp64:
    case Format::u8: return value;
    case Format::fp32: return static_cast<Real>(static_cast<float>(value));
    case Format::fp16: return static_cast<Real>(static_cast<float>(Eigen::half(static_cast<float>(value))));
    case Format::bf16: return static_cast<Real>(static_cast<float>(Eigen::bfloat16(static_cast<float>(value))));
  }
  return value;
}

}  // namespace flash

// Floating-point functions of CUDA that C++ has not, CUDA's min and max, and conversions. Approximations (__expf) are
// as exact as the host's.
#pragma once

#include <cmath>
#include <limits>
#include <type_traits>

#include "sim/gpu/cuda_types.hpp"

using std::isfinite;
using std::isinf;
using std::isnan;
using std::signbit;

// ---- min and max, for the pairs of types that CUDA has them for
namespace flash::gpu {
// A NaN gives way to a number, a signalling one, too, and −0 is below +0.
template <class T>
FLASH_CUDA T larger(T x, T y) {
  if constexpr (std::is_floating_point_v<T>) {
    if (x != x || y != y) return x != x ? y : x;
    if (x == y) return std::signbit(x) ? y : x;
  }
  return x > y ? x : y;
}
template <class T>
FLASH_CUDA T smaller(T x, T y) {
  if constexpr (std::is_floating_point_v<T>) {
    if (x != x || y != y) return x != x ? y : x;
    if (x == y) return std::signbit(x) ? x : y;
  }
  return x < y ? x : y;
}
}  // namespace flash::gpu

#define FLASH_CUDA_MIN_MAX(Result, X, Y)                                                \
  FLASH_CUDA Result max(X x, Y y) {                                                     \
    return flash::gpu::larger<Result>(static_cast<Result>(x), static_cast<Result>(y));  \
  }                                                                                     \
  FLASH_CUDA Result min(X x, Y y) {                                                     \
    return flash::gpu::smaller<Result>(static_cast<Result>(x), static_cast<Result>(y)); \
  }
#define FLASH_CUDA_MIN_MAX_OF(T)                         \
  FLASH_CUDA_MIN_MAX(T, T, T)                            \
  FLASH_CUDA_MIN_MAX(unsigned T, unsigned T, unsigned T) \
  FLASH_CUDA_MIN_MAX(unsigned T, T, unsigned T)          \
  FLASH_CUDA_MIN_MAX(unsigned T, unsigned T, T)
FLASH_CUDA_MIN_MAX_OF(int)
FLASH_CUDA_MIN_MAX_OF(long)
FLASH_CUDA_MIN_MAX_OF(long long)
FLASH_CUDA_MIN_MAX(float, float, float)
FLASH_CUDA_MIN_MAX(double, double, double)
FLASH_CUDA_MIN_MAX(double, float, double)
FLASH_CUDA_MIN_MAX(double, double, float)
#undef FLASH_CUDA_MIN_MAX_OF
#undef FLASH_CUDA_MIN_MAX

// ---- functions
FLASH_CUDA float __expf(float x) { return std::exp(x); }
FLASH_CUDA float __exp10f(float x) { return std::pow(10.f, x); }
FLASH_CUDA float __logf(float x) { return std::log(x); }
FLASH_CUDA float __log2f(float x) { return std::log2(x); }
FLASH_CUDA float __log10f(float x) { return std::log10(x); }
FLASH_CUDA float __sinf(float x) { return std::sin(x); }
FLASH_CUDA float __cosf(float x) { return std::cos(x); }
FLASH_CUDA float __tanf(float x) { return std::tan(x); }
FLASH_CUDA void __sincosf(float x, float* sine, float* cosine) {
  *sine = std::sin(x);
  *cosine = std::cos(x);
}
FLASH_CUDA float __powf(float x, float y) { return std::exp2(y * std::log2(x)); }  // NaN below 0, as there
FLASH_CUDA float __saturatef(float x) { return x > 0 ? x < 1 ? x : 1.f : 0.f; }    // NaN becomes 0
FLASH_CUDA float __fdividef(float x, float y) { return x / y; }
FLASH_CUDA float fdividef(float x, float y) { return x / y; }
FLASH_CUDA float rsqrtf(float x) { return 1 / std::sqrt(x); }
FLASH_CUDA double rsqrt(double x) { return 1 / std::sqrt(x); }

// ---- rounded to nearest even, and never contracted
FLASH_CUDA float __fadd_rn(float x, float y) { return x + y; }
FLASH_CUDA float __fsub_rn(float x, float y) { return x - y; }
FLASH_CUDA float __fmul_rn(float x, float y) { return x * y; }
FLASH_CUDA float __fdiv_rn(float x, float y) { return x / y; }
FLASH_CUDA float __fmaf_rn(float x, float y, float z) { return std::fma(x, y, z); }
FLASH_CUDA float __frcp_rn(float x) { return 1 / x; }
FLASH_CUDA float __fsqrt_rn(float x) { return std::sqrt(x); }
FLASH_CUDA float __frsqrt_rn(float x) { return static_cast<float>(1 / std::sqrt(static_cast<double>(x))); }
FLASH_CUDA double __dadd_rn(double x, double y) { return x + y; }
FLASH_CUDA double __dsub_rn(double x, double y) { return x - y; }
FLASH_CUDA double __dmul_rn(double x, double y) { return x * y; }
FLASH_CUDA double __ddiv_rn(double x, double y) { return x / y; }
FLASH_CUDA double __fma_rn(double x, double y, double z) { return std::fma(x, y, z); }
FLASH_CUDA double __drcp_rn(double x) { return 1 / x; }
FLASH_CUDA double __dsqrt_rn(double x) { return std::sqrt(x); }

// ---- conversions
FLASH_CUDA float __int2float_rn(int x) { return static_cast<float>(x); }
FLASH_CUDA float __uint2float_rn(unsigned x) { return static_cast<float>(x); }
FLASH_CUDA float __ll2float_rn(long long x) { return static_cast<float>(x); }
FLASH_CUDA float __ull2float_rn(unsigned long long x) { return static_cast<float>(x); }
FLASH_CUDA double __int2double_rn(int x) { return x; }
FLASH_CUDA double __uint2double_rn(unsigned x) { return x; }
FLASH_CUDA double __ll2double_rn(long long x) { return static_cast<double>(x); }
FLASH_CUDA double __ull2double_rn(unsigned long long x) { return static_cast<double>(x); }
FLASH_CUDA float __double2float_rn(double x) { return static_cast<float>(x); }

namespace flash::gpu {
/// An integral `x` as an Integer: the nearest that there is. What becomes of NaN: PTX ISA, cvt.
template <class Integer, class Real>
FLASH_CUDA Integer saturated(Real x) {
  using Limits = std::numeric_limits<Integer>;
  if (x != x) {
    constexpr bool wide = sizeof(Integer) == 8 || sizeof(Real) == 8;
    return wide ? static_cast<Integer>(1ull << (8 * sizeof(Integer) - 1)) : Integer(0);
  }
  if (x <= static_cast<Real>(Limits::min())) return Limits::min();
  if (x >= static_cast<Real>(Limits::max())) return Limits::max();
  return static_cast<Integer>(x);
}
}  // namespace flash::gpu

/// Real: that of the argument From in which it is rounded.
#define FLASH_CUDA_TO_INTEGER(NAME, From, Real, Integer)                                                            \
  FLASH_CUDA Integer NAME##_rn(From x) {                                                                            \
    return flash::gpu::saturated<Integer>(std::nearbyint(static_cast<Real>(x)));                                    \
  }                                                                                                                 \
  FLASH_CUDA Integer NAME##_rz(From x) { return flash::gpu::saturated<Integer>(std::trunc(static_cast<Real>(x))); } \
  FLASH_CUDA Integer NAME##_rd(From x) { return flash::gpu::saturated<Integer>(std::floor(static_cast<Real>(x))); } \
  FLASH_CUDA Integer NAME##_ru(From x) { return flash::gpu::saturated<Integer>(std::ceil(static_cast<Real>(x))); }
#define FLASH_CUDA_TO_INTEGERS(NAME, From, Real)           \
  FLASH_CUDA_TO_INTEGER(NAME##2int, From, Real, int)       \
  FLASH_CUDA_TO_INTEGER(NAME##2uint, From, Real, unsigned) \
  FLASH_CUDA_TO_INTEGER(NAME##2ll, From, Real, long long)  \
  FLASH_CUDA_TO_INTEGER(NAME##2ull, From, Real, unsigned long long)
FLASH_CUDA_TO_INTEGERS(__float, float, float)
FLASH_CUDA_TO_INTEGERS(__double, double, double)

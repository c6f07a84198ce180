// half and bfloat16: one class template for both formats. Arithmetic is made in fp32 and rounded to
// nearest even, which is as if it were made at once; fma and wider numbers come rounded to odd for that.
#pragma once

#include <type_traits>

#include "sim/gpu/cuda_bits.hpp"
#include "sim/gpu/cuda_math.hpp"
#include "sim/gpu/instructions.hpp"

struct __half_raw {
  unsigned short x;
};
struct __half2_raw {
  unsigned short x, y;
};
struct __nv_bfloat16_raw {
  unsigned short x;
};
struct __nv_bfloat162_raw {
  unsigned short x, y;
};

#define FLASH_CUDA_FRIEND friend FLASH_CUDA

namespace flash::gpu {

struct Fp16 {
  using Raw = __half_raw;
  using RawPair = __half2_raw;
  static FLASH_CUDA float widened(std::uint16_t x) { return widen_f16(x); }
  static FLASH_CUDA std::uint16_t rounded(float x) { return round_f16(x); }
};
struct Bf16 {
  using Raw = __nv_bfloat16_raw;
  using RawPair = __nv_bfloat162_raw;
  static FLASH_CUDA float widened(std::uint16_t x) { return std::bit_cast<float>(static_cast<unsigned>(x) << 16); }
  static FLASH_CUDA std::uint16_t rounded(float x) { return round_bf16(x); }
};

// Hidden friends: like CUDA's functions they take what converts to a Number, where at least one argument is one.
#define FLASH_CUDA_OPERATORS(T)                                           \
  FLASH_CUDA_FRIEND T& operator+=(T& x, const T& y) { return x = x + y; } \
  FLASH_CUDA_FRIEND T& operator-=(T& x, const T& y) { return x = x - y; } \
  FLASH_CUDA_FRIEND T& operator*=(T& x, const T& y) { return x = x * y; } \
  FLASH_CUDA_FRIEND T& operator/=(T& x, const T& y) { return x = x / y; } \
  FLASH_CUDA_FRIEND T& operator++(T& x) { return x = x + T::one(); }      \
  FLASH_CUDA_FRIEND T& operator--(T& x) { return x = x - T::one(); }      \
  FLASH_CUDA_FRIEND T operator++(T& x, int) {                             \
    const T before = x;                                                   \
    ++x;                                                                  \
    return before;                                                        \
  }                                                                       \
  FLASH_CUDA_FRIEND T operator--(T& x, int) {                             \
    const T before = x;                                                   \
    --x;                                                                  \
    return before;                                                        \
  }                                                                       \
  FLASH_CUDA_FRIEND T operator+(T x) { return x; }

#define FLASH_CUDA_COMPARISON(NAME, TRUTH)          \
  FLASH_CUDA_FRIEND bool NAME(Number a, Number b) { \
    const float x = a, y = b;                       \
    return TRUTH;                                   \
  }
#define FLASH_CUDA_ARITHMETIC(NAME, RESULT)           \
  FLASH_CUDA_FRIEND Number NAME(Number a, Number b) { \
    const float x = a, y = b;                         \
    return RESULT;                                    \
  }
#define FLASH_CUDA_FUNCTION(NAME, RESULT)   \
  FLASH_CUDA_FRIEND Number NAME(Number a) { \
    const float x = a;                      \
    return RESULT;                          \
  }

template <class Format>
class Number {
 protected:
  std::uint16_t __x;

 public:
  using Raw = typename Format::Raw;
  FLASH_ASSIGNED_AS(Number, std::uint16_t)
  Number() = default;
  FLASH_CUDA Number(const Number&) = default;
  FLASH_CUDA Number(Raw bits) : __x(bits.x) {}
  FLASH_CUDA Number(float x) : __x(Format::rounded(x)) {}
  FLASH_CUDA Number(double x) : __x(Format::rounded(to_odd(x))) {}
  template <class Other>
  requires(!std::is_same_v<Format, Other>) FLASH_CUDA explicit Number(Number<Other> x)
      : Number(static_cast<float>(x)) {}
  FLASH_CUDA operator Raw() const { return {__x}; }
  FLASH_CUDA operator float() const { return Format::widened(__x); }
  FLASH_CUDA operator bool() const { return (__x & 0x7fff) != 0; }
#define FLASH_CUDA_FROM(Integer) \
  FLASH_CUDA Number(Integer x) : __x(Format::rounded(to_odd(x))) {}
#define FLASH_CUDA_TO(Integer) \
  FLASH_CUDA operator Integer() const { return saturated<Integer>(std::trunc(Format::widened(__x))); }
#define FLASH_CUDA_FROM_AND_TO(Integer) \
  FLASH_CUDA_FROM(Integer)              \
  FLASH_CUDA_TO(Integer)
  FLASH_CUDA_TO(char)
  FLASH_CUDA_TO(signed char)
  FLASH_CUDA_TO(unsigned char)
  FLASH_CUDA_FROM_AND_TO(short)
  FLASH_CUDA_FROM_AND_TO(unsigned short)
  FLASH_CUDA_FROM_AND_TO(int)
  FLASH_CUDA_FROM_AND_TO(unsigned)
  FLASH_CUDA_FROM_AND_TO(long)
  FLASH_CUDA_FROM_AND_TO(unsigned long)
  FLASH_CUDA_FROM_AND_TO(long long)
  FLASH_CUDA_FROM_AND_TO(unsigned long long)
#undef FLASH_CUDA_FROM_AND_TO
#undef FLASH_CUDA_FROM
#undef FLASH_CUDA_TO
  static FLASH_CUDA Number one() { return 1.f; }

  FLASH_CUDA_ARITHMETIC(operator+, x + y)
  FLASH_CUDA_ARITHMETIC(operator-, x - y)
  FLASH_CUDA_ARITHMETIC(operator*, (x * y))
  FLASH_CUDA_ARITHMETIC(operator/, x / y)
  FLASH_CUDA_FRIEND Number operator-(Number x) { return __hneg(x); }
  FLASH_CUDA_OPERATORS(Number)
  FLASH_CUDA_COMPARISON(operator==, x == y)
  FLASH_CUDA_COMPARISON(operator!=, x != y)
  FLASH_CUDA_COMPARISON(operator<, x < y)
  FLASH_CUDA_COMPARISON(operator<=, x <= y)
  FLASH_CUDA_COMPARISON(operator>, x > y)
  FLASH_CUDA_COMPARISON(operator>=, x >= y)

  FLASH_CUDA_ARITHMETIC(__hadd, x + y)
  FLASH_CUDA_ARITHMETIC(__hsub, x - y)
  FLASH_CUDA_ARITHMETIC(__hmul, (x * y))
  FLASH_CUDA_ARITHMETIC(__hdiv, x / y)
  FLASH_CUDA_ARITHMETIC(__hadd_rn, x + y)
  FLASH_CUDA_ARITHMETIC(__hsub_rn, x - y)
  FLASH_CUDA_ARITHMETIC(__hmul_rn, (x * y))
  FLASH_CUDA_ARITHMETIC(__hadd_sat, __saturatef(x + y))
  FLASH_CUDA_ARITHMETIC(__hsub_sat, __saturatef(x - y))
  FLASH_CUDA_ARITHMETIC(__hmul_sat, __saturatef((x * y)))
  FLASH_CUDA_ARITHMETIC(__hmax, larger(x, y))
  FLASH_CUDA_ARITHMETIC(__hmin, smaller(x, y))
  FLASH_CUDA_ARITHMETIC(__hmax_nan, x != x || y != y ? x + y : larger(x, y))
  FLASH_CUDA_ARITHMETIC(__hmin_nan, x != x || y != y ? x + y : smaller(x, y))
  FLASH_CUDA_FRIEND Number __hfma(Number x, Number y, Number z) { return fma_to_odd(x, y, z); }
  FLASH_CUDA_FRIEND Number __hneg(Number x) { return Raw{static_cast<std::uint16_t>(x.__x ^ 0x8000)}; }
  FLASH_CUDA_FRIEND Number __habs(Number x) { return Raw{static_cast<std::uint16_t>(x.__x & 0x7fff)}; }

  // A comparison with NaN is false, and true by the names with u.
  FLASH_CUDA_COMPARISON(__heq, x == y)
  FLASH_CUDA_COMPARISON(__hne, (x < y) || (x > y))
  FLASH_CUDA_COMPARISON(__hlt, x < y)
  FLASH_CUDA_COMPARISON(__hle, x <= y)
  FLASH_CUDA_COMPARISON(__hgt, x > y)
  FLASH_CUDA_COMPARISON(__hge, x >= y)
  FLASH_CUDA_COMPARISON(__hequ, !(x < y || x > y))
  FLASH_CUDA_COMPARISON(__hneu, x != y)
  FLASH_CUDA_COMPARISON(__hltu, !(x >= y))
  FLASH_CUDA_COMPARISON(__hleu, !(x > y))
  FLASH_CUDA_COMPARISON(__hgtu, !(x <= y))
  FLASH_CUDA_COMPARISON(__hgeu, !(x < y))
  FLASH_CUDA_FRIEND bool __hisnan(Number x) { return std::isnan(static_cast<float>(x)); }
  FLASH_CUDA_FRIEND int __hisinf(Number x) { return std::isinf(static_cast<float>(x)) ? x.__x & 0x8000 ? -1 : 1 : 0; }

  FLASH_CUDA_FUNCTION(hexp, std::exp(x))
  FLASH_CUDA_FUNCTION(hexp2, std::exp2(x))
  FLASH_CUDA_FUNCTION(hlog, std::log(x))
  FLASH_CUDA_FUNCTION(hlog2, std::log2(x))
  FLASH_CUDA_FUNCTION(hsin, std::sin(x))
  FLASH_CUDA_FUNCTION(hcos, std::cos(x))
  FLASH_CUDA_FUNCTION(hsqrt, std::sqrt(x))
  FLASH_CUDA_FUNCTION(hrsqrt, 1 / std::sqrt(x))
  FLASH_CUDA_FUNCTION(hrcp, 1 / x)
  FLASH_CUDA_FUNCTION(hfloor, std::floor(x))
  FLASH_CUDA_FUNCTION(hceil, std::ceil(x))
  FLASH_CUDA_FUNCTION(htrunc, std::trunc(x))
  FLASH_CUDA_FUNCTION(hrint, std::nearbyint(x))
};

#undef FLASH_CUDA_FUNCTION
#undef FLASH_CUDA_ARITHMETIC
#undef FLASH_CUDA_COMPARISON

}  // namespace flash::gpu

using __half = flash::gpu::Number<flash::gpu::Fp16>;
using __nv_bfloat16 = flash::gpu::Number<flash::gpu::Bf16>;
using half = __half;
using nv_half = __half;
using nv_bfloat16 = __nv_bfloat16;

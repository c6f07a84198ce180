// half2 and bfloat162: one class template for pairs of both formats, and CUDA's names of conversions.
#pragma once

#include "sim/gpu/cuda_half.hpp"

namespace flash::gpu {

#define FLASH_CUDA_OF_EACH(NAME, EACH) \
  FLASH_CUDA_FRIEND Pair NAME(Pair a, Pair b) { return {EACH(a.x, b.x), EACH(a.y, b.y)}; }
#define FLASH_CUDA_COMPARISONS(NAME)                                 \
  FLASH_CUDA_FRIEND Pair __h##NAME##2(Pair a, Pair b) {              \
    return {truth(__h##NAME(a.x, b.x)), truth(__h##NAME(a.y, b.y))}; \
  }                                                                  \
  FLASH_CUDA_FRIEND bool __hb##NAME##2(Pair a, Pair b) { return __h##NAME(a.x, b.x) && __h##NAME(a.y, b.y); }
#define FLASH_CUDA_FUNCTION_OF_EACH(NAME, EACH) \
  FLASH_CUDA_FRIEND Pair NAME(Pair a) { return {EACH(a.x), EACH(a.y)}; }

template <class Format>
struct alignas(4) Pair {
  using Half = Number<Format>;
  using Raw = typename Format::RawPair;
  Half x, y;

  FLASH_ASSIGNED_AS(Pair, std::uint32_t)
  Pair() = default;
  FLASH_CUDA Pair(const Pair&) = default;
  FLASH_CUDA Pair(const Half& x, const Half& y) : x(x), y(y) {}
  FLASH_CUDA Pair(Raw bits) : x(typename Half::Raw{bits.x}), y(typename Half::Raw{bits.y}) {}
  FLASH_CUDA operator Raw() const {
    return {static_cast<typename Half::Raw>(x).x, static_cast<typename Half::Raw>(y).x};
  }
  static FLASH_CUDA Pair one() { return {1.f, 1.f}; }
  static FLASH_CUDA Half truth(bool is) { return is ? 1.f : 0.f; }

  FLASH_CUDA_OF_EACH(operator+, __hadd)
  FLASH_CUDA_OF_EACH(operator-, __hsub)
  FLASH_CUDA_OF_EACH(operator*, __hmul)
  FLASH_CUDA_OF_EACH(operator/, __hdiv)
  FLASH_CUDA_FUNCTION_OF_EACH(operator-, __hneg)
  FLASH_CUDA_OPERATORS(Pair)
  FLASH_CUDA_FRIEND bool operator==(Pair a, Pair b) { return __hbeq2(a, b); }
  FLASH_CUDA_FRIEND bool operator!=(Pair a, Pair b) { return __hbneu2(a, b); }
  FLASH_CUDA_FRIEND bool operator<(Pair a, Pair b) { return __hblt2(a, b); }
  FLASH_CUDA_FRIEND bool operator<=(Pair a, Pair b) { return __hble2(a, b); }
  FLASH_CUDA_FRIEND bool operator>(Pair a, Pair b) { return __hbgt2(a, b); }
  FLASH_CUDA_FRIEND bool operator>=(Pair a, Pair b) { return __hbge2(a, b); }

  FLASH_CUDA_OF_EACH(__hadd2, __hadd)
  FLASH_CUDA_OF_EACH(__hsub2, __hsub)
  FLASH_CUDA_OF_EACH(__hmul2, __hmul)
  FLASH_CUDA_OF_EACH(__h2div, __hdiv)
  FLASH_CUDA_OF_EACH(__hadd2_rn, __hadd)
  FLASH_CUDA_OF_EACH(__hsub2_rn, __hsub)
  FLASH_CUDA_OF_EACH(__hmul2_rn, __hmul)
  FLASH_CUDA_OF_EACH(__hadd2_sat, __hadd_sat)
  FLASH_CUDA_OF_EACH(__hsub2_sat, __hsub_sat)
  FLASH_CUDA_OF_EACH(__hmul2_sat, __hmul_sat)
  FLASH_CUDA_OF_EACH(__hmax2, __hmax)
  FLASH_CUDA_OF_EACH(__hmin2, __hmin)
  FLASH_CUDA_OF_EACH(__hmax2_nan, __hmax_nan)
  FLASH_CUDA_OF_EACH(__hmin2_nan, __hmin_nan)
  FLASH_CUDA_FRIEND Pair __hfma2(Pair a, Pair b, Pair c) { return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)}; }
  FLASH_CUDA_FRIEND Pair __hisnan2(Pair a) { return {truth(__hisnan(a.x)), truth(__hisnan(a.y))}; }
  FLASH_CUDA_COMPARISONS(eq)
  FLASH_CUDA_COMPARISONS(ne)
  FLASH_CUDA_COMPARISONS(lt)
  FLASH_CUDA_COMPARISONS(le)
  FLASH_CUDA_COMPARISONS(gt)
  FLASH_CUDA_COMPARISONS(ge)
  FLASH_CUDA_COMPARISONS(equ)
  FLASH_CUDA_COMPARISONS(neu)
  FLASH_CUDA_COMPARISONS(ltu)
  FLASH_CUDA_COMPARISONS(leu)
  FLASH_CUDA_COMPARISONS(gtu)
  FLASH_CUDA_COMPARISONS(geu)
  FLASH_CUDA_FUNCTION_OF_EACH(__hneg2, __hneg)
  FLASH_CUDA_FUNCTION_OF_EACH(__habs2, __habs)
  FLASH_CUDA_FUNCTION_OF_EACH(h2exp, hexp)
  FLASH_CUDA_FUNCTION_OF_EACH(h2exp2, hexp2)
  FLASH_CUDA_FUNCTION_OF_EACH(h2log, hlog)
  FLASH_CUDA_FUNCTION_OF_EACH(h2log2, hlog2)
  FLASH_CUDA_FUNCTION_OF_EACH(h2sqrt, hsqrt)
  FLASH_CUDA_FUNCTION_OF_EACH(h2rsqrt, hrsqrt)
  FLASH_CUDA_FUNCTION_OF_EACH(h2rcp, hrcp)

  FLASH_CUDA_FRIEND float __low2float(Pair a) { return a.x; }
  FLASH_CUDA_FRIEND float __high2float(Pair a) { return a.y; }
  FLASH_CUDA_FRIEND Pair __lowhigh2highlow(Pair a) { return {a.y, a.x}; }
};

#undef FLASH_CUDA_FUNCTION_OF_EACH
#undef FLASH_CUDA_COMPARISONS
#undef FLASH_CUDA_OF_EACH
#undef FLASH_CUDA_OPERATORS
#undef FLASH_CUDA_FRIEND

template <class T>
inline constexpr bool is_16_bit = false;
template <class Format>
inline constexpr bool is_16_bit<Number<Format>> = true;
template <class Format>
inline constexpr bool is_16_bit<Pair<Format>> = true;

}  // namespace flash::gpu

using __half2 = flash::gpu::Pair<flash::gpu::Fp16>;
using __nv_bfloat162 = flash::gpu::Pair<flash::gpu::Bf16>;
using half2 = __half2;
using nv_half2 = __half2;
using nv_bfloat162 = __nv_bfloat162;

// CUDA's names of conversions: `half` is half or bfloat16 in them.
#define FLASH_CUDA_CONVERSIONS(T, half)                                                                  \
  FLASH_CUDA float __##half##2float(T x) { return x; }                                                   \
  FLASH_CUDA T __float2##half(float x) { return x; }                                                     \
  FLASH_CUDA T __float2##half##_rn(float x) { return x; }                                                \
  FLASH_CUDA T __double2##half(double x) { return x; }                                                   \
  FLASH_CUDA T __int2##half##_rn(int x) { return x; }                                                    \
  FLASH_CUDA T __uint2##half##_rn(unsigned x) { return x; }                                              \
  FLASH_CUDA T __short2##half##_rn(short x) { return x; }                                                \
  FLASH_CUDA T __ushort2##half##_rn(unsigned short x) { return x; }                                      \
  FLASH_CUDA T __ll2##half##_rn(long long x) { return x; }                                               \
  FLASH_CUDA T __ull2##half##_rn(unsigned long long x) { return x; }                                     \
  FLASH_CUDA_TO_INTEGERS(__##half, T, float)                                                             \
  FLASH_CUDA T __ushort_as_##half(unsigned short x) { return T::Raw{x}; }                                \
  FLASH_CUDA T __short_as_##half(short x) { return __ushort_as_##half(static_cast<unsigned short>(x)); } \
  FLASH_CUDA unsigned short __##half##_as_ushort(T x) { return static_cast<T::Raw>(x).x; }               \
  FLASH_CUDA short __##half##_as_short(T x) { return static_cast<short>(__##half##_as_ushort(x)); }      \
  FLASH_CUDA T##2 __float2##half##2_rn(float x) { return {x, x}; }                                       \
  FLASH_CUDA T##2 __floats2##half##2_rn(float x, float y) { return {x, y}; }                             \
  FLASH_CUDA T##2 __float22##half##2_rn(float2 x) { return {x.x, x.y}; }                                 \
  FLASH_CUDA float2 __##half##22float2(T##2 x) { return {x.x, x.y}; }                                    \
  FLASH_CUDA T##2 __##half##2##half##2(T x) { return {x, x}; }                                           \
  FLASH_CUDA T##2 __halves2##half##2(T x, T y) { return {x, y}; }                                        \
  FLASH_CUDA T##2 make_##half##2(T x, T y) { return {x, y}; }                                            \
  FLASH_CUDA T __low2##half(T##2 x) { return x.x; }                                                      \
  FLASH_CUDA T __high2##half(T##2 x) { return x.y; }                                                     \
  FLASH_CUDA T##2 __low2##half##2(T##2 x) { return {x.x, x.x}; }                                         \
  FLASH_CUDA T##2 __high2##half##2(T##2 x) { return {x.y, x.y}; }                                        \
  FLASH_CUDA T##2 __lows2##half##2(T##2 x, T##2 y) { return {x.x, y.x}; }                                \
  FLASH_CUDA T##2 __highs2##half##2(T##2 x, T##2 y) { return {x.y, y.y}; }
FLASH_CUDA_CONVERSIONS(__half, half)
FLASH_CUDA_CONVERSIONS(__nv_bfloat16, bfloat16)
#undef FLASH_CUDA_CONVERSIONS
#undef FLASH_CUDA_TO_INTEGERS
#undef FLASH_CUDA_TO_INTEGER

// The kernels of language.hpp. The rest of CUDA C++ is in language_cases.hpp, expression by expression.
#include <cassert>
#include <cstdio>
#include <cstring>
#include <type_traits>

#include "tests/kernels/launch.hpp"
#include "tests/kernels/language.hpp"

namespace {

using Word = unsigned long long;

template <class T, class Expected>
bool equal(const T* y, int count, Expected expected) {
  for (int i = 0; i < count; ++i)
    if (!(y[i] == static_cast<T>(expected(i)))) {
      std::printf("[%d] is %g, not %g\n", i, static_cast<double>(y[i]), static_cast<double>(expected(i)));
      return false;
    }
  return true;
}

// ---- expressions

__host__ __device__ half H(unsigned short bits) {
  __half_raw raw;
  raw.x = bits;
  return raw;
}
__host__ __device__ half2 H2(unsigned short x, unsigned short y) { return half2(H(x), H(y)); }
__host__ __device__ __nv_bfloat16 B(unsigned short bits) {
  __nv_bfloat16_raw raw;
  raw.x = bits;
  return raw;
}
__host__ __device__ __nv_bfloat162 B2(unsigned short x, unsigned short y) { return __nv_bfloat162(B(x), B(y)); }

/// All NaN are one.
template <class T>
__host__ __device__ Word bits_of(T x) {
  Word bits = 0;
  if (x != x) return 0x7fff;
  memcpy(&bits, &x, sizeof x);
  return bits;
}
__host__ __device__ Word bits_of(half2 x) { return bits_of(x.x) << 16 | bits_of(x.y); }
__host__ __device__ Word bits_of(__nv_bfloat162 x) { return bits_of(x.x) << 16 | bits_of(x.y); }

__global__ void evaluate(Word* y) {
  const float not_a_number = __int_as_float(0x7fc00000);
#define IS(expression, value)                                                                                    \
  static_assert(std::is_same_v<std::decay_t<decltype(expression)>, std::decay_t<decltype(value)>>, #expression); \
  *y++ = bits_of(expression);
#include "tests/kernels/language_cases.hpp"
#undef IS
}
bool run_expressions(const Memory& m) {
  const auto* y = reinterpret_cast<const Word*>(m.y);
  launch(evaluate, 1, 1, 0, reinterpret_cast<Word*>(m.y));
  const float not_a_number = std::nanf("");
  bool right = true;
#define IS(expression, value)                                                        \
  if (*y++ != bits_of(value)) {                                                      \
    std::printf("%s is %llx, not %llx\n", #expression, y[-1], Word(bits_of(value))); \
    right = false;                                                                   \
  }
#include "tests/kernels/language_cases.hpp"
#undef IS
  return right;
}

__global__ void change_halves(float* y) {
  half a = 1.f, b = __float2half(3.f);
  float sine, cosine;
  __sincosf(0.f, &sine, &cosine);
  y[4] = 2 * sine + cosine;
  a += b;  // 4
  a *= a;  // 16
  a -= b;  // 13
  a /= b;  // 4.332
  half c = a++;
  --a;
  half2 pair = __halves2half2(a, c);
  pair += pair;
  pair = -pair;
  __nv_bfloat16 d = 2;
  d *= d;
  y[0] = a;
  y[1] = __high2float(pair);
  y[2] = d;
  float sum = 0;
  for (half i = 0.f; i < half(5.f); ++i) sum += float(i);
  y[3] = sum;
}
bool run_change_halves(const Memory& m) {
  launch(change_halves, 1, 1, 0, m.y);
  return m.y[0] == 0x1.154p2f && m.y[1] == -0x1.154p3f && m.y[2] == 4 && m.y[3] == 10 && m.y[4] == 1;
}

// ---- warps

/// Each kind of type through each kind of shuffle; both halves of 8 bytes matter.
__global__ void shuffles(double* y) {
  const int lane = threadIdx.x;
  const double real = lane + 0x1p-40;
  const long long whole = (static_cast<long long>(lane) << 32) - lane;
  const unsigned long word = static_cast<unsigned long>(lane) << 40 | 7;
  y[lane] = __shfl_xor_sync(0xffffffff, real, 5);
  y[32 + lane] = static_cast<double>(__shfl_sync(0xffffffff, whole, lane + 1, 8));
  y[64 + lane] = static_cast<double>(__shfl_up_sync(0xffffffff, word, 3));
  y[96 + lane] = __half2float(__shfl_down_sync(0xffffffff, __int2half_rn(lane), 2));
  const half2 pair = __shfl_sync(0xffffffff, __floats2half2_rn(static_cast<float>(lane), 0.5f), 9);
  y[128 + lane] = __low2float(pair) + __high2float(pair);
  const short narrow = static_cast<short>(-lane);
  const auto wide = __shfl_sync(0xffffffff, narrow, 31);
  static_assert(std::is_same_v<decltype(wide), const int>);
  y[160 + lane] = wide;
  y[192 + lane] = static_cast<float>(__shfl_xor_sync(0xffffffff, __float2bfloat16(static_cast<float>(lane)), 1));
}
bool run_shuffles(const Memory& m) {
  auto* y = reinterpret_cast<double*>(m.y);
  launch(shuffles, 1, 32, 0, y);
  return equal(y, 32, [](int i) { return (i ^ 5) + 0x1p-40; }) &&
         equal(y + 32, 32, [](int i) { return (i / 8 * 8 + (i + 1) % 8) * (0x1p32 - 1); }) &&
         equal(y + 64, 32, [](int i) { return (i < 3 ? i : i - 3) * 0x1p40 + 7; }) &&
         equal(y + 96, 32, [](int i) { return i < 30 ? i + 2 : i; }) && equal(y + 128, 32, [](int) { return 9.5; }) &&
         equal(y + 160, 32, [](int) { return -31; }) && equal(y + 192, 32, [](int i) { return i ^ 1; });
}

__global__ void matches(unsigned* y) {
  const int lane = threadIdx.x;
  y[lane] = __match_any_sync(0xffffffff, lane % 3);
  const double zero = lane == 4 ? -0. : 0.;  // other bits, though equal
  y[32 + lane] = __match_any_sync(0xffffffff, zero);
  int all = 2;
  y[64 + lane] = __match_all_sync(0xffffffff, 5ull << 40, &all);
  y[96 + lane] = static_cast<unsigned>(all);
  const unsigned long long but_one = lane == 7 ? 1ull << 40 : 0;
  y[128 + lane] = __match_all_sync(0xffffffff, but_one, &all);
  y[160 + lane] = static_cast<unsigned>(all);
  if (lane < 6) y[192 + lane] = __match_any_sync(0x3f, static_cast<float>(lane / 2));
}
bool run_matches(const Memory& m) {
  launch(matches, 1, 32, 0, m.words);
  return equal(m.words, 32, [](int i) { return i % 3 == 0   ? 0x49249249u
                                               : i % 3 == 1 ? 0x92492492u
                                                            : 0x24924924u; }) &&
         equal(m.words + 32, 32, [](int i) { return i == 4 ? 16u : ~16u; }) &&
         equal(m.words + 64, 32, [](int) { return ~0u; }) && equal(m.words + 96, 32, [](int) { return 1; }) &&
         equal(m.words + 128, 64, [](int) { return 0; }) &&
         equal(m.words + 192, 6, [](int i) { return 3u << i / 2 * 2; });
}

__global__ void reductions(unsigned* y) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  const unsigned lane = threadIdx.x;
  const int around_zero = static_cast<int>(lane) - 9;
  const unsigned results[] = {__reduce_add_sync(0xffffffff, lane),
                              static_cast<unsigned>(__reduce_add_sync(0xffffffff, around_zero)),
                              static_cast<unsigned>(__reduce_min_sync(0xffffffff, around_zero)),
                              static_cast<unsigned>(__reduce_max_sync(0xffffffff, around_zero)),
                              __reduce_min_sync(0xffffffff, static_cast<unsigned>(around_zero)),
                              __reduce_max_sync(0xffffffff, static_cast<unsigned>(around_zero)),
                              __reduce_and_sync(0xffffffff, lane | 0x100u),
                              __reduce_or_sync(0xffffffff, lane),
                              __reduce_xor_sync(0xffffffff, lane == 5 ? 0u : lane)};
  for (unsigned i = 0; i < 9; ++i) y[32 * i + lane] = results[i];
  if (lane >= 30) y[288 + lane] = __reduce_add_sync(0xc0000000, lane);
#endif
}
bool run_reductions(const Memory& m) {
  launch(reductions, 1, 32, 0, m.words);
  const unsigned expected[] = {496, 208, ~0u - 8, 22, 0, ~0u, 0x100, 31, 5};
  return equal(m.words, 288, [&](int i) { return expected[i / 32]; }) && m.words[318] == 61 && m.words[319] == 61;
}

/// One atomic for the lanes that come together, wherever that is.
__global__ void aggregated(unsigned* words) {
  const int lane = threadIdx.x % 32;
  if (lane % 3 == 0) {
    const unsigned mask = __activemask();
    const int first = __ffs(static_cast<int>(mask)) - 1;
    unsigned begin = 0;
    if (lane == first) begin = atomicAdd(words, static_cast<unsigned>(__popc(mask)));
    begin = __shfl_sync(mask, begin, first);
    words[1 + begin + static_cast<unsigned>(__popc(mask & ((1u << lane) - 1)))] = 1;
  }
  __syncthreads();  // until here the other lanes are there, too
}
bool run_aggregated(const Memory& m) {
  launch(aggregated, 2, 64, 0, m.words);
  return m.words[0] == 44 && equal(m.words + 1, 45, [](int i) { return i < 44; });
}

__global__ void clocks(float* y) {
  const long long begin = clock64();
  const auto also = clock();
  while (clock64() - begin < 1000) {
  }
  y[threadIdx.x] = clock64() - begin >= 1000 && clock() != also;
}
bool run_clocks(const Memory& m) {
  launch(clocks, 1, 40, 0, m.y);
  return equal(m.y, 40, [](int) { return 1; });
}

// ---- atomics of 4 · 40 threads

__global__ void atomics_of_words(unsigned* words, int* y) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicSub(&words[0], 2u);
  atomicSub(reinterpret_cast<int*>(words) + 1, 3);
  atomicXor(&words[2], i);
  y[i] = static_cast<int>(atomicInc(&words[3], 6));
  y[160 + i] = static_cast<int>(atomicDec(&words[4], 6));
  atomicExch(reinterpret_cast<float*>(words) + 5, 1.5f);
  atomicMin(reinterpret_cast<int*>(words) + 6, -static_cast<int>(i));
  atomicXor(reinterpret_cast<int*>(words) + 7, 1 << i % 31);
}
bool run_atomics_of_words(const Memory& m) {
  auto* y = reinterpret_cast<int*>(m.y);
  launch(atomics_of_words, 4, 40, 0, m.words, y);
  unsigned bits = 0;
  for (int i = 0; i < 160; ++i) bits ^= 1u << i % 31;
  const unsigned expected[] = {0u - 320, 0u - 480, 0, 160 % 7, 1, 0x3fc00000, 0u - 159, bits};
  int ups[7] = {}, downs[7] = {};
  for (int i = 0; i < 320; ++i)
    if (y[i] < 0 || y[i] > 6) return false;
  for (int i = 0; i < 160; ++i) ++ups[y[i]], ++downs[y[160 + i]];
  // 160 = 22 · 7 + 6: up goes 0 1 … 6 0 …, down 0 6 … 1 0 …
  return equal(m.words, 8, [&](int i) { return expected[i]; }) &&
         equal(ups, 7, [](int i) { return i < 6 ? 23 : 22; }) &&
         equal(downs, 7, [](int i) { return i == 1 ? 22 : 23; });
}

/// What lies above the bound starts again.
__global__ void bounds_of_atomics(unsigned* words) {
  words[0] = 9;
  words[1] = 9;
  words[2] = atomicInc(&words[0], 6);
  words[3] = atomicDec(&words[1], 6);
  words[4] = atomicSub(&words[0], 1u);
  words[5] = static_cast<unsigned>(atomicCAS(reinterpret_cast<int*>(words), -1, 5));
}
bool run_bounds_of_atomics(const Memory& m) {
  launch(bounds_of_atomics, 1, 1, 0, m.words);
  const unsigned expected[] = {5, 6, 9, 9, 0, ~0u};
  return equal(m.words, 6, [&](int i) { return expected[i]; });
}

__global__ void atomics_of_8_bytes(Word* words, double* y) {
  const Word i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(&words[0], i << 32);
  atomicMax(&words[1], i << 33);
  atomicMin(&words[2], ~(i << 33));
  atomicOr(&words[3], 1ull << i % 50);
  atomicAnd(&words[4], ~(1ull << i % 50));
  atomicXor(&words[5], i << 40);
  atomicExch(&words[6], 1ull << 50);
  atomicMax(reinterpret_cast<long long*>(&words[7]), -static_cast<long long>(i));
  atomicMin(reinterpret_cast<long long*>(&words[8]), -static_cast<long long>(i));
  for (Word old = words[9] * 0, seen; (seen = atomicCAS(&words[10], old, old + (1ull << 40))) != old;) old = seen;
  atomicAdd(y, 0x1p-30);
}
bool run_atomics_of_8_bytes(const Memory& m) {
  auto* words = reinterpret_cast<Word*>(m.words);
  auto* y = reinterpret_cast<double*>(m.x);
  words[2] = ~0ull;
  words[4] = ~0ull;
  words[7] = ~0ull << 40;
  y[0] = 1e6;
  launch(atomics_of_8_bytes, 4, 40, 0, words, y);
  const Word ones = (1ull << 50) - 1;
  const Word expected[] = {(160 * 159 / 2ull) << 32,
                           159ull << 33,
                           ~(159ull << 33),
                           ones,
                           ~ones,
                           0,
                           1ull << 50,
                           0,
                           0ull - 159,
                           0,
                           160ull << 40};
  for (int i = 0; i < 11; ++i)
    if (words[i] != expected[i]) return std::printf("word %d is %llx, not %llx\n", i, words[i], expected[i]), false;
  return y[0] == 1e6 + 160 * 0x1p-30;
}

// ---- memory

__global__ void loads_and_stores(const float* x, float* y) {
  const int i = threadIdx.x;
  const float4 four = __ldg(reinterpret_cast<const float4*>(x) + i);
  __stcg(y + 7 * i, __ldcg(x + i));
  __stcs(y + 7 * i + 1, __ldcs(x + i) + __ldca(x + i));
  __stwb(y + 224 + i, __ldlu(x + i));
  __stwt(y + 7 * i + 2, four.x);
  y[7 * i + 3] = four.w;
  const float3 three = make_float3(four.y, four.z, four.w);
  *reinterpret_cast<float3*>(y + 7 * i + 4) = three;
}
bool run_loads_and_stores(const Memory& m) {
  launch(loads_and_stores, 1, 32, 0, m.x, m.y);
  return equal(m.y, 224,
               [](int n) {
                 const int i = n / 7, at[] = {i, i, 4 * i, 4 * i + 3, 4 * i + 1, 4 * i + 2, 4 * i + 3};
                 return (at[n % 7] % 13) * (n % 7 == 1 ? 2 : 1);
               }) &&
         equal(m.y + 224, 32, [](int i) { return i % 13; });
}

struct Odd {
  char bytes[7];
};

/// Copies of an odd size, into registers, and from them.
__global__ void copies(const float* x, float* y, unsigned* words) {
  struct Smem {
    float x[64];
  };
  Smem& sm = ptx::dynamic_smem<Smem>();
  if (threadIdx.x == 0) {
    memcpy(sm.x, x, 32 * sizeof(float));
    std::memcpy(sm.x + 32, x + 32, 32 * sizeof(float));
    memset(words, 0xab, 6);
    auto* bytes = reinterpret_cast<char*>(words + 8);
    Odd odd;
    for (int i = 0; i < 7; ++i) odd.bytes[i] = static_cast<char>(i + 1);
    memcpy(bytes + 1, &odd, sizeof odd);
    memcpy(bytes + 3, &odd, sizeof odd);
  }
  __syncthreads();
  float number;
  const unsigned bits = 0x3f800000u + threadIdx.x;
  memcpy(&number, &bits, sizeof number);
  y[threadIdx.x] = sm.x[63 - threadIdx.x] + number;
  memset(y - 1, 0, 0);  // nothing, nowhere
}
bool run_copies(const Memory& m) {
  launch(copies, 1, 64, 256, m.x, m.y, m.words);
  const auto* bytes = reinterpret_cast<const unsigned char*>(m.words + 8);
  const int expected[] = {0, 1, 2, 1, 2, 3, 4, 5, 6, 7, 0};
  return m.words[0] == 0xabababab && m.words[1] == 0xabab && equal(bytes, 11, [&](int i) { return expected[i]; }) &&
         equal(m.y, 64,
               [](int i) { return static_cast<float>((63 - i) % 13) + (1 + static_cast<float>(i) * 0x1p-23f); });
}

__device__ __noinline__ float3 three_of(float x) { return make_float3(x, x + 1, x + 2); }

template <class T>
__global__ void one_vector(const T* x, T* y) {
  y[threadIdx.x] = x[threadIdx.x];  // @one_access
}
template <class... Types>
bool each_once(const Memory& m) {
  bool right = true;
  const auto once = [&](auto* as, std::size_t bytes) {
    using T = std::remove_pointer_t<decltype(as)>;
    launch(one_vector<T>, 1, 32, 0, reinterpret_cast<const T*>(m.x), reinterpret_cast<T*>(m.y));
    right = right && sizeof(T) == bytes && alignof(T) == bytes && std::memcmp(m.x, m.y, 32 * bytes) == 0;
  };
  std::size_t i = 0;
  const std::size_t sizes[] = {2, 2, 4, 4, 4, 4, 8, 8, 8, 8, 16, 16, 8, 16, 16, 16, 16, 2, 4, 2, 4};
  static_assert(sizeof...(Types) == sizeof sizes / sizeof sizes[0]);
  (once(static_cast<Types*>(nullptr), sizes[i++]), ...);
  return right;
}
constexpr int vector_types = 21;
constexpr auto run_vectors =
    each_once<char2, uchar2, char4, uchar4, short2, ushort2, short4, ushort4, int2, uint2, int4, uint4, float2, float4,
              double2, longlong2, ulonglong2, half, half2, __nv_bfloat16, __nv_bfloat162>;

__global__ void threes(float* y, int* z) {
  auto* triples = reinterpret_cast<float3*>(y);
  triples[threadIdx.x] = three_of(static_cast<float>(threadIdx.x));
  __syncthreads();
  const float3 other = triples[31 - threadIdx.x];
  const int3 i = make_int3(1, 2, static_cast<int>(other.z));
  const uint3 u = threadIdx;
  const dim3 d = u;
  z[threadIdx.x] = i.z * static_cast<int>(d.y + 1) + static_cast<int>(u.x);
}
bool run_threes(const Memory& m) {
  auto* z = reinterpret_cast<int*>(m.words);
  launch(threes, 1, 32, 0, m.y, z);
  return equal(z, 32, [](int) { return 33; });
}

__global__ void message(const float* x, float* y, volatile unsigned* flag) {
  if (blockIdx.x == 0) {
    y[0] = x[5];
    __threadfence_system();
    *flag = 1;
  } else {
    while (*flag == 0) {
    }
    __threadfence_system();
    y[1] = y[0] + 1;
  }
}
bool run_message(const Memory& m) {
  launch(message, 2, 1, 0, m.x, m.y, static_cast<volatile unsigned*>(m.words));
  return m.y[1] == 6;
}

__global__ void message_within_a_block(float* y) {
  struct Smem {
    float x;
    unsigned flag;
  };
  Smem& sm = ptx::dynamic_smem<Smem>();
  if (threadIdx.x == 0) sm.flag = 0;
  __syncthreads();
  if (threadIdx.x == 0) {
    sm.x = 3;
    __threadfence_block();
    atomicExch(&sm.flag, 1u);
  } else if (threadIdx.x == 32) {
    while (atomicAdd(&sm.flag, 0u) == 0) {
    }
    __threadfence_block();
    y[0] = sm.x;
  }
}
bool run_message_within_a_block(const Memory& m) {
  launch(message_within_a_block, 1, 64, 8, m.y);
  return m.y[0] == 3;
}

/// What holds is silent.
__global__ void asserts(float* y) {
  assert(blockDim.x == 32);
  if (threadIdx.x > 31) __trap();
  y[threadIdx.x] = 1;
}
bool run_asserts(const Memory& m) {
  launch(asserts, 1, 32, 0, m.y);
  return equal(m.y, 32, [](int) { return 1; });
}

constexpr Right right[] = {
    {"expressions", 75, run_expressions},
    {"halves that change", 75, run_change_halves},
    {"shuffles", 75, run_shuffles},
    {"matches", 75, run_matches},
    {"reductions", 80, run_reductions},
    {"aggregated", 75, run_aggregated},
    {"clocks", 75, run_clocks},
    {"atomics of words", 75, run_atomics_of_words},
    {"bounds of atomics", 75, run_bounds_of_atomics},
    {"atomics of 8 bytes", 75, run_atomics_of_8_bytes},
    {"loads and stores", 75, run_loads_and_stores},
    {"copies", 75, run_copies},
    {"threes", 75, run_threes},
    {"message", 75, run_message},
    {"message within a block", 75, run_message_within_a_block},
    {"asserts", 75, run_asserts},
};

// ---- wrong ones

__global__ void copied_too_early(const int* A, int* B) {
  struct Smem {
    int x[64];
  };
  Smem& sm = ptx::dynamic_smem<Smem>();
  sm.x[threadIdx.x] = 0;
  __syncthreads();
  sm.x[threadIdx.x] = A[threadIdx.x];                       // @put
  if (threadIdx.x == 0) memcpy(B, sm.x, 64 * sizeof(int));  // @copied_too_early
}
__global__ void copied_over(const int* A, int* B) {
  if (threadIdx.x == 0) std::memcpy(B, A, 128);  // @copied_over
  if (threadIdx.x == 32) B[31] = 1;              // @over
}
__global__ void moved_too_early(int* A) {
#ifndef __CUDACC__                                  // which has no memmove in kernels
  if (threadIdx.x % 32 == 0) memmove(A + 1, A, 8);  // @moved_too_early
#endif
}
__global__ void set_too_far(int* A) {
  memset(A + 1020, 0, 5 * sizeof(int));  // @set_too_far
}
__global__ void copied_unwritten(const int* U, int* B) {
  if (threadIdx.x == 0) memcpy(B, U, 8);  // @copied_unwritten
}
__global__ void three_at_once(int* A) {
  auto* triples = reinterpret_cast<float3*>(A);
  triples[threadIdx.x % 63] = three_of(1);  // @three_at_once
}
__global__ void half_at_once(int* A) {
  auto* halves = reinterpret_cast<half*>(A);
  halves[threadIdx.x / 33] = __hadd(half(1.f), half(2.f));  // @half_at_once
}
__global__ void three_off(int* A) {
  *reinterpret_cast<float3*>(reinterpret_cast<char*>(A) + 2) = make_float3(1, 2, 3);  // @three_off
}
__global__ void double_off(int* A) {
  *reinterpret_cast<double2*>(A + 2) = make_double2(1, 2);  // @double_off
}
__global__ void bytes_off(int* A) {
  uchar4 four = *reinterpret_cast<const uchar4*>(reinterpret_cast<char*>(A) + 2);  // @bytes_off
  A[0] = four.x;
}
__global__ void atomic_off(int* A) {
  atomicAdd(reinterpret_cast<Word*>(A + 1), 1ull);  // @atomic_off
}
__global__ void trapped(int* A) {
  if (A[threadIdx.x] == 0 && threadIdx.x == 3) __trap();  // @trapped
}
__global__ void asserted(int* A) {
  assert(A[threadIdx.x] == 1);  // @asserted
}
__global__ void reduced(unsigned* A) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  A[threadIdx.x] = __reduce_add_sync(0xffffffff, 1u);  // @reduced
#endif
}
__global__ void matched_in_a_branch(unsigned* A) {
  if (threadIdx.x < 16) A[threadIdx.x] = __match_any_sync(0xffffffff, 1);  // @matched
  __syncthreads();
}
__global__ void shuffled_from_outside(int* A) {
  if (threadIdx.x < 16) A[threadIdx.x] = static_cast<int>(__shfl_sync(0xffffu, 1.5, 20));  // @shuffled
}

constexpr Wrong wrong[] = {
    {"a copy before the barrier", 75, "race", "of shared memory; @copied_too_early; @put",
     [](const Tensors& t) { launch(copied_too_early, 1, 64, 256, t.A, t.B); }},
    {"a copy over what another warp writes", 75, "race", "B, byte; @copied_over; @over",
     [](const Tensors& t) { launch(copied_over, 1, 64, 0, t.A, t.B); }},
    {"two warps move the same", 75, "race", "of A, byte; @moved_too_early",
     [](const Tensors& t) { launch(moved_too_early, 1, 64, 0, t.A); }},
    {"memset behind the end", 75, "bounds", "write of 20 bytes; @set_too_far; 4 bytes behind the end of A (4096 bytes)",
     [](const Tensors& t) { launch(set_too_far, 1, 1, 0, t.A); }},
    {"a copy of what nobody wrote", 75, "uninitialised", "read of 8 bytes from U; @copied_unwritten",
     [](const Tensors& t) { launch(copied_unwritten, 1, 1, 0, t.U, t.B); }},
    {"a float3 that a function returns", 75, "race", "write of A, byte; @three_at_once",
     [](const Tensors& t) { launch(three_at_once, 1, 64, 0, t.A); }},
    {"a half that a function returns", 75, "race", "write of A, byte; @half_at_once",
     [](const Tensors& t) { launch(half_at_once, 1, 33, 0, t.A); }},
    {"a float3 at 2 bytes", 75, "alignment", "write of 4 bytes; no multiple of 4; @three_off",
     [](const Tensors& t) { launch(three_off, 1, 1, 0, t.A); }},
    {"a double2 at 8 bytes", 75, "alignment", "write of 16 bytes; no multiple of 16; @double_off",
     [](const Tensors& t) { launch(double_off, 1, 1, 0, t.A); }},
    {"a uchar4 at 2 bytes", 75, "alignment", "read of 4 bytes; no multiple of 4; @bytes_off",
     [](const Tensors& t) { launch(bytes_off, 1, 1, 0, t.A); }},
    {"an atomic of 8 bytes at 4", 75, "alignment", "atomic of 8 bytes; no multiple of 8; @atomic_off",
     [](const Tensors& t) { launch(atomic_off, 1, 1, 0, t.A); }},
    {"__trap", 75, "trap", "__trap() by thread 3; @trapped", [](const Tensors& t) { launch(trapped, 1, 32, 0, t.A); }},
    {"assert", 75, "trap", "assert(A[threadIdx.x] == 1) by thread 0; @asserted",
     [](const Tensors& t) { launch(asserted, 1, 32, 0, t.A); }},
    {"a reduction on Turing", 75, "architecture", "redux.sync.add; needs sm_80; @reduced",
     [](const Tensors& t) { launch(reduced, 1, 32, 0, reinterpret_cast<unsigned*>(t.A)); }},
    {"a match in a branch", 75, "divergence", "match.any.sync.b32; @matched",
     [](const Tensors& t) { launch(matched_in_a_branch, 1, 32, 0, reinterpret_cast<unsigned*>(t.A)); }},
    {"8 bytes of a lane that takes no part", 75, "shuffle", "takes the value of lane 20; @shuffled",
     [](const Tensors& t) { launch(shuffled_from_outside, 1, 32, 0, t.A); }},
};

}  // namespace

extern "C" __attribute__((visibility("default")))
const LanguageKernels flash_language = {{right, sizeof right / sizeof right[0]},
                                        {wrong, sizeof wrong / sizeof wrong[0]},
                                        {"vectors", 75, run_vectors},
                                        vector_types};

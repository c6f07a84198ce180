// One kernel for each instruction of cuda/ptx, and for what CUDA spells itself where the result is not obvious: random
// operands in, results out, nothing between. The table at the end says how close a GPU and the virtual GPU must come.
#include "cuda/ptx/ptx.hpp"
#include "tests/conformance/case.hpp"
#include "tests/conformance/inputs.hpp"

namespace ptx = flash::ptx;
using namespace flash::conformance;

// Code for older GPUs must not hold what they lack.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#define FLASH_SM80 0
#else
#define FLASH_SM80 1
#endif

namespace {

/// A float's bits, or a float from its bits.
__device__ __forceinline__ Word bits(float x) { return __float_as_uint(x); }
__device__ __forceinline__ float number(Word x) { return __uint_as_float(x); }

/// The CTA's part of `in` or `out`.
template <class T>
__device__ __forceinline__ T* part(T* words, int of_cta) {
  return words + blockIdx.x * static_cast<unsigned>(of_cta);
}

// ---- ldmatrix: in 32 rows of 16 bytes, then the number of the row that each lane points at

struct Rows {
  alignas(16) Word word[32][4];
};

template <int Matrices, bool Transposed>
__global__ void ldmatrix(const Word* in, Word* out) {
  in = part(in, 32 * 5), out = part(out, 32 * Matrices);
  Rows& rows = ptx::dynamic_smem<Rows>();
  const int lane = threadIdx.x;
  for (int i = 0; i < 4; ++i) rows.word[lane][i] = in[4 * lane + i];
  __syncwarp();
  const Word* row = rows.word[in[128 + lane]];
  Word r[Matrices];
  if constexpr (Matrices == 4 && !Transposed) ptx::ldmatrix_x4(r, row);
  if constexpr (Matrices == 2 && !Transposed) ptx::ldmatrix_x2(r, row);
  if constexpr (Matrices == 1 && !Transposed) ptx::ldmatrix_x1(r, row);
  if constexpr (Matrices == 4 && Transposed) ptx::ldmatrix_x4_trans(r, row);
  if constexpr (Matrices == 2 && Transposed) ptx::ldmatrix_x2_trans(r, row);
  if constexpr (Matrices == 1 && Transposed) ptx::ldmatrix_x1_trans(r, row);
  for (int m = 0; m < Matrices; ++m) out[lane * Matrices + m] = r[m];
}

// ---- mma.sync: in the registers of A, B and C of each lane, one lane after the other

template <int K, Type type>
__global__ void mma(const Word* in, Word* out) {
#if FLASH_SM80
  constexpr bool here = true;
#else
  constexpr bool here = K == 8 && type == Type::f16;
#endif
  if constexpr (here) {
    constexpr int as = K / 4, bs = K / 8;
    const int lane = threadIdx.x;
    in = part(in, 32 * (as + bs + 4)) + lane * (as + bs + 4), out = part(out, 128);
    Word a[as], b[bs];
    float d[4];
    for (int i = 0; i < as; ++i) a[i] = in[i];
    for (int i = 0; i < bs; ++i) b[i] = in[as + i];
    for (int i = 0; i < 4; ++i) d[i] = number(in[as + bs + i]);
    if constexpr (K == 8 && type == Type::f16) ptx::mma_m16n8k8_f16(d, a, b[0]);
    if constexpr (K == 8 && type == Type::bf16) ptx::mma_m16n8k8_bf16(d, a, b[0]);
    if constexpr (K == 16 && type == Type::f16) ptx::mma_m16n8k16_f16(d, a, b);
    if constexpr (K == 16 && type == Type::bf16) ptx::mma_m16n8k16_bf16(d, a, b);
    for (int i = 0; i < 4; ++i) out[4 * lane + i] = bits(d[i]);
  }
}

// ---- cp.async: in what each lane copies, then how many bytes of it are read

template <int Size>
struct Landing {
  alignas(16) Word word[32][Size / 4];
};

template <int Size>
__global__ void cp_async(const Word* in, Word* out) {
#if FLASH_SM80
  constexpr int words = Size / 4;
  in = part(in, 32 * (words + 1)), out = part(out, 32 * words);
  Landing<Size>& landing = ptx::dynamic_smem<Landing<Size>>();
  const int lane = threadIdx.x;
  Word* to = landing.word[lane];
  for (int i = 0; i < words; ++i) to[i] = 0xaaaaaaaa;
  const Word* from = in + words * lane;
  const Word bytes = in[32 * words + lane];
  if constexpr (Size == 16) ptx::cp_async_16(to, from, bytes);
  if constexpr (Size == 8) ptx::cp_async_8(to, from, bytes);
  if constexpr (Size == 4) ptx::cp_async_4(to, from, bytes);
  ptx::cp_async_commit_group();
  ptx::cp_async_wait_group<0>();
  __syncthreads();  // the copies of all lanes
  for (int i = 0; i < words; ++i) out[words * lane + i] = landing.word[31 - lane][i];
#endif
}

/// Three groups and copies in none: what is read has been waited for.
__global__ void cp_async_groups(const Word* in, Word* out) {
#if FLASH_SM80
  in = part(in, 4 * 128), out = part(out, 4 * 128);
  struct Smem {
    alignas(16) Word word[4][32][4];
  };
  Smem& sm = ptx::dynamic_smem<Smem>();
  const int lane = threadIdx.x;
  for (int group = 0; group < 3; ++group) {
    ptx::cp_async_16(sm.word[group][lane], in + 128 * group + 4 * lane);
    ptx::cp_async_commit_group();
  }
  ptx::cp_async_16(sm.word[3][lane], in + 128 * 3 + 4 * lane);
  ptx::cp_async_wait_group<2>();
  for (int i = 0; i < 4; ++i) out[4 * lane + i] = sm.word[0][lane][i];
  ptx::cp_async_wait_group<1>();
  for (int i = 0; i < 4; ++i) out[128 + 4 * lane + i] = sm.word[1][lane][i];
  ptx::cp_async_wait_all();
  for (int group = 2; group < 4; ++group)
    for (int i = 0; i < 4; ++i) out[128 * group + 4 * lane + i] = sm.word[group][lane][i];
#endif
}

// ---- barriers: in a word for each of 128 threads

/// Two pairs of warps exchange their words, each behind a barrier of its own; then one pair hands its to the other.
__global__ void barriers(const Word* in, Word* out) {
  in = part(in, 128), out = part(out, 256);
  struct Smem {
    Word word[2][128];
  };
  Smem& sm = ptx::dynamic_smem<Smem>();
  const int thread = threadIdx.x, pair = thread / 64;
  sm.word[0][thread] = in[thread];
  ptx::bar_sync(1 + pair, 64);  // the pair's words are there
  const Word other = sm.word[0][64 * pair + 63 - thread % 64];
  out[thread] = other;
  if (pair == 0) {
    sm.word[1][thread] = other ^ 0x5a5a5a5a;
    ptx::bar_arrive(3, 128);  // pair 1 may read
    out[128 + thread] = 0;
  } else {
    ptx::bar_sync(3, 128);  // pair 0 has written
    out[128 + thread] = sm.word[1][(thread * 7) % 64];
  }
}

/// in: bit i of a thread's word is its predicate in round i.
__global__ void barrier_votes(const Word* in, Word* out) {
  in = part(in, 96), out = part(out, 3 * 96 * 6);
  const int thread = threadIdx.x;
  for (int round = 0; round < 6; ++round) {
    const int predicate = in[thread] >> round & 1;
    Word* to = out + (round * 96 + thread) * 3;
    to[0] = __syncthreads_count(predicate);
    to[1] = __syncthreads_or(predicate) != 0;
    to[2] = __syncthreads_and(predicate) != 0;
  }
}

/// The halves of a warp exchange words in shared memory, each behind a __syncwarp of its own.
__global__ void sync_warp(const Word* in, Word* out) {
  in = part(in, 32), out = part(out, 32);
  struct Smem {
    Word word[32];
  };
  Smem& sm = ptx::dynamic_smem<Smem>();
  const int lane = threadIdx.x;
  sm.word[lane] = in[lane];
  if (lane < 16) {
    __syncwarp(0x0000ffff);
    out[lane] = sm.word[15 - lane];
  } else {
    __syncwarp(0xffff0000);
    out[lane] = sm.word[47 - lane] + 1;
  }
}

// ---- shuffles: in, for each width and round, the value and the operand of each lane

constexpr int widths = 6, rounds = 4;

template <int kind>
__global__ void shuffle(const Word* in, Word* out) {
  in = part(in, widths * rounds * 64), out = part(out, widths * rounds * 32);
  const int lane = threadIdx.x;
  for (int w = 0; w < widths; ++w)
    for (int round = 0; round < rounds; ++round, in += 64, out += 32) {
      const Word value = in[lane];
      const int operand = static_cast<int>(in[32 + lane]), width = 1 << w;
      if constexpr (kind == 0) out[lane] = __shfl_sync(0xffffffff, value, operand, width);
      if constexpr (kind == 1) out[lane] = __shfl_up_sync(0xffffffff, value, static_cast<unsigned>(operand), width);
      if constexpr (kind == 2) out[lane] = __shfl_down_sync(0xffffffff, value, static_cast<unsigned>(operand), width);
      if constexpr (kind == 3) out[lane] = __shfl_xor_sync(0xffffffff, value, operand, width);
    }
}

/// Groups of lanes apart, in a branch and with their own mask; an fp32 and a signed value.
__global__ void shuffle_masks(const Word* in, Word* out) {
  in = part(in, 32), out = part(out, 64);
  const int lane = threadIdx.x;
  const float x = number(in[lane]);
  if (lane % 2 == 0)
    out[lane] = bits(__shfl_xor_sync(0x55555555, x, 6));
  else
    out[lane] = bits(__shfl_xor_sync(0xaaaaaaaa, x, 16));
  const int value = static_cast<int>(in[lane]);
  if (lane < 24) out[32 + lane] = static_cast<Word>(__shfl_sync(0x00ffffff, value, lane / 8 * 8 + (lane + 3) % 8));
}

// ---- votes: in a word of predicates of each lane

__global__ void votes(const Word* in, Word* out) {
  in = part(in, 32), out = part(out, 6 * 32 * 6);
  const int lane = threadIdx.x;
  for (int round = 0; round < 6; ++round) {
    const int predicate = in[lane] >> round & 1;
    Word* to = out + (round * 32 + lane) * 6;
    to[0] = __any_sync(0xffffffff, predicate) != 0;
    to[1] = __all_sync(0xffffffff, predicate) != 0;
    to[2] = __ballot_sync(0xffffffff, predicate);
    if (lane % 4 == 0) {
      to[3] = __any_sync(0x11111111, predicate) != 0;
      to[4] = __all_sync(0x11111111, predicate) != 0;
      to[5] = __ballot_sync(0x11111111, predicate);
    }
  }
}

// ---- arithmetic: in one or two words, out one or two of them, thread by thread

struct Ex2 {
  static constexpr int in = 1, out = 1;
  __device__ static void call(const Word* x, Word* y) { y[0] = bits(ptx::ex2(number(x[0]))); }
};
struct PackF16 {
  static constexpr int in = 2, out = 1;
  __device__ static void call(const Word* x, Word* y) { y[0] = ptx::pack_f16(number(x[0]), number(x[1])); }
};
struct PackBf16 {
  static constexpr int in = 2, out = 1;
  __device__ static void call(const Word* x, Word* y) {
#if FLASH_SM80
    y[0] = ptx::pack_bf16(number(x[0]), number(x[1]));
#endif
  }
};
struct UnpackF16 {
  static constexpr int in = 1, out = 2;
  __device__ static void call(const Word* x, Word* y) {
    const float2 pair = ptx::unpack_f16(x[0]);
    y[0] = bits(pair.x), y[1] = bits(pair.y);
  }
};
struct HalfConversions {
  static constexpr int in = 2, out = 4;
  __device__ static void call(const Word* x, Word* y) {
    const float2 pair = __half22float2(__floats2half2_rn(number(x[0]), number(x[1])));
    y[0] = bits(pair.x);
    y[1] = bits(pair.y);
    y[2] = bits(__half2float(__float2half_rn(number(x[0]))));
    y[3] = bits(__half2float(__float2half(number(x[1]))));
  }
};
struct Bf16Conversions {
  static constexpr int in = 1, out = 1;
  __device__ static void call(const Word* x, Word* y) {
    y[0] = bits(__bfloat162float(__float2bfloat16_rn(number(x[0]))));
  }
};
struct Bits {
  static constexpr int in = 2, out = 2;
  __device__ static void call(const Word* x, Word* y) {
    const int n = static_cast<int>(x[0]);
    y[0] = static_cast<Word>(__popc(x[0]) + 64 * __clz(n) + 4096 * __ffs(n)) ^ bits(__int_as_float(n));
    y[1] = static_cast<Word>(max(n, static_cast<int>(x[1])) ^ (min(n, static_cast<int>(x[1])) << 1)) +
           static_cast<Word>(__float_as_int(number(__ldg(x + 1))));
  }
};
struct MaxMin {
  static constexpr int in = 2, out = 2;
  __device__ static void call(const Word* x, Word* y) {
    y[0] = bits(max(number(x[0]), number(x[1])));
    y[1] = bits(min(number(x[0]), number(x[1])));
  }
};
struct Exponential {
  static constexpr int in = 1, out = 1;
  __device__ static void call(const Word* x, Word* y) { y[0] = bits(__expf(number(x[0]))); }
};
struct Fast {
  static constexpr int in = 2, out = 4;
  __device__ static void call(const Word* x, Word* y) {
    const float a = number(x[0]), b = number(x[1]);
    y[0] = bits(__logf(b + 2));
    y[1] = bits(__fdividef(a, b));
    y[2] = bits(rsqrtf(b));
    y[3] = bits(tanhf(a));
  }
};

constexpr int elements = 256;

template <class Operation>
__global__ void elementwise(const Word* in, Word* out) {
  const int i = static_cast<int>(blockIdx.x) * elements + static_cast<int>(threadIdx.x);
  Operation::call(in + Operation::in * i, out + Operation::out * i);
}

// ---- atomics: in a first value and an operand of each lane; out each lane's own location, then one of all lanes, then
// what it gave back

struct RedAddF32 {
  __device__ static Word call(Word* to, Word x) {
    ptx::red_add_f32(reinterpret_cast<float*>(to), number(x));
    return 0;
  }
};
struct AtomicAddF32 {
  __device__ static Word call(Word* to, Word x) { return bits(atomicAdd(reinterpret_cast<float*>(to), number(x))); }
};
struct RedAddF16x2 {
  __device__ static Word call(Word* to, Word x) {
    ptx::red_add_f16x2(to, x);
    return 0;
  }
};

#define FLASH_ATOMIC(NAME, FUNCTION)                                                       \
  struct NAME##Unsigned {                                                                  \
    __device__ static Word call(Word* to, Word x) { return FUNCTION(to, x); }              \
  };                                                                                       \
  struct NAME##Signed {                                                                    \
    __device__ static Word call(Word* to, Word x) {                                        \
      return static_cast<Word>(FUNCTION(reinterpret_cast<int*>(to), static_cast<int>(x))); \
    }                                                                                      \
  };
FLASH_ATOMIC(Add, atomicAdd)
FLASH_ATOMIC(Max, atomicMax)
FLASH_ATOMIC(Min, atomicMin)
FLASH_ATOMIC(Exch, atomicExch)
FLASH_ATOMIC(Or, atomicOr)
FLASH_ATOMIC(And, atomicAnd)
#undef FLASH_ATOMIC

/// Contended: all lanes work on one location, too; sums are exact there, since the operands are integers.
template <class Operation, bool Contended>
__global__ void atomics(const Word* in, Word* out) {
  in = part(in, 96), out = part(out, 65);
  const int lane = threadIdx.x;
  out[lane] = in[lane];
  out[33 + lane] = Operation::call(out + lane, in[32 + lane]);
  if constexpr (Contended) {
    if (lane == 0) out[32] = in[64];
    __syncwarp();  // the first value is there
    Operation::call(out + 32, in[64 + lane]);
  }
}

/// Exchange, if the expected value, or one near it, is there.
__global__ void compare_and_swap(const Word* in, Word* out) {
  in = part(in, 96), out = part(out, 128);
  const int lane = threadIdx.x;
  const Word expected = in[lane] + (in[32 + lane] & 1);
  out[lane] = out[32 + lane] = in[lane];
  out[64 + lane] = atomicCAS(out + lane, expected, in[64 + lane]);
  out[96 + lane] = static_cast<Word>(
      atomicCAS(reinterpret_cast<int*>(out + 32 + lane), static_cast<int>(expected), static_cast<int>(in[64 + lane])));
}

/// Atomic additions of fp32 in shared memory, subnormal numbers among them.
__global__ void shared_add(const Word* in, Word* out) {
  in = part(in, 64), out = part(out, 32);
  struct Smem {
    float x[32];
  };
  Smem& sm = ptx::dynamic_smem<Smem>();
  const int lane = threadIdx.x;
  sm.x[lane] = number(in[lane]);
  atomicAdd(&sm.x[lane], number(in[32 + lane]));
  out[lane] = bits(sm.x[lane]);
}

// ---- fences: CTA 0 hands its words to CTA 1 through a flag

__global__ void fences(const Word* in, Word* out) {
  const int lane = threadIdx.x;
  Word *data = out, *flag = out + 32, *copy = out + 33;
  if (blockIdx.x == 0) {
    data[lane] = in[lane];
    __syncwarp();     // all words are written
    __threadfence();  // before the flag is
    if (lane == 0) atomicExch(flag, 1u);
  } else {
    if (lane == 0)
      while (atomicAdd(flag, 0u) == 0) __nanosleep(50);
    __threadfence();  // the words after the flag
    __syncwarp();     // of all lanes
    copy[lane] = data[31 - lane];
  }
}

// ---- the table

using Draw = void(std::uint64_t seed, Word* in, std::size_t words);

template <void (*K)(const Word*, Word*), unsigned Ctas, unsigned Threads, std::size_t Smem>
void launch(const Word* in, Word* out) {
  ptx::launch("a conformance kernel", K, dim3(Ctas), dim3(Threads), Smem, nullptr, in, out);
}

constexpr Agreement exact = Agreement::bits;
constexpr const char* moved = "moves bits";

template <int Matrices, bool Transposed>
constexpr Case ldmatrix_case(const char* name) {
  return {name,          75,    4, 32,    sizeof(Rows), 160,
          32 * Matrices, exact, 0, moved, draw_rows,    launch<ldmatrix<Matrices, Transposed>, 4, 32, sizeof(Rows)>};
}

/// Silicon adds K products and C after it has aligned and cut them to the largest, the virtual GPU one after the other
/// with a rounding each: both are within 2⁻²³ · Σ|terms| for each of the K + 1 terms and one more for the result.
template <int K, Type type, Operands operands>
constexpr Case mma_case(const char* name) {
  constexpr bool integers = operands == Operands::integers;
  return {name,
          K == 8 && type == Type::f16 ? 75 : 80,
          4,
          32,
          0,
          32 * (K / 4 + K / 8 + 4),
          128,
          integers ? exact : Agreement::products,
          integers ? 0 : (K + 2) * 0x1p-23,
          integers ? "integers below 2^24" : "K + 2 roundings to fp32, in an order of the hardware's own",
          draw_mma<K, type, operands>,
          launch<mma<K, type>, 4, 32, 0>};
}

template <class Operation, unsigned Ctas>
constexpr Case elementwise_case(const char* name, int arch, Draw* draw, Agreement agreement, double bound,
                                const char* reason) {
  return {name,
          arch,
          Ctas,
          elements,
          0,
          elements * Operation::in,
          elements * Operation::out,
          agreement,
          bound,
          reason,
          draw,
          launch<elementwise<Operation>, Ctas, elements, 0>};
}

template <class Operation, bool Contended = true>
constexpr Case atomic_case(const char* name, Draw* draw, Agreement agreement, const char* reason) {
  return {name, 75, 1, 32, 0, 96, 65, agreement, 0, reason, draw, launch<atomics<Operation, Contended>, 1, 32, 0>};
}

template <int kind>
constexpr Case shuffle_case(const char* name) {
  constexpr std::size_t in = widths * rounds * 64, out = widths * rounds * 32;
  return {name, 75, 1, 32, 0, in, out, exact, 0, moved, draw_shuffles, launch<shuffle<kind>, 1, 32, 0>};
}

template <int Size>
constexpr Case cp_async_case(const char* name) {
  constexpr std::size_t smem = sizeof(Landing<Size>);
  return {name,
          80,
          4,
          32,
          smem,
          32 * (Size / 4 + 1),
          32 * Size / 4,
          exact,
          0,
          moved,
          draw_copies<Size>,
          launch<cp_async<Size>, 4, 32, smem>};
}

using O = Operands;
constexpr const char* sums = "one rounding, or sums of integers";
constexpr const char* rounded = "one rounding to nearest even";

constexpr Case cases[] = {
    ldmatrix_case<4, false>("ldmatrix_x4"),
    ldmatrix_case<2, false>("ldmatrix_x2"),
    ldmatrix_case<1, false>("ldmatrix_x1"),
    ldmatrix_case<4, true>("ldmatrix_x4_trans"),
    ldmatrix_case<2, true>("ldmatrix_x2_trans"),
    ldmatrix_case<1, true>("ldmatrix_x1_trans"),
    mma_case<8, Type::f16, O::integers>("mma_m16n8k8_f16.integers"),
    mma_case<8, Type::f16, O::ordinary>("mma_m16n8k8_f16"),
    mma_case<8, Type::f16, O::special>("mma_m16n8k8_f16.special"),
    mma_case<8, Type::bf16, O::integers>("mma_m16n8k8_bf16.integers"),
    mma_case<8, Type::bf16, O::ordinary>("mma_m16n8k8_bf16"),
    mma_case<8, Type::bf16, O::special>("mma_m16n8k8_bf16.special"),
    mma_case<16, Type::f16, O::integers>("mma_m16n8k16_f16.integers"),
    mma_case<16, Type::f16, O::ordinary>("mma_m16n8k16_f16"),
    mma_case<16, Type::f16, O::special>("mma_m16n8k16_f16.special"),
    mma_case<16, Type::bf16, O::integers>("mma_m16n8k16_bf16.integers"),
    mma_case<16, Type::bf16, O::ordinary>("mma_m16n8k16_bf16"),
    mma_case<16, Type::bf16, O::special>("mma_m16n8k16_bf16.special"),
    cp_async_case<16>("cp_async_16"),
    cp_async_case<8>("cp_async_8"),
    cp_async_case<4>("cp_async_4"),
    {"cp_async_groups", 80, 2, 32, 2048, 512, 512, exact, 0, moved, draw_words, launch<cp_async_groups, 2, 32, 2048>},
    {"barriers", 75, 2, 128, 1024, 128, 256, exact, 0, moved, draw_words, launch<barriers, 2, 128, 1024>},
    {"barrier_votes", 75, 2, 96, 0, 96, 3 * 96 * 6, exact, 0, "counts", draw_predicates<96>,
     launch<barrier_votes, 2, 96, 0>},
    {"sync_warp", 75, 2, 32, 128, 32, 32, exact, 0, moved, draw_words, launch<sync_warp, 2, 32, 128>},
    shuffle_case<0>("shuffle_from_lane"),
    shuffle_case<1>("shuffle_up"),
    shuffle_case<2>("shuffle_down"),
    shuffle_case<3>("shuffle_exclusive_or"),
    {"shuffle_masks", 75, 2, 32, 0, 32, 64, exact, 0, moved, draw_words, launch<shuffle_masks, 2, 32, 0>},
    {"votes", 75, 2, 32, 0, 32, 6 * 32 * 6, exact, 0, "counts", draw_predicates<32>, launch<votes, 2, 32, 0>},
    elementwise_case<Ex2, 4>("ex2", 75, draw_exponents, Agreement::ulps, 3,
                             "2 ulp of the special function unit and 1 of the virtual GPU"),
    elementwise_case<PackF16, 2>("pack_f16", 75, draw_to_round, exact, 0, rounded),
    elementwise_case<PackBf16, 2>("pack_bf16", 80, draw_to_round, exact, 0, rounded),
    elementwise_case<UnpackF16, 2>("unpack_f16", 75, draw_words, Agreement::floats, 0, moved),
    elementwise_case<HalfConversions, 1>("half_conversions", 75, draw_to_round, Agreement::floats, 0, rounded),
    elementwise_case<Bf16Conversions, 1>("bf16_conversions", 75, draw_to_round, Agreement::floats, 0, rounded),
    elementwise_case<Bits, 1>("bits", 75, draw_words, exact, 0, moved),
    elementwise_case<MaxMin, 1>("max_min", 75, draw_floats, Agreement::floats, 0, moved),
    elementwise_case<Exponential, 1>("expf", 75, draw_moderate, Agreement::ulps, 24,
                                     "CUDA's 2 + 1.173 |x| ulp up to |x| = 16, and the virtual GPU's 1"),
    elementwise_case<Fast, 1>("fast_functions", 75, draw_moderate, Agreement::ulps, 4,
                              "CUDA's 3 ulp (__logf from 2 on) and the virtual GPU's 1"),
    atomic_case<RedAddF32>("red_add_f32", draw_additions<false>, Agreement::floats, sums),
    atomic_case<AtomicAddF32>("atomic_add_f32", draw_additions<false>, Agreement::floats, sums),
    atomic_case<RedAddF32, false>("red_add_f32.subnormal", draw_subnormal, Agreement::floats, rounded),
    atomic_case<RedAddF16x2>("red_add_f16x2", draw_additions<true>, exact, sums),
    {"shared_add_f32", 75, 1, 32, 128, 64, 32, Agreement::floats, 0, rounded, draw_subnormal,
     launch<shared_add, 1, 32, 128>},
    atomic_case<AddUnsigned>("atomic_add_unsigned", draw_words, exact, moved),
    atomic_case<AddSigned>("atomic_add_signed", draw_words, exact, moved),
    atomic_case<MaxUnsigned>("atomic_max_unsigned", draw_words, exact, moved),
    atomic_case<MaxSigned>("atomic_max_signed", draw_words, exact, moved),
    atomic_case<MinUnsigned>("atomic_min_unsigned", draw_words, exact, moved),
    atomic_case<MinSigned>("atomic_min_signed", draw_words, exact, moved),
    atomic_case<ExchUnsigned, false>("atomic_exch_unsigned", draw_words, exact, moved),
    atomic_case<ExchSigned, false>("atomic_exch_signed", draw_words, exact, moved),
    atomic_case<OrUnsigned>("atomic_or_unsigned", draw_words, exact, moved),
    atomic_case<OrSigned>("atomic_or_signed", draw_words, exact, moved),
    atomic_case<AndUnsigned>("atomic_and_unsigned", draw_words, exact, moved),
    atomic_case<AndSigned>("atomic_and_signed", draw_words, exact, moved),
    {"atomic_cas", 75, 1, 32, 0, 96, 128, exact, 0, moved, draw_words, launch<compare_and_swap, 1, 32, 0>},
    {"fences", 75, 2, 32, 0, 32, 33, exact, 0, moved, draw_words, launch<fences, 2, 32, 0>},
};

}  // namespace

extern "C" __attribute__((visibility("default"))) const Cases flash_cases = {cases, sizeof cases / sizeof cases[0]};

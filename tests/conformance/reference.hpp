// What each conformance case must give, computed one scalar after the other from the PTX ISA's and the CUDA C++
// Programming Guide's words alone: nothing here comes from cuda/ptx or sim/gpu.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "tests/conformance/case.hpp"

namespace flash::conformance {

/// Expected words of one CTA and, for sums of products, Σ|terms| of each.
struct Expected {
  std::vector<Word> words;
  std::vector<double> terms;
};

namespace reference {

inline float number(Word x) { return std::bit_cast<float>(x); }
inline Word bits(float x) { return std::bit_cast<Word>(x); }

// ---- 16-bit formats, through double

/// The value of a number of `e` exponent and `f` fraction bits.
inline double decoded(Word x, int e, int f) {
  const bool negative = x >> (e + f) & 1;
  const int exponent = static_cast<int>(x >> f & ((1u << e) - 1)), bias = (1 << (e - 1)) - 1;
  const double fraction = x & ((1u << f) - 1);
  double size = 0;
  if (exponent == (1 << e) - 1)
    size = fraction ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
  else if (exponent == 0)
    size = std::ldexp(fraction, 1 - bias - f);
  else
    size = std::ldexp(fraction + (1 << f), exponent - bias - f);
  return negative ? -size : size;
}

/// Rounded to nearest even; every NaN is 0x7fff.
inline Word encoded(double x, int e, int f) {
  if (std::isnan(x)) return 0x7fff;
  const Word sign = static_cast<Word>(std::signbit(x)) << (e + f), infinity = ((1u << e) - 1) << f;
  const double size = std::abs(x);
  const int bias = (1 << (e - 1)) - 1;
  if (std::isinf(x)) return sign | infinity;
  if (size == 0) return sign;
  int exponent = std::max(std::ilogb(size), 1 - bias);
  const double steps = std::nearbyint(std::ldexp(size, f - exponent));  // ties to even
  const double limit = std::ldexp(2 - std::ldexp(1, -f), bias);
  const double value = std::ldexp(steps, exponent - f);
  if (value > limit) return sign | infinity;
  if (value < std::ldexp(1, 1 - bias)) return sign | static_cast<Word>(steps);
  exponent = std::ilogb(value);
  return sign | static_cast<Word>(exponent + bias) << f |
         (static_cast<Word>(std::ldexp(value, f - exponent)) & ((1u << f) - 1));
}

inline double from_f16(Word x) { return decoded(x & 0xffff, 5, 10); }
inline double from_bf16(Word x) { return decoded(x & 0xffff, 8, 7); }
inline Word to_f16(double x) { return encoded(x, 5, 10); }
inline Word to_bf16(double x) { return encoded(x, 8, 7); }

// ---- ldmatrix (PTX ISA, "ldmatrix"): thread t receives row t / 4, elements 2 (t % 4) and the next

inline Expected ldmatrix(const Word* in, int matrices, bool transposed) {
  const auto element = [&](int matrix, int row, int column) {
    const Word* from = in + 4 * in[128 + 8 * matrix + row];
    return from[column / 2] >> (16 * (column % 2)) & 0xffff;
  };
  Expected e{std::vector<Word>(static_cast<std::size_t>(32 * matrices)), {}};
  for (int thread = 0; thread < 32; ++thread)
    for (int m = 0; m < matrices; ++m) {
      const int row = thread / 4, first = thread % 4 * 2;
      const Word low = transposed ? element(m, first, row) : element(m, row, first);
      const Word high = transposed ? element(m, first + 1, row) : element(m, row, first + 1);
      e.words[static_cast<std::size_t>(thread * matrices + m)] = low | high << 16;
    }
  return e;
}

// ---- mma.sync (PTX ISA, "Matrix fragments for mma.m16n8k8" and "… mma.m16n8k16")

struct Place {
  int row, column;
  bool operator==(const Place&) const = default;
};

/// Element i of a thread's A: a0, a1 in the first register and so on.
inline Place a_place(int thread, int i) {
  const int group = thread >> 2, in_group = thread & 3;
  const bool lower = i == 2 || i == 3 || i == 6 || i == 7;  // rows 8 to 15
  return {lower ? group + 8 : group, in_group * 2 + (i & 1) + (i >= 4 ? 8 : 0)};
}
inline Place b_place(int thread, int i) {
  const int group = thread >> 2, in_group = thread & 3;
  return {in_group * 2 + (i & 1) + (i >= 2 ? 8 : 0), group};
}
inline Place c_place(int thread, int i) {
  const int group = thread >> 2, in_group = thread & 3;
  return {i < 2 ? group : group + 8, in_group * 2 + (i & 1)};
}

struct MmaOperands {
  std::vector<std::vector<double>> a, b, c;  ///< [16,K] [K,8] [16,8]
};

inline MmaOperands mma_operands(const Word* in, int k, bool half) {
  MmaOperands o{std::vector(16, std::vector<double>(static_cast<std::size_t>(k))),
                std::vector(static_cast<std::size_t>(k), std::vector<double>(8)),
                std::vector(16, std::vector<double>(8))};
  const int as = k / 4, bs = k / 8;
  const auto value = [&](Word pair, int i) { return half ? from_f16(pair >> (16 * i)) : from_bf16(pair >> (16 * i)); };
  for (int thread = 0; thread < 32; ++thread, in += as + bs + 4) {
    for (int i = 0; i < 2 * as; ++i) {
      const Place p = a_place(thread, i);
      o.a[static_cast<std::size_t>(p.row)][static_cast<std::size_t>(p.column)] = value(in[i / 2], i % 2);
    }
    for (int i = 0; i < 2 * bs; ++i) {
      const Place p = b_place(thread, i);
      o.b[static_cast<std::size_t>(p.row)][static_cast<std::size_t>(p.column)] = value(in[as + i / 2], i % 2);
    }
    for (int i = 0; i < 4; ++i) {
      const Place p = c_place(thread, i);
      o.c[static_cast<std::size_t>(p.row)][static_cast<std::size_t>(p.column)] = number(in[as + bs + i]);
    }
  }
  return o;
}

inline Expected mma_result(const MmaOperands& o) {
  Expected e{std::vector<Word>(128), std::vector<double>(128)};
  for (int thread = 0; thread < 32; ++thread)
    for (int i = 0; i < 4; ++i) {
      const Place p = c_place(thread, i);
      const auto row = static_cast<std::size_t>(p.row), column = static_cast<std::size_t>(p.column);
      double sum = o.c[row][column], terms = std::abs(sum);
      for (std::size_t k = 0; k < o.b.size(); ++k) {
        sum += o.a[row][k] * o.b[k][column];
        terms += std::abs(o.a[row][k] * o.b[k][column]);
      }
      e.words[static_cast<std::size_t>(4 * thread + i)] = bits(static_cast<float>(sum));
      e.terms[static_cast<std::size_t>(4 * thread + i)] = terms;
    }
  return e;
}

// ---- cp.async: `bytes` of the source, then zeros

inline Expected cp_async(const Word* in, std::size_t size) {
  Expected e{std::vector<Word>(8 * size), {}};
  auto* to = reinterpret_cast<unsigned char*>(e.words.data());
  const auto* from = reinterpret_cast<const unsigned char*>(in);
  for (std::size_t lane = 0; lane < 32; ++lane)
    std::copy_n(from + size * lane, in[8 * size + lane], to + size * (31 - lane));
  return e;
}

// ---- barriers

inline Expected barriers(const Word* in) {
  Expected e{std::vector<Word>(256), {}};
  for (std::size_t pair = 0; pair < 2; ++pair)
    for (std::size_t i = 0; i < 64; ++i) e.words[64 * pair + i] = in[64 * pair + 63 - i];
  for (std::size_t i = 64; i < 128; ++i) e.words[128 + i] = e.words[i * 7 % 64] ^ 0x5a5a5a5a;
  return e;
}

inline Expected barrier_votes(const Word* in) {
  Expected e;
  for (int round = 0; round < 6; ++round) {
    Word count = 0;
    for (int i = 0; i < 96; ++i) count += in[i] >> round & 1;
    for (int i = 0; i < 96; ++i) e.words.insert(e.words.end(), {count, count > 0, count == 96});
  }
  return e;
}

inline Expected sync_warp(const Word* in) {
  Expected e{std::vector<Word>(32), {}};
  for (std::size_t i = 0; i < 16; ++i) e.words[i] = in[15 - i], e.words[16 + i] = in[31 - i] + 1;
  return e;
}

// ---- shuffles (PTX ISA, "shfl.sync", its pseudo code; CUDA gives c = (32 − width) << 8 | (up ? 0 : 31))

enum class Kind { from_lane, up, down, exclusive_or };

inline unsigned shuffle_source(Kind kind, unsigned lane, Word b, unsigned width) {
  const unsigned segment = 32 - width, clamp = kind == Kind::up ? 0 : 31, bval = b & 31;
  const unsigned max_lane = (lane & segment) | (clamp & ~segment), min_lane = lane & segment;
  const int j = kind == Kind::up             ? static_cast<int>(lane) - static_cast<int>(bval)
                : kind == Kind::down         ? static_cast<int>(lane + bval)
                : kind == Kind::exclusive_or ? static_cast<int>(lane ^ bval)
                                             : static_cast<int>(min_lane | (bval & ~segment));
  const bool in_range = kind == Kind::up ? j >= static_cast<int>(max_lane) : j <= static_cast<int>(max_lane);
  return in_range ? static_cast<unsigned>(j) : lane;
}

inline Expected shuffle(const Word* in, Kind kind, std::size_t words) {
  Expected e;
  for (unsigned i = 0; e.words.size() < words; ++i, in += 64)
    for (unsigned lane = 0; lane < 32; ++lane)
      e.words.push_back(in[shuffle_source(kind, lane, in[32 + lane], 1u << (i / 4))]);
  return e;
}

inline Expected shuffle_masks(const Word* in) {
  Expected e;
  for (unsigned lane = 0; lane < 32; ++lane) e.words.push_back(in[lane % 2 ? lane ^ 16 : lane ^ 6]);
  for (unsigned lane = 0; lane < 32; ++lane) e.words.push_back(lane < 24 ? in[lane - lane % 8 + (lane + 3) % 8] : 0);
  return e;
}

inline Expected votes(const Word* in) {
  Expected e;
  for (int round = 0; round < 6; ++round) {
    Word all = 0;
    for (unsigned lane = 0; lane < 32; ++lane) all |= (in[lane] >> round & 1) << lane;
    const Word some = all & 0x11111111;
    for (unsigned lane = 0; lane < 32; ++lane) {
      e.words.insert(e.words.end(), {all != 0, all == 0xffffffff, all});
      if (lane % 4 == 0)
        e.words.insert(e.words.end(), {some != 0, some == 0x11111111, some});
      else
        e.words.insert(e.words.end(), {0, 0, 0});
    }
  }
  return e;
}

// ---- arithmetic

/// Subnormal numbers are zeros of their sign.
inline float flushed(float x) { return std::abs(x) < 0x1p-126f ? std::copysign(0.f, x) : x; }

using Scalar = std::function<std::vector<Word>(const Word*)>;

inline Expected elementwise(const Word* in, std::size_t step, const Scalar& function) {
  Expected e;
  for (int i = 0; i < 256; ++i, in += step)
    for (const Word word : function(in)) e.words.push_back(word);
  return e;
}

inline std::vector<Word> ex2(const Word* x) {
  return {bits(flushed(static_cast<float>(std::exp2(static_cast<double>(flushed(number(*x)))))))};
}
inline std::vector<Word> integers(const Word* x) {
  const auto a = static_cast<std::int32_t>(x[0]), b = static_cast<std::int32_t>(x[1]);
  Word ones = 0, zeros = 0, first = 0;
  for (int i = 0; i < 32; ++i) ones += x[0] >> i & 1;
  while (zeros < 32 && !(x[0] >> (31 - zeros) & 1)) ++zeros;
  while (first < 32 && !(x[0] >> first & 1)) ++first;
  first = first == 32 ? 0 : first + 1;
  return {(ones + 64 * zeros + 4096 * first) ^ x[0], ((a > b ? x[0] : x[1]) ^ ((a > b ? x[1] : x[0]) << 1)) + x[1]};
}
/// CUDA's max and min of fp32 are fmaxf and fminf: a NaN gives way to a number, and −0 is below +0.
inline std::vector<Word> max_min(const Word* x) {
  const float a = number(x[0]), b = number(x[1]);
  if (std::isnan(a) || std::isnan(b)) {
    const Word other = std::isnan(a) ? x[1] : x[0];
    return {other, other};
  }
  if (a == b) return {x[0] & x[1], x[0] | x[1]};
  return {a > b ? x[0] : x[1], a > b ? x[1] : x[0]};
}
inline std::vector<Word> fast_functions(const Word* x) {
  const double a = number(x[0]), b = number(x[1]);
  const auto rounded = [](double y) { return bits(static_cast<float>(y)); };
  return {rounded(std::log(number(x[1]) + 2.f)), rounded(a / b), rounded(1 / std::sqrt(b)), rounded(std::tanh(a))};
}
inline std::vector<Word> half_conversions(const Word* x) {
  const Word a = bits(static_cast<float>(from_f16(to_f16(number(x[0]))))),
             b = bits(static_cast<float>(from_f16(to_f16(number(x[1])))));
  return {a, b, a, b};
}

// ---- atomics

using Binary = std::function<Word(Word, Word)>;

inline Expected atomic(const Word* in, const Binary& operation, bool contended, bool returns) {
  Expected e{std::vector<Word>(65), {}};
  for (std::size_t lane = 0; lane < 32; ++lane) {
    e.words[lane] = operation(in[lane], in[32 + lane]);
    if (returns) e.words[33 + lane] = in[lane];
  }
  if (!contended) return e;
  e.words[32] = in[64];
  for (std::size_t lane = 0; lane < 32; ++lane) e.words[32] = operation(e.words[32], in[64 + lane]);
  return e;
}

inline Word add_f32(Word a, Word b) { return bits(number(a) + number(b)); }
/// In global memory subnormal operands and results are flushed (PTX ISA, "red", "atom").
inline Word add_f32_flushed(Word a, Word b) { return bits(flushed(flushed(number(a)) + flushed(number(b)))); }
inline Word add_f16x2(Word a, Word b) {
  return to_f16(from_f16(a) + from_f16(b)) | to_f16(from_f16(a >> 16) + from_f16(b >> 16)) << 16;
}
inline bool less(Word a, Word b) { return static_cast<std::int32_t>(a) < static_cast<std::int32_t>(b); }

inline Expected compare_and_swap(const Word* in) {
  Expected e{std::vector<Word>(128), {}};
  for (std::size_t i = 0; i < 32; ++i) {
    const bool there = (in[32 + i] & 1) == 0;
    e.words[i] = e.words[32 + i] = there ? in[64 + i] : in[i];
    e.words[64 + i] = e.words[96 + i] = in[i];
  }
  return e;
}

inline Expected shared_add(const Word* in) {
  Expected e;
  for (std::size_t i = 0; i < 32; ++i) e.words.push_back(add_f32(in[i], in[32 + i]));
  return e;
}

}  // namespace reference

/// What one CTA of a case gives for its inputs; `fences` is the only case that is not one CTA after the other.
using Reference = std::function<Expected(const Word* in)>;

inline const std::map<std::string, Reference>& references() {
  using namespace reference;
  static const auto all = [] {
    std::map<std::string, Reference> r;
    for (const int matrices : {1, 2, 4})
      for (const bool transposed : {false, true})
        r["ldmatrix_x" + std::to_string(matrices) + (transposed ? "_trans" : "")] = [=](const Word* in) {
          return ldmatrix(in, matrices, transposed);
        };
    for (const int k : {8, 16})
      for (const bool half : {false, true})
        for (const char* operands : {"", ".integers", ".special"})
          r["mma_m16n8k" + std::to_string(k) + (half ? "_f16" : "_bf16") + operands] = [=](const Word* in) {
            return mma_result(mma_operands(in, k, half));
          };
    for (const std::size_t size : {4, 8, 16})
      r["cp_async_" + std::to_string(size)] = [=](const Word* in) { return cp_async(in, size); };
    r["cp_async_groups"] = [](const Word* in) { return Expected{std::vector<Word>(in, in + 512), {}}; };
    r["barriers"] = barriers;
    r["barrier_votes"] = barrier_votes;
    r["sync_warp"] = sync_warp;
    const char* shuffles[] = {"shuffle_from_lane", "shuffle_up", "shuffle_down", "shuffle_exclusive_or"};
    for (int kind = 0; kind < 4; ++kind)
      r[shuffles[kind]] = [=](const Word* in) { return shuffle(in, static_cast<Kind>(kind), 6 * 4 * 32); };
    r["shuffle_masks"] = shuffle_masks;
    r["votes"] = votes;

    const auto scalar = [&](const char* name, std::size_t step, Scalar function) {
      r[name] = [=](const Word* in) { return elementwise(in, step, function); };
    };
    const auto pack = [](auto rounded) {
      return [=](const Word* x) { return std::vector{rounded(number(x[0])) | rounded(number(x[1])) << 16}; };
    };
    scalar("ex2", 1, ex2);
    scalar("pack_f16", 2, pack(to_f16));
    scalar("pack_bf16", 2, pack(to_bf16));
    scalar("unpack_f16", 1, [](const Word* x) {
      return std::vector{bits(static_cast<float>(from_f16(*x))), bits(static_cast<float>(from_f16(*x >> 16)))};
    });
    scalar("half_conversions", 2, half_conversions);
    scalar("bf16_conversions", 1,
           [](const Word* x) { return std::vector{bits(static_cast<float>(from_bf16(to_bf16(number(*x)))))}; });
    scalar("bits", 2, integers);
    scalar("max_min", 2, max_min);
    scalar("expf", 1, [](const Word* x) {
      return std::vector{bits(static_cast<float>(std::exp(static_cast<double>(number(*x)))))};
    });
    scalar("fast_functions", 2, fast_functions);

    const auto atomics = [&](const char* name, Binary operation, bool contended, bool returns) {
      r[name] = [=](const Word* in) { return atomic(in, operation, contended, returns); };
    };
    atomics("red_add_f32", add_f32, true, false);
    atomics("atomic_add_f32", add_f32, true, true);
    atomics("red_add_f32.subnormal", add_f32_flushed, false, false);
    atomics("red_add_f16x2", add_f16x2, true, false);
    r["shared_add_f32"] = shared_add;
    for (const char* type : {"_unsigned", "_signed"}) {
      const bool is_signed = type[1] == 's';
      const auto integer = [&](const char* name, Binary operation, bool contended = true) {
        atomics((std::string("atomic_") + name + type).c_str(), operation, contended, true);
      };
      const auto below = [=](Word a, Word b) { return is_signed ? less(a, b) : a < b; };
      integer("add", [](Word a, Word b) { return a + b; });
      integer("max", [=](Word a, Word b) { return below(a, b) ? b : a; });
      integer("min", [=](Word a, Word b) { return below(a, b) ? a : b; });
      integer(
          "exch", [](Word, Word b) { return b; }, false);
      integer("or", [](Word a, Word b) { return a | b; });
      integer("and", [](Word a, Word b) { return a & b; });
    }
    r["atomic_cas"] = compare_and_swap;
    return r;
  }();
  return all;
}

/// What all CTAs of a case give. @throws std::out_of_range for a case without a reference.
inline Expected expected(const Case& c, const std::vector<Word>& in) {
  Expected all;
  if (c.name == std::string("fences")) {  // CTA 0's words, the flag, and the words reversed by CTA 1
    all.words.assign(in.begin(), in.begin() + 32);
    all.words.push_back(1);
    all.words.insert(all.words.end(), in.rend() - 32, in.rend());
    all.words.resize(c.all_out());
    return all;
  }
  for (unsigned cta = 0; cta < c.ctas; ++cta) {
    const Expected one = references().at(c.name)(in.data() + c.in * cta);
    all.words.insert(all.words.end(), one.words.begin(), one.words.end());
    all.terms.insert(all.terms.end(), one.terms.begin(), one.terms.end());
  }
  return all;
}

// ---- comparison

/// Place of an fp32 in the order of all of them: neighbours differ by one.
inline std::int64_t ordinal(float x) {
  const auto b = std::bit_cast<std::int32_t>(x);
  return b < 0 ? -std::int64_t(b & 0x7fffffff) : b;
}

/// Do two words of a case agree as its table says?
inline bool agree(const Case& c, Word one, Word other, double terms) {
  if (one == other) return true;
  if (c.agreement == Agreement::bits) return false;
  const float x = std::bit_cast<float>(one), y = std::bit_cast<float>(other);
  if (std::isnan(x) && std::isnan(y)) return true;
  if (c.agreement == Agreement::floats || !std::isfinite(x) || !std::isfinite(y)) return false;
  if (c.agreement == Agreement::ulps) return std::abs(ordinal(x) - ordinal(y)) <= static_cast<std::int64_t>(c.bound);
  return std::abs(double(x) - double(y)) <= c.bound * terms + 0x1p-149;
}

/// The first words that do not agree, or nothing.
inline std::string disagreement(const Case& c, const std::vector<Word>& got, const Expected& wanted) {
  if (got.size() != wanted.words.size()) return std::string(c.name) + ": sizes differ";
  std::size_t wrong = 0;
  std::string first;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (agree(c, got[i], wanted.words[i], wanted.terms.empty() ? 0 : wanted.terms[i])) continue;
    char text[160];
    std::snprintf(text, sizeof text, "%s, word %zu of CTA %zu: 0x%08x (%g), expected 0x%08x (%g)", c.name, i % c.out,
                  i / c.out, got[i], double(std::bit_cast<float>(got[i])), wanted.words[i],
                  double(std::bit_cast<float>(wanted.words[i])));
    if (wrong++ == 0) first = text;
  }
  return wrong ? first + "; " + std::to_string(wrong) + " of " + std::to_string(got.size()) + " words differ" : "";
}

}  // namespace flash::conformance

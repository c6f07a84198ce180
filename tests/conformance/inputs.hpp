// Random operands of the cases: the same from each compiler on each machine.
#pragma once

#include "tests/conformance/case.hpp"

namespace flash::conformance {

/// splitmix64 (Steele, Lea, Flood 2014).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  Word word() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return static_cast<Word>((z ^ (z >> 31)) >> 32);
  }
  /// 0 to n − 1.
  Word below(Word n) { return static_cast<Word>(std::uint64_t(word()) * n >> 32); }
  bool one_in(Word n) { return below(n) == 0; }

 private:
  std::uint64_t state_;
};

/// A floating-point format by its exponent and fraction bits.
struct Format {
  int exponent_bits, fraction_bits;

  Word bits(Word negative, int exponent, Word fraction) const {
    const int bias = (1 << (exponent_bits - 1)) - 1;
    return negative << (exponent_bits + fraction_bits) | static_cast<Word>(exponent + bias) << fraction_bits |
           (fraction & ((1u << fraction_bits) - 1));
  }
  /// ±[2^low, 2^(high + 1)).
  Word moderate(Random& r, int low, int high) const {
    const int exponent = low + static_cast<int>(r.below(static_cast<Word>(high - low + 1)));
    const Word negative = r.below(2), fraction = r.word();
    return bits(negative, exponent, fraction);
  }
  /// −n to n, n < 2^fraction_bits.
  Word integer(Random& r, int n) const {
    const int value = static_cast<int>(r.below(static_cast<Word>(2 * n + 1))) - n;
    const Word size = static_cast<Word>(value < 0 ? -value : value);
    if (size == 0) return 0;
    int exponent = 0;
    while (size >> (exponent + 1)) ++exponent;
    return bits(value < 0, exponent, size << (fraction_bits - exponent));
  }
  /// Zeros, subnormal numbers, the smallest normal one, infinities, NaN and, if asked for, the largest finite number,
  /// of either sign.
  Word special(Random& r, bool largest = true) const {
    const Word infinity = ((1u << exponent_bits) - 1) << fraction_bits, last = (1u << fraction_bits) - 1;
    const Word negative = r.below(2), any = r.word() & last;
    const Word kinds[] = {0, 1, last, any, 1u << fraction_bits, infinity, infinity | any | 1, infinity - 1};
    return kinds[r.below(largest ? 8 : 7)] | negative << (exponent_bits + fraction_bits);
  }
};

inline constexpr Format fp32{8, 23}, fp16{5, 10}, bf16{8, 7};

// ---- words

inline void draw_words(std::uint64_t seed, Word* in, std::size_t words) {
  Random r(seed);
  for (Word* const end = in + words; in < end; ++in) *in = r.word();
}

/// For each CTA 32 rows of 4 words, then the numbers 0 to 31, shuffled.
inline void draw_rows(std::uint64_t seed, Word* in, std::size_t words) {
  Random r(seed);
  for (Word* const end = in + words; in < end; in += 160) {
    for (int i = 0; i < 128; ++i) in[i] = r.word();
    for (Word i = 0; i < 32; ++i) {
      const Word k = r.below(i + 1);
      in[128 + i] = in[128 + k];
      in[128 + k] = i;
    }
  }
}

/// For each CTA 32 pieces of Size bytes, then how many bytes to read of each.
template <int Size>
void draw_copies(std::uint64_t seed, Word* in, std::size_t words) {
  Random r(seed);
  for (Word* const end = in + words; in < end;) {
    for (int i = 0; i < 32 * Size / 4; ++i) *in++ = r.word();
    for (int lane = 0; lane < 32; ++lane) *in++ = r.below(Size + 1);
  }
}

/// Each word's bits are predicates in as many rounds: all, none, all but one of `Threads` words, one, then random ones.
template <Word Threads>
void draw_predicates(std::uint64_t seed, Word* in, std::size_t words) {
  Random r(seed);
  const Word odd = r.below(Threads / 4) * 4;
  for (std::size_t i = 0; i < words; ++i)
    in[i] = 1u | Word(i % Threads != odd) << 2 | Word(i % Threads == odd) << 3 | (r.word() & 0xfffffff0);
}

/// 32 values, then 32 operands: the same for all lanes, or each from −40 to 72.
inline void draw_shuffles(std::uint64_t seed, Word* in, std::size_t words) {
  Random r(seed);
  for (Word* const end = in + words; in < end;) {
    const bool same = r.one_in(3);
    const Word common = r.below(33);
    for (int lane = 0; lane < 32; ++lane) *in++ = r.word();
    for (int lane = 0; lane < 32; ++lane) *in++ = same ? common : r.below(113) - 40;
  }
}

// ---- numbers

/// Any fp32, special ones often.
inline void draw_floats(std::uint64_t seed, Word* in, std::size_t words) {
  Random r(seed);
  for (Word* const end = in + words; in < end; ++in) *in = r.one_in(6) ? fp32.special(r) : r.word();
}

/// Integers, whose sums are exact in any order; ordinary numbers; ordinary ones with special ones among them.
enum class Operands { integers, ordinary, special };
enum class Type { f16, bf16 };

inline Word draw_operand(Random& r, const Format& format, Operands operands) {
  if (operands == Operands::integers) return format.integer(r, 32);
  // The largest bf16 times an ordinary one would be too large for an accumulator.
  if (operands == Operands::special && r.one_in(40)) return format.special(r, format.exponent_bits < 8);
  return format.moderate(r, -4, 2);
}

/// For each lane K/4 + K/8 registers of two numbers each, then four fp32.
template <int K, Type type, Operands operands>
void draw_mma(std::uint64_t seed, Word* in, std::size_t words) {
  Random r(seed);
  const Format format = type == Type::f16 ? fp16 : bf16;
  for (Word* const end = in + words; in < end;) {
    for (int i = 0; i < K / 4 + K / 8; ++i) {
      const Word low = draw_operand(r, format, operands), high = draw_operand(r, format, operands);
      *in++ = low | high << 16;
    }
    for (int i = 0; i < 4; ++i) *in++ = draw_operand(r, fp32, operands);
  }
}

/// Ties of 16-bit formats, their overflow and underflow, and anything.
inline void draw_to_round(std::uint64_t seed, Word* in, std::size_t words) {
  Random r(seed);
  for (Word* const end = in + words; in < end; ++in) {
    const Word number = fp32.moderate(r, -26, 16), any = r.word(), special = fp32.special(r);
    const Word kinds[] = {number, (number & ~0xfffu) | 0x1000, number & ~0xfffu, (any & ~0x7fffu) | 0x8000, any,
                          special};
    *in = kinds[r.below(6)];
  }
}

/// From −160 to 160, integers among them, and special ones; none so near −126 that its power may or may not be flushed.
inline void draw_exponents(std::uint64_t seed, Word* in, std::size_t words) {
  Random r(seed);
  for (Word* const end = in + words; in < end; ++in) {
    const Word number = fp32.moderate(r, -8, 6), integer = fp32.integer(r, 160), special = fp32.special(r);
    const Word kinds[] = {number, number, number, number, integer, integer, special};
    const Word x = kinds[r.below(7)], smallest = fp32.bits(1, 6, 126u << 17);
    *in = x > smallest && x < smallest + 256 ? smallest : x;
  }
}

/// Pairs of moderate numbers, the second positive.
inline void draw_moderate(std::uint64_t seed, Word* in, std::size_t words) {
  Random r(seed);
  for (std::size_t i = 0; i < words; ++i) in[i] = fp32.moderate(r, -12, 3) & (i % 2 ? 0x7fffffff : ~0u);
}

/// Subnormal numbers, those just above, and special ones.
inline void draw_subnormal(std::uint64_t seed, Word* in, std::size_t words) {
  Random r(seed);
  for (Word* const end = in + words; in < end; ++in) *in = r.one_in(2) ? fp32.special(r) : fp32.moderate(r, -126, -120);
}

/// 64 numbers, special ones among them but no subnormal ones, then 32 integers; of fp32, or two fp16 in a word.
template <bool Halves>
void draw_additions(std::uint64_t seed, Word* in, std::size_t words) {
  Random r(seed);
  const Format format = Halves ? fp16 : fp32;
  const auto one = [&](std::size_t i) {
    if (i % 96 >= 64) return format.integer(r, 8);
    if (!r.one_in(3)) return format.moderate(r, -3, 3);
    const Word x = format.special(r), exponent = x >> format.fraction_bits & ((1u << format.exponent_bits) - 1);
    return Halves || exponent != 0 ? x : 0;
  };
  for (std::size_t i = 0; i < words; ++i) {
    in[i] = one(i);
    if (Halves) in[i] |= one(i) << 16;
  }
}

}  // namespace flash::conformance

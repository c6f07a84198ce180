// What instructions.cu offers to whoever runs it: a table of cases, each a kernel that shows what one instruction does
// to random operands. The same table runs on a GPU (golden.cu) and on the virtual GPU (test_vgpu_instructions.cpp,
// test_vgpu_conformance.cpp).
#pragma once

#include <cstddef>
#include <cstdint>

namespace flash::conformance {

using Word = std::uint32_t;

/// How far a result may be from silicon's.
enum class Agreement {
  bits,      ///< equal
  floats,    ///< fp32, equal; a NaN is a NaN
  ulps,      ///< fp32, `bound` units in the last place; infinities equal, a NaN is a NaN
  products,  ///< fp32 sums of products: `bound` · Σ|terms|; infinities equal, a NaN is a NaN
};

/// A kernel of `ctas` CTAs, each of which reads `in` words and writes `out` words.
struct Case {
  const char* name;
  int arch;  ///< that it needs: 75 is sm_75
  unsigned ctas, threads;
  std::size_t smem;     ///< [bytes]
  std::size_t in, out;  ///< [words] of a CTA
  Agreement agreement;
  double bound;
  const char* reason;                                             ///< of the bound
  void (*draw)(std::uint64_t seed, Word* in, std::size_t words);  ///< fills the inputs of all CTAs
  void (*launch)(const Word* in, Word* out);                      ///< `in`, `out`: global memory, `out` zero-filled

  std::size_t all_in() const { return in * ctas; }
  std::size_t all_out() const { return out * ctas; }
};

/// The symbol that instructions.cu exports: `flash_cases`.
struct Cases {
  const Case* first;
  std::size_t count;

  const Case* begin() const { return first; }
  const Case* end() const { return first + count; }
};

// ---- golden files

inline constexpr std::uint64_t golden_seed = 20260901;

/// What a golden file holds for each case: this, then the case's output.
struct Record {
  char name[32];
  std::uint64_t input_hash;
  std::uint64_t bytes;
};

/// FNV-1a: tells golden files of other inputs apart.
inline std::uint64_t hash(const Word* words, std::size_t count) {
  std::uint64_t h = 14695981039346656037u;
  for (std::size_t i = 0; i < count; ++i) h = (h ^ words[i]) * 1099511628211u;
  return h;
}

}  // namespace flash::conformance

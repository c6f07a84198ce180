// Tile sizes from the SRAM budget.
#pragma once

#include <fmt/format.h>

#include "sim/theory/blocks.hpp"
#include "stages/common/problem.hpp"

namespace flash {

using theory::Blocks;

/// The side of a tile that grows with M: Algorithm 1's columns of keys, with min(·, d) rows of queries; or the rows of
/// a loop nest with Q outside, with min(·, d) columns.
enum class Long { cols, rows };

/// What a stage's SRAM inequality is made of: sizes in elements, and bytes.
struct TileSizes {
  Index Br, Bc, d, dv;
  Index e;              ///< bytes of an element of Q, K, V, O
  Index a;              ///< bytes of an element of an accumulator or statistic
  Index mask_bytes;     ///< an explicit mask's tile; 0 without one
  Index dropout_bytes;  ///< a copy of P after dropout; 0 without dropout
  Index splits = 1;     ///< parts of the keys
};

template <class Real>
TileSizes tile_sizes(const Problem<Real>& p, const Options& o, Index Br, Index Bc) {
  const Index a = bytes_per_element(accumulator(p.dtype));
  return {Br,
          Bc,
          p.d,
          p.dv,
          bytes_per_element(p.dtype),
          a,
          p.mask.empty() ? 0 : Br * Bc,
          o.dropout > 0 ? a * Br * Bc : 0,
          o.splits};
}

/// The blocks of a run: those given by hand, Algorithm 1's (paper), or the largest of its shape that fit (strict); with
/// their roles swapped where the rows are the long side.
/// `sram_bytes` is the left side of the stage's own inequality: the bytes that a worker holds at its fullest.
/// @throws Refused when M < 4d, or when strict blocks don't fit.
template <class Real>
Blocks block_sizes(const Problem<Real>& p, const Options& o, const sim::Machine<Real>& machine,
                   Index sram_bytes(const TileSizes&), Long side = Long::cols) {
  const auto bytes = [&](Index Br, Index Bc) { return sram_bytes(tile_sizes(p, o, Br, Bc)); };
  const Index capacity = machine.config().sram_bytes;
  const bool strict = machine.config().budget == sim::Budget::strict;
  if (o.br > 0) {
    if (const Index needed = bytes(o.br, o.bc); strict && needed > capacity)
      throw Refused(fmt::format("blocks of {} x {} were asked under the strict budget, but they take {} bytes of an SRAM "
                                "of {}; take smaller --br and --bc, a larger --sram, or --budget paper",
                                o.br, o.bc, needed, capacity));
    return {o.br, o.bc};
  }

  const Index d = std::max<Index>({p.d, p.dv, 1});
  const Index M = capacity / bytes_per_element(p.dtype);
  const Index least = std::max(4 * d * bytes_per_element(p.dtype), strict ? bytes(1, 1) : 0);
  if (M < 4 * d)
    throw Refused(fmt::format("an SRAM of {} bytes was asked, M = {} elements of {}, but Algorithm 1 needs M >= 4d = {}; "
                              "take --sram {} or more",
                              capacity, M, name(p.dtype), 4 * d, least));
  const auto blocks = [&](Index length) {
    const Index other = std::min(length, d);
    return side == Long::cols ? Blocks{other, length} : Blocks{length, other};
  };
  if (!strict) return blocks(theory::paper_blocks(M, d).Bc);

  const auto fits = [&](Index length) { return bytes(blocks(length).Br, blocks(length).Bc) <= capacity; };
  Index length = 0;
  for (Index step = Index(1) << 24; step > 0; step /= 2)
    if (fits(length + step)) length += step;
  if (length == 0)
    throw Refused(fmt::format("the strict budget was asked for, but even blocks of 1 x 1 take {} bytes of an SRAM of {}; take "
                              "--sram {} or more, or --budget paper",
                              bytes(1, 1), capacity, least));
  return blocks(length);
}

}  // namespace flash

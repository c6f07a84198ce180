// Arrays of one problem on the host, as read from files or drawn at random: row-major, already rounded to the run's
// format, so that they are exactly what a stage and the oracle both start from.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/memory/format.hpp"
#include "stages/common/options.hpp"

namespace flash {

/// What a run starts from. All arrays are row-major; an empty one is not there.
struct Inputs {
  Shape shape;
  Format dtype = Format::fp32;
  std::vector<double> q;                     ///< [batch, heads, Nq, d]
  std::vector<double> k;                     ///< [batch, kv_heads, Nk, d]
  std::vector<double> v;                     ///< [batch, kv_heads, Nk, dv]
  std::vector<double> dout;                  ///< [batch, heads, Nq, dv]; empty for a forward run
  std::vector<float> slopes;                 ///< ALiBi [heads]; empty: off
  std::vector<std::uint8_t> mask;            ///< [mask_batch, mask_heads, Nq, Nk], nonzero = may attend; empty: off
  Index mask_batch = 1, mask_heads = 1;      ///< 1, or the problem's own: a mask of one head serves all heads
  std::vector<std::uint8_t> block_mask;      ///< [Tr, Tc] with the run's br and bc, nonzero = computed; empty: off
};

/// What a run gives. All arrays are row-major; an empty one was not computed.
struct Outputs {
  std::vector<double> o;                     ///< [batch, heads, Nq, dv]
  std::vector<double> lse;                   ///< [batch, heads, Nq], natural logarithm, −inf for a row that sees no key
  std::vector<double> dq, dk, dv;            ///< like q, k, v; empty for a forward run
};

}  // namespace flash

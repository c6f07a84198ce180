// How many HBM elements each schedule moves, as formulas. Nothing here walks the tiles of a run: a sum over row blocks
// of floors and ceilings on element indices says how much of the tile grid a mask leaves. The stages count what they
// load and store; both must agree as integers, tensor by tensor.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "sim/memory/format.hpp"
#include "stages/common/options.hpp"

namespace flash::theory {

/// HBM elements by tensor, apart for reads, writes and atomic read-modify-writes. Tensors that move nothing have no
/// entry.
struct Traffic {
  std::map<std::string, Index> read, write, rmw;

  /// reads + writes + 2 · read-modify-writes
  Index elements() const;
  bool operator==(const Traffic&) const = default;
};

/// Sum of two passes.
Traffic operator+(Traffic a, const Traffic& b);

/// Bytes of one element of a tensor in a run of `dtype`: inputs, outputs, S, P, dP, dS take the dtype's size; l, m,
/// LSE, D, O_acc, dQ_acc, partial_O, partial_LSE the accumulator's; mask 1; slopes and turn 4.
Index element_bytes(std::string_view tensor, Format dtype);

/// Bytes of the traffic; a read-modify-write counts twice.
Index bytes(const Traffic& traffic, Format dtype);

/// A law: the formula, and the traffic that it gives for one problem.
struct ClosedForm {
  std::string text;  ///< elements() as a formula: "3Nd + 2N + Tc·N(3d+4)"
  Traffic traffic;   ///< summed over batch and heads
};

/// What, beside the shape, changes the traffic. Dropout, scale and softcap (but in `materialized_backward`) do not.
struct ClosedFormOptions {
  bool causal = false;
  Window window;
  bool has_mask = false;   ///< an explicit mask [Nq, Nk] is read under every visited tile
  bool has_alibi = false;  ///< one slope is read by each query head
  bool softcap = false;
  bool first_touch = false;                  ///< algorithm_1: the first visit of a row tile creates O, l, m
  std::span<const std::uint8_t> block_mask;  ///< [Tr, Tc], nonzero = computed; empty: off
  Index splits = 1;                          ///< fa2_forward: a row's column tiles are shared out to so many workers
  bool deterministic = false;                ///< fa2_backward: additions to dQ wait for their turn
};

/// The exact traffic of `schedule` with tiles Br×Bc:
///   materialized, materialized_backward   each operand of each pass once (FA1, Algorithms 0 and 3); no tiles
///   tiled                                 the same passes in tiles, softmax in two sweeps
///   algorithm_1                           FA1 forward; l and m in HBM
///   lse_forward, lse_backward             one LSE per row in place of l and m
///   algorithm_4                           FA1 backward as printed, with l and m
///   fa2_forward                           FA2's order: one worker a row block, or one for each split of its keys
///   fa2_backward                          one worker a column block of a KV head; dQ by atomic additions
/// Nothing for other names and for a block mask, first touch, splits or turns that the schedule does not have.
/// Throws std::invalid_argument for tiles smaller than 1, no split, or a block mask that is not [Tr, Tc].
std::optional<ClosedForm> closed_form(std::string_view schedule, const Shape& shape, Format dtype,
                                      const ClosedFormOptions& options, Index Br, Index Bc);

/// (query, key) pairs that the causal rule and the window leave, over batch and query heads, in O(Nq). A block mask
/// costs O(Nq·Tc). An explicit mask is not counted: its content is data.
Index visible_pairs(const Shape& shape, const ClosedFormOptions& options = {}, Index Br = 1, Index Bc = 1);

}  // namespace flash::theory

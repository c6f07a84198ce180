// Which tiles of S have to be visited: causal, window and block mask skip the others. An explicit mask skips none: what is
// in it is known only when its tile is loaded. Ranges named rows are queries, those named cols keys.
#pragma once

#include <vector>

#include "stages/common/problem.hpp"

namespace flash {

inline rules::Visibility visibility(const Shape& shape, const Options& o) {
  return rules::visibility(shape.Nq, shape.Nk, o.causal, o.window.left, o.window.right);
}

/// Which tiles of S some query sees: all others are skipped.
class VisibleTiles {
 public:
  template <class Real>
  VisibleTiles(const Problem<Real>& p, const Options& o, Index Br, Index Bc)
      : sees_(visibility(p, o)), Br_(Br), Bc_(Bc), Tc_(sim::ceil_div(p.Nk, Bc)), block_mask_(p.block_mask) {}

  /// Row tiles of which some query sees some key of `cols`.
  std::vector<sim::Range> rows(sim::Range cols) const {
    std::vector<sim::Range> seen;
    for (const sim::Range rows : sim::tiles(sees_.Nq, Br_))
      if (visited(rows, cols)) seen.push_back(rows);
    return seen;
  }

  /// Column tiles that some query of `rows` sees; of those among `keys`, which begin with a tile.
  std::vector<sim::Range> cols(sim::Range rows) const { return cols(rows, {0, sees_.Nk}); }
  std::vector<sim::Range> cols(sim::Range rows, sim::Range keys) const {
    std::vector<sim::Range> seen;
    for (Index j = keys.begin / Bc_; j * Bc_ < keys.end; ++j)
      if (const sim::Range cols = sim::tile_range(j, sees_.Nk, Bc_); visited(rows, cols)) seen.push_back(cols);
    return seen;
  }

  /// These rows, or none of them where no tile of theirs is visited: what is not needed is not loaded.
  sim::Range seen_rows(sim::Range rows) const { return seen_rows(rows, {0, sees_.Nk}); }
  sim::Range seen_rows(sim::Range rows, sim::Range keys) const {
    return none(rows, keys.begin, keys.end) ? sim::Range{rows.begin, rows.begin} : rows;
  }
  /// Likewise.
  sim::Range seen_cols(sim::Range cols) const {
    for (const sim::Range rows : sim::tiles(sees_.Nq, Br_))
      if (visited(rows, cols)) return cols;
    return {cols.begin, cols.begin};
  }

  /// No column tile before `cols` visits `rows`.
  bool first(sim::Range rows, sim::Range cols) const { return none(rows, 0, cols.begin); }
  /// No column tile after `cols` visits `rows`.
  bool last(sim::Range rows, sim::Range cols) const { return none(rows, cols.end, sees_.Nk); }
  /// No column tile at all visits `rows`.
  bool none(sim::Range rows) const { return none(rows, 0, sees_.Nk); }

 private:
  bool visited(sim::Range rows, sim::Range cols) const {
    return rules::tile_visible(sees_, rows.begin, rows.end, cols.begin, cols.end) &&
           (block_mask_.empty() || block_mask_[rows.begin / Br_ * Tc_ + cols.begin / Bc_]);
  }

  /// No column tile within [begin, end) visits `rows`.
  bool none(sim::Range rows, Index begin, Index end) const {
    if (begin >= end) return true;
    if (block_mask_.empty()) return !rules::tile_visible(sees_, rows.begin, rows.end, begin, end);
    for (; begin < end; begin += Bc_)
      if (visited(rows, sim::tile_range(begin / Bc_, sees_.Nk, Bc_))) return false;
    return true;
  }

  rules::Visibility sees_;
  Index Br_, Bc_, Tc_;
  std::vector<std::uint8_t> block_mask_;
};

}  // namespace flash

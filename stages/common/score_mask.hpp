// What happens to a tile of scores between the product and the softmax, and to its probabilities after it: softcap,
// ALiBi, causal, window and explicit mask; dropout. The rules are in rules.hpp.
#pragma once

#include "stages/common/visible_tiles.hpp"

namespace flash {

using sim::Location;

template <class Real>
constexpr Real infinity = std::numeric_limits<Real>::infinity();

/// Stands for −∞ as a maximum of nothing: −∞ − (−∞) is NaN.
template <class Real>
constexpr Real lowest = std::numeric_limits<Real>::lowest();

/// What happens to a tile of scores between the product and the softmax.
template <class Real>
class ScoreMask {
 public:
  const Real scale;  ///< of Q·Kᵀ

  /// Loads the head's ALiBi slope, if there is one.
  ScoreMask(const Problem<Real>& p, const Options& o, sim::Worker<Real>& w, Location where = Location::current())
      : scale(static_cast<Real>(softmax_scale(p, o))),
        p_(p),
        w_(w),
        sees_(visibility(p, o)),
        softcap_(static_cast<Real>(o.softcap)) {
    if (p.slopes.empty()) return;
    const sim::Column slope = w.load(p.slopes, {0, 1}, where);
    if (!w.count_only()) slope_ = slope(0);
  }

  /// S [rows, cols]: s <- c·tanh(s/c), s <- s − slope·distance, and −∞ where the query does not see the key. Loads the
  /// explicit mask's tile from HBM, if there is one.
  void apply(sim::Tile<Real>& S, sim::Range rows, sim::Range cols, Location where = Location::current()) const {
    if (softcap_ > 0) S.transform([&](Index, Index, Real s) { return softcap_ * std::tanh(s / softcap_); }, where);
    if (!p_.slopes.empty())
      S.transform([&](Index i, Index j, Real s) { return s - bias(rows.begin + i, cols.begin + j); }, where);
    if (!rules::tile_full(sees_, rows.begin, rows.end, cols.begin, cols.end)) {
      const auto masked = [&](Index i, Index j, Real s) {
        return rules::visible(sees_, rows.begin + i, cols.begin + j) ? s : -infinity<Real>;
      };
      S.transform(masked, where);
    }
    if (!p_.mask.empty()) {
      const sim::Tile allowed = w_.load(p_.mask, rows, cols, where);
      S = {(allowed.array() != 0).select(S, -infinity<Real>), where};
    }
  }

  /// dS [rows, cols] through the softcap: d(c·tanh(s/c))/ds = 1 − tanh². `S` is what apply() left.
  void derivative(sim::Tile<Real>& dS, const sim::Tile<Real>& S, sim::Range rows, sim::Range cols,
                  Location where = Location::current()) const {
    if (softcap_ == 0) return;
    const auto through = [&](Index i, Index j, Real ds) {
      if (S(i, j) == -infinity<Real>) return Real(0);
      const Real tanh = (S(i, j) + bias(rows.begin + i, cols.begin + j)) / softcap_;
      return ds * (1 - tanh * tanh);
    };
    dS.transform(through, where);
  }

 private:
  Real bias(Index i, Index j) const { return slope_ * static_cast<Real>(rules::alibi_distance(sees_, i, j)); }

  const Problem<Real>& p_;
  sim::Worker<Real>& w_;
  rules::Visibility sees_;
  Real softcap_;
  Real slope_ = 0;
};

/// P∘Z [rows, cols]: dropped entries 0, kept ones × 1/(1−p).
template <class Real>
void dropout(sim::Tile<Real>& P, const Options& o, const sim::Worker<Real>& w, sim::Range rows, sim::Range cols,
             Location where = Location::current()) {
  if (o.dropout == 0) return;
  const Real kept = static_cast<Real>(1 / (1 - o.dropout));
  const auto dropped = [&](Index i, Index j, Real x) {
    const auto word = rules::dropout_word(o.dropout_seed, w.batch, w.head, rows.begin + i, cols.begin + j);
    return rules::dropout_keeps(word, o.dropout) ? x * kept : Real(0);
  };
  P.transform(dropped, where);
}

/// Rounds P as its product takes it, and returns P∘Z: a copy, since dS needs P too, or P's own memory without dropout.
template <class Real>
sim::Tile<Real> dropped(sim::Tile<Real>& P, const Options& o, sim::Worker<Real>& w, Format dtype, sim::Range rows,
                        sim::Range cols, Location where = Location::current()) {
  P.round(dtype, where);
  if (o.dropout == 0) return P.alias();
  sim::Tile<Real> Z_P = w.sram("P dropped", rows, cols, where);
  Z_P = {P, where};
  dropout(Z_P, o, w, rows, cols, where);
  Z_P.round(dtype, where);
  return Z_P;
}

/// 1/l [rows]. A row's maximum contributes e⁰, so l >= 1; a row that sees no key has l = 0, and its zeros stay zeros.
template <class Real>
auto inverse_of_sum(const sim::Column<Real>& l) {
  return l.cwiseMax(1).cwiseInverse();
}

}  // namespace flash

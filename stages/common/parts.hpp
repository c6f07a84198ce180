// The keys of a tile of rows, shared out to several workers, and what each part leaves in HBM to be combined.
#pragma once

#include <vector>

#include "stages/common/problem.hpp"

namespace flash {

/// As many parts as were asked for, of as many tiles of keys each; no more than get any.
template <class Real>
struct Parts {
  Parts(const Problem<Real>& p, Index asked, Index Br, Index Bc)
      : keys(std::max<Index>(1, sim::ceil_div(sim::ceil_div(p.Nk, Bc), asked)) * Bc),
        count(std::max<Index>(1, sim::ceil_div(p.Nk, keys))),
        partial_O(p.partial_O(count)),
        partial_LSE(p.partial_LSE(count)),
        Nq_(p.Nq),
        Nk_(p.Nk),
        Br_(Br) {}

  Index keys, count;                 ///< keys of a part; parts
  sim::HbmMatrix<Real> partial_O;    ///< [count·Nq,dv] fp32: rows of part s begin at s·Nq
  sim::HbmVector<Real> partial_LSE;  ///< [count·Nq] fp32

  /// Of each head.
  Index blocks() const { return sim::ceil_div(Nq_, Br_) * count; }
  struct Share {
    sim::Range rows, keys;
  };
  Share share(Index block) const {
    const Index Tr = sim::ceil_div(Nq_, Br_);
    return {sim::tile_range(block % Tr, Nq_, Br_), sim::tile_range(block / Tr, Nk_, keys)};
  }

  /// Where the part that begins with `of_keys` keeps `rows`.
  sim::Range rows(sim::Range rows, sim::Range of_keys) const { return moved(rows, of_keys.begin / keys); }
  /// Where each part keeps them.
  std::vector<sim::Range> all(sim::Range rows) const {
    std::vector<sim::Range> of_parts;
    for (Index part = 0; part < count; ++part) of_parts.push_back(moved(rows, part));
    return of_parts;
  }

 private:
  sim::Range moved(sim::Range rows, Index part) const { return {rows.begin + part * Nq_, rows.end + part * Nq_}; }
  Index Nq_, Nk_, Br_;
};

}  // namespace flash

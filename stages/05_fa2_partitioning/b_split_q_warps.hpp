// 05b split-Q: who of a CTA's four warps has what.
// Extends 05a. The change: each warp has rows of Q, S, P and O for itself; with --warps split-k it has keys, as in FA1.
// Why it helps: a warp that has all keys of its rows has their maxima, sums and O; one that has some needs the others'.
// What it costs: every warp reads all of K and V from SRAM, where split-K reads all of Q.
// The ledger must now say: the same of HBM, and nothing between warps; with split-K 8R(dv+2), R the rows of all tiles.
#pragma once

#include "stages/common/stage.hpp"

namespace flash::fa2_partitioning::b_split_q_warps {

/// SRAM of one worker [bytes]: Kj, Vj, Qi; Oi, S (P takes its place), l, m; two more statistics or a mask's tile.
inline Index sram_bytes(const TileSizes& t) {
  return t.e * (t.Bc * (t.d + t.dv) + t.Br * t.d) + t.a * t.Br * (t.dv + t.Bc + 2) +
         std::max(t.a * 2 * t.Br, t.mask_bytes);
}

/// What one warp, or with split-K all four, add up for some rows.
template <class Real>
struct Sums {
  Range rows;
  Tile<Real> O;                                                 // [rows,dv]
  Column<Real> l, m;                                            // [rows]
};

template <class Real>
void forward(const Problem<Real>& p, const Options& o, Machine<Real>& machine) {
  const auto [Br, Bc] = block_sizes(p, o, machine, sram_bytes, Long::rows);
  const VisibleTiles visible(p, o, Br, Bc);
  const Index row_warps = o.warps == Warps::split_k ? 1 : 4, key_warps = 4 / row_warps;
  machine.parallel(p.grid(ceil_div(p.Nq, Br)), [&](Worker<Real>& w) {           // one worker: one tile of rows
    const ScoreMask mask(p, o, w);
    const Range rows = tile_range(w.block, p.Nq, Br);           // Alg. 1, line 3
    // ---- load
    const Tile Qi = w.load(p.Q, visible.seen_rows(rows));       // [Br,d], line 4
    std::vector<Sums<Real>> sums;                               // line 5
    for (Range own : shares(rows, row_warps))
      sums.push_back({own, w.zeros("O", own, p.dv), w.constant("l", own, 0), w.constant("m", own, lowest<Real>)});
    for (Range cols : visible.cols(rows)) {                     // line 6
      // ---- load
      const Tile Kj = w.load(p.K, cols), Vj = w.load(p.V, cols);                // [Bc,d] [Bc,dv], line 7
      for (auto& [own, Oi, l, m] : sums)
        for (Range keys : shares(cols, key_warps)) {            // a warp: all work at the same time, here in turn
          // ---- scores
          Tile S = w.sram("S", own, keys);                      // [Br/4,Bc], or [Br,Bc/4]
          S = mask.scale * Qi.at(own) * Kj.at(keys).transpose();                // line 8
          // ---- mask
          mask.apply(S, own, keys);
          // ---- softmax
          Column m_new = w.sram("m_new", own);
          m_new = S.rowwise().maxCoeff().cwiseMax(m);           // line 9
          auto& P = S.as("P");                                  // the same memory: P takes the place of S
          P = (S.colwise() - m_new).array().exp();              // line 9, under it
          Column alpha = w.sram("alpha", own);
          alpha = (m - m_new).array().exp();                    // what is left of old sums under the new maximum
          l = alpha.cwiseProduct(l) + P.rowwise().sum();        // line 9, before dropout
          m = m_new;
          dropout(P, o, w, own, keys);
          P.round(p.dtype);
          // ---- accumulate
          Oi = alpha.asDiagonal() * Oi;                         // line 10: O is not divided by l
          Oi += P * Vj.at(keys);
          if (key_warps > 1) w.exchange(Oi), w.exchange(l), w.exchange(m);      // they meet in SRAM
        }
    }
    for (auto& [own, Oi, l, m] : sums) {
      Oi = inverse_of_sum(l).asDiagonal() * Oi;                 // line 12: one division a row
      Column LSE = w.sram("LSE", own);                          // [Br]
      LSE = m.array() + l.array().log();                        // line 13; −∞ for a row that has seen no key
      // ---- store
      w.store(p.O, own, Oi);                                    // line 14
      w.store(p.LSE, own, LSE);
    }
  });
}

}  // namespace flash::fa2_partitioning::b_split_q_warps

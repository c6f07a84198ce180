// 05a loop swap: FlashAttention-2's forward pass (Dao 2023, Algorithm 1).
// Extends 04. The change: the loops change places, a tile of rows is a worker, and O is divided by l once, at the end.
// Why it helps: O, l and m stay in SRAM until they are done, and one head already gives work to many workers.
// What it costs: K and V are read once for each tile of rows.
// The ledger must now say: 8 N²d²/M elements in the place of 12, if the blocks' roles change places, too: Br = ⌈M/4d⌉.
#pragma once

#include "stages/common/stage.hpp"

namespace flash::fa2_partitioning::a_loop_swap {

/// SRAM of one worker [bytes]: Kj, Vj, Qi; Oi, S (P takes its place), l, m; two more statistics or a mask's tile.
inline Index sram_bytes(const TileSizes& t) {
  return t.e * (t.Bc * (t.d + t.dv) + t.Br * t.d) + t.a * t.Br * (t.dv + t.Bc + 2) +
         std::max(t.a * 2 * t.Br, t.mask_bytes);
}

template <class Real>
void forward(const Problem<Real>& p, const Options& o, Machine<Real>& machine) {
  const auto [Br, Bc] = block_sizes(p, o, machine, sram_bytes, Long::rows);
  const VisibleTiles visible(p, o, Br, Bc);
  machine.parallel(p.grid(ceil_div(p.Nq, Br)), [&](Worker<Real>& w) {           // one worker: one tile of rows
    const ScoreMask mask(p, o, w);
    const Range rows = tile_range(w.block, p.Nq, Br);           // Alg. 1, line 3
    // ---- load
    const Tile Qi = w.load(p.Q, visible.seen_rows(rows));       // [Br,d], line 4
    Tile Oi = w.zeros("O", rows, p.dv);                         // [Br,dv], line 5
    Column l = w.constant("l", rows, 0), m = w.constant("m", rows, lowest<Real>);           // [Br]
    for (Range cols : visible.cols(rows)) {                     // line 6
      // ---- load
      const Tile Kj = w.load(p.K, cols), Vj = w.load(p.V, cols);                // [Bc,d] [Bc,dv], line 7
      // ---- scores
      Tile S = w.sram("S", rows, cols);                         // [Br,Bc]
      S = mask.scale * Qi * Kj.transpose();                     // line 8
      // ---- mask
      mask.apply(S, rows, cols);
      // ---- softmax
      Column m_new = w.sram("m_new", rows);
      m_new = S.rowwise().maxCoeff().cwiseMax(m);               // line 9
      auto& P = S.as("P");                                      // the same memory: P takes the place of S
      P = (S.colwise() - m_new).array().exp();                  // line 9, under it
      Column alpha = w.sram("alpha", rows);
      alpha = (m - m_new).array().exp();                        // what is left of old sums under the new maximum
      l = alpha.cwiseProduct(l) + P.rowwise().sum();            // line 9, before dropout
      m = m_new;
      dropout(P, o, w, rows, cols);
      P.round(p.dtype);
      // ---- accumulate
      Oi = alpha.asDiagonal() * Oi;                             // line 10: O is not divided by l
      Oi += P * Vj;
    }
    Oi = inverse_of_sum(l).asDiagonal() * Oi;                   // line 12: one division a row
    Column LSE = w.sram("LSE", rows);                           // [Br]
    LSE = m.array() + l.array().log();                          // line 13; −∞ for a row that has seen no key
    // ---- store
    w.store(p.O, rows, Oi);                                     // line 14
    w.store(p.LSE, rows, LSE);
  });
}

}  // namespace flash::fa2_partitioning::a_loop_swap

// 04 recomputed backward, its forward pass: one number a row instead of two.
// Extends 03. The change: LSE = m + ln l takes the place of l and m.
// Why it helps: e^(S − LSE) is P itself, so that LSE is all that the backward pass needs to make P again.
// What it costs: a logarithm for each row and tile.
// The ledger must now say: one statistic a row instead of two, Θ(N²d²/M) as before.
#pragma once

#include "stages/common/stage.hpp"

namespace flash::recomputed_backward {

/// SRAM of one worker [bytes]: Kj, Vj, Qi; Oi, S (P takes its place), LSE; three more statistics or a mask's tile.
inline Index sram_bytes(const TileSizes& t) {
  return t.e * (t.Bc * (t.d + t.dv) + t.Br * t.d) + t.a * t.Br * (t.dv + t.Bc + 1) +
         std::max(t.a * 3 * t.Br, t.mask_bytes);
}

template <class Real>
void forward(const Problem<Real>& p, const Options& o, Machine<Real>& machine) {
  const auto [Br, Bc] = block_sizes(p, o, machine, sram_bytes);
  const VisibleTiles visible(p, o, Br, Bc);
  machine.parallel(p.grid(), [&](Worker<Real>& w) {             // one worker: one head
    const ScoreMask mask(p, o, w);
    for (Range rows : tiles(p.Nq, Br)) {                        // Alg. 1, line 2
      // ---- store
      w.store(visible.none(rows) ? p.O : p.O_acc, rows, w.zeros("O", rows, p.dv));         // no visit: the last store
      w.store(p.LSE, rows, w.constant("LSE", rows, -infinity<Real>));
    }
    for (Range cols : tiles(p.Nk, Bc)) {                        // line 5
      // ---- load
      const Tile Kj = w.load(p.K, cols), Vj = w.load(p.V, cols);               // [Bc,d] [Bc,dv], line 6
      for (Range rows : visible.rows(cols)) {                   // line 7
        // ---- load
        const Tile Qi = w.load(p.Q, rows);                      // [Br,d], line 8
        Tile Oi = w.load(p.O_acc, rows);                        // [Br,dv]
        Column LSE = w.load(p.LSE, rows);                       // [Br]
        // ---- scores
        Tile S = w.sram("S", rows, cols);                       // [Br,Bc]
        S = mask.scale * Qi * Kj.transpose();                   // line 9
        // ---- mask
        mask.apply(S, rows, cols);
        // ---- softmax
        Column m_new = w.sram("m_new", rows);
        m_new = S.rowwise().maxCoeff().cwiseMax(LSE).cwiseMax(lowest<Real>);   // LSE is at least the old maximum
        auto& P = S.as("P");                                    // the same memory: P takes the place of S
        P = (S.colwise() - m_new).array().exp();                // line 10, under it
        Column l_old = w.sram("l_old", rows), l_new = w.sram("l_new", rows);
        l_old = (LSE - m_new).array().exp();                    // the old sum under the new maximum
        l_new = l_old + P.rowwise().sum();                      // line 11, before dropout
        LSE = m_new.array() + l_new.array().log();              // −∞ for a row that has seen no key
        dropout(P, o, w, rows, cols);
        P.round(p.dtype);
        // ---- accumulate
        Oi = l_old.asDiagonal() * Oi;                           // line 12: O <- e^(LSE − LSE_new)·O + e^(S − LSE_new)·V
        Oi += P * Vj;
        Oi = inverse_of_sum(l_new).asDiagonal() * Oi;
        // ---- store
        w.store(visible.last(rows, cols) ? p.O : p.O_acc, rows, Oi);           // line 12; between visits in fp32
        w.store(p.LSE, rows, LSE);
      }
    }
  });
}

}  // namespace flash::recomputed_backward

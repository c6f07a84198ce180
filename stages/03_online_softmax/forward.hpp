// 03 online softmax: FlashAttention's Algorithm 1 (Dao et al. 2022).
// Extends 02. The change: the softmax of a row is built up while its tiles pass, so that S and P stay in SRAM.
// Why it helps: nothing of size N² goes to HBM any more.
// What it costs: O, l and m of every row come and go once for each tile of keys.
// The ledger must now say: Θ(N²d²/M) elements instead of Θ(N²).
#pragma once

#include "stages/common/stage.hpp"

namespace flash::online_softmax {

/// SRAM of one worker [bytes]: Kj, Vj, Qi; Oi, S (P takes its place), l, m; three more statistics or a mask's tile.
inline Index sram_bytes(const TileSizes& t) {
  return t.e * (t.Bc * (t.d + t.dv) + t.Br * t.d) + t.a * t.Br * (t.dv + t.Bc + 2) +
         std::max(t.a * 3 * t.Br, t.mask_bytes);
}

template <class Real>
void forward(const Problem<Real>& p, const Options& o, Machine<Real>& machine) {
  const auto [Br, Bc] = block_sizes(p, o, machine, sram_bytes);
  const VisibleTiles visible(p, o, Br, Bc);
  machine.parallel(p.grid(), [&](Worker<Real>& w) {             // one worker: one head
    const ScoreMask mask(p, o, w);
    for (Range rows : tiles(p.Nq, Br)) {                        // Alg. 1, line 2
      if (o.first_touch && !visible.none(rows)) continue;       // its first visit will make O, l, m
      // ---- store
      w.store(visible.none(rows) ? p.O : p.O_acc, rows, w.zeros("O", rows, p.dv));         // no visit: the last store
      w.store(p.l, rows, w.constant("l", rows, 0));
      w.store(p.m, rows, w.constant("m", rows, lowest<Real>));
    }
    for (Range cols : tiles(p.Nk, Bc)) {                        // line 5
      // ---- load
      const Tile Kj = w.load(p.K, cols), Vj = w.load(p.V, cols);               // [Bc,d] [Bc,dv], line 6
      for (Range rows : visible.rows(cols)) {                   // line 7
        // ---- load
        const bool fresh = o.first_touch && visible.first(rows, cols);
        const Tile Qi = w.load(p.Q, rows);                      // [Br,d], line 8
        Tile Oi = fresh ? w.zeros("O", rows, p.dv) : w.load(p.O_acc, rows);                  // [Br,dv]
        Column l = fresh ? w.constant("l", rows, 0) : w.load(p.l, rows);                     // [Br]
        Column m = fresh ? w.constant("m", rows, lowest<Real>) : w.load(p.m, rows);          // [Br]
        // ---- scores
        Tile S = w.sram("S", rows, cols);                       // [Br,Bc]
        S = mask.scale * Qi * Kj.transpose();                   // line 9
        // ---- mask
        mask.apply(S, rows, cols);
        // ---- softmax
        Column m_new = w.sram("m_new", rows);
        m_new = S.rowwise().maxCoeff().cwiseMax(m);             // line 11: the new maximum at once
        auto& P = S.as("P");                                    // the same memory: P takes the place of S
        P = (S.colwise() - m_new).array().exp();                // line 10, under it
        Column l_old = w.sram("l_old", rows), l_new = w.sram("l_new", rows);
        l_old = (m - m_new).array().exp() * l.array();          // the old sum under the new maximum
        l_new = l_old + P.rowwise().sum();                      // line 11, before dropout
        dropout(P, o, w, rows, cols);
        P.round(p.dtype);
        // ---- accumulate
        Oi = l_old.asDiagonal() * Oi;                           // line 12: O <- (l_old·O + P·V) / l_new
        Oi += P * Vj;
        Oi = inverse_of_sum(l_new).asDiagonal() * Oi;
        // ---- store
        w.store(visible.last(rows, cols) ? p.O : p.O_acc, rows, Oi);           // line 12; between visits in fp32
        w.store(p.l, rows, l_new);                              // line 13
        w.store(p.m, rows, m_new);
      }
    }
  });
}

}  // namespace flash::online_softmax

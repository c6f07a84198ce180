// 04 recomputed backward, its forward pass: one number a row instead of two.
// Extends 03. The change: LSE = m + ln l takes the place of l and m, and O stays normalised by powers of e alone.
// Why it helps: e^(S − LSE) is P itself, so that LSE is all that the backward pass needs to make P again.
// What it costs: a logarithm for each row and tile.
// The ledger must now say: one statistic a row instead of two, Θ(N²d²/M) as before.
#pragma once

#include "stages/common/stage.hpp"

namespace flash::recomputed_backward {

/// SRAM of one worker [bytes]: Kj, Vj, Qi; Oi, S (P takes its place), LSE; three more statistics or a mask's tile.
inline Index sram_bytes(const TileSizes& t) {
  return t.e * (t.Bc * (t.d + t.dv) + t.Br * t.d) + t.a * t.Br * (t.dv + t.Bc + 1) + std::max(t.a * 3 * t.Br, t.mask);
}

template <class Real>
void forward(const Problem<Real>& p, const Options& o, Machine<Real>& machine) {
  const auto [Br, Bc] = block_sizes(p, o, machine, sram_bytes);
  const VisibleTiles visible(p, o, Br, Bc);
  machine.parallel(p.grid(), [&, Br = Br, Bc = Bc](Worker<Real>& w) {          // one worker: one head
    const ScoreMask mask(p, o, w);
    for (Range rows : tiles(p.Nq, Br)) {                        // Alg. 1, line 2
      // ---- store
      w.store(visible.none(rows) ? p.O : p.O_acc, rows, w.zeros("O", rows.size(), p.dv));
      w.store(p.LSE, rows, w.constant("LSE", rows.size(), -infinity<Real>));
    }
    for (Range cols : tiles(p.Nk, Bc)) {                        // line 5
      // ---- load
      const Tile Kj = w.load(p.K, cols), Vj = w.load(p.V, cols);               // [Bc,d] [Bc,dv], line 6
      for (Range rows : visible.rows(cols)) {                   // line 7
        // ---- load
        const Tile Qi = w.load(p.Q, rows);                      // [Br,d], line 8
        Tile Oi = w.load(p.O_acc, rows);                        // [Br,dv]
        const Column LSE = w.load(p.LSE, rows);                 // [Br]
        // ---- scores
        Tile S = w.sram("S", rows.size(), cols.size());         // [Br,Bc]
        S = mask.scale * Qi * Kj.transpose();                   // line 9
        // ---- mask
        mask.apply(S, rows, cols);
        // ---- softmax
        Column m = w.sram("m", rows.size());
        m = S.rowwise().maxCoeff().cwiseMax(LSE).cwiseMax(lowest<Real>);
        auto& P = S.as("P");                                    // P takes the place of S
        P = (S.colwise() - m).array().exp();
        Column LSE_new = w.sram("LSE_new", rows.size()), finite = w.sram("finite LSE_new", rows.size());
        LSE_new = m.array() + ((LSE - m).array().exp() + P.rowwise().sum().array()).log();
        finite = LSE_new.cwiseMax(lowest<Real>);                // −∞ for a row that has seen no key
        P = (m - finite).array().exp().matrix().asDiagonal() * P;              // e^(S − LSE_new)
        dropout(P, o, w, rows, cols);
        P.round(p.dtype);
        // ---- accumulate
        Oi = (LSE - finite).array().exp().matrix().asDiagonal() * Oi;          // O <- e^(LSE − LSE_new)·O + P·V
        Oi += P * Vj;
        // ---- store
        w.store(visible.last(rows, cols) ? p.O : p.O_acc, rows, Oi);           // between visits O is fp32
        w.store(p.LSE, rows, LSE_new);
      }
    }
  });
}

}  // namespace flash::recomputed_backward

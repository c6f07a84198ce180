// 04 recomputed backward (Dao et al. 2022, Algorithm 4), from Q, K, V, O, dO and LSE.
// Extends 01. The change: P is made again from LSE tile by tile instead of kept, and dP and dS stay in SRAM.
// Why it helps: nothing of size N² is kept or moved.
// What it costs: the scores and their exponentials a second time, and dQ comes and goes for each tile of keys.
// The ledger must now say: Θ(N²d²/M) elements instead of Θ(N²).
#pragma once

#include "stages/common/stage.hpp"

namespace flash::recomputed_backward {

/// SRAM of one worker [bytes]: Kj, Vj, Qi, Oi, dOi; dKj, dVj, dQi, LSE, D; S, P, dP (dS in its place); P after dropout.
inline Index backward_sram_bytes(const TileSizes& t) {
  return t.e * (t.Bc * (t.d + t.dv) + t.Br * (t.d + 2 * t.dv)) + t.a * (t.Bc * (t.d + t.dv) + t.Br * (t.d + 2)) +
         t.a * 3 * t.Br * t.Bc + t.dropout_bytes;
}

template <class Real>
void backward(const Problem<Real>& p, const Options& o, Machine<Real>& machine) {
  const auto [Br, Bc] = block_sizes(p, o, machine, backward_sram_bytes);
  const VisibleTiles visible(p, o, Br, Bc);
  machine.parallel(p.kv_grid(), [&](Worker<Real>& w) {          // one worker: one KV head
    for (Range cols : tiles(p.Nk, Bc)) {                        // Alg. 4, line 5
      // ---- store
      w.store(p.dK, cols, w.zeros("dK", cols, p.d));
      w.store(p.dV, cols, w.zeros("dV", cols, p.dv));
    }
  });
  machine.parallel(p.grid(), [&](Worker<Real>& w) {             // one worker: one head
    const ScoreMask mask(p, o, w);
    for (Range rows : tiles(p.Nq, Br)) {                        // line 5
      // ---- store
      w.store(visible.none(rows) ? p.dQ : p.dQ_acc, rows, w.zeros("dQ", rows, p.d));         // no visit: the last store
    }
    for (Range cols : tiles(p.Nk, Bc)) {                        // line 6
      // ---- load
      const Tile Kj = w.load(p.K, cols), Vj = w.load(p.V, cols);               // line 7
      Tile dKj = w.zeros("dK", cols, p.d), dVj = w.zeros("dV", cols, p.dv);                 // [Bc,d] [Bc,dv], line 8
      for (Range rows : visible.rows(cols)) {                   // line 9
        // ---- load
        const Tile dOi = w.load(p.dO, rows);                    // [Br,dv], line 10
        const Tile Qi = w.load(p.Q, rows), Oi = w.load(p.O, rows);             // [Br,d] [Br,dv]
        Tile dQi = w.load(p.dQ_acc, rows);                      // [Br,d]
        const Column LSE = w.load(p.LSE, rows);                 // [Br]
        // ---- scores
        Tile S = w.sram("S", rows, cols);                       // [Br,Bc]
        S = mask.scale * Qi * Kj.transpose();                   // line 11
        // ---- mask
        mask.apply(S, rows, cols);                              // line 12
        // ---- probabilities
        Tile P = w.sram("P", rows, cols);                       // [Br,Bc]
        P = (S.colwise() - LSE.cwiseMax(lowest<Real>)).array().exp();          // line 13, with LSE
        // ---- dV
        const Tile Z_P = dropped(P, o, w, p.dtype, rows, cols); // line 15
        dVj += Z_P.transpose() * dOi;                           // line 16
        // ---- dP
        Tile dP = w.sram("dP", rows, cols);                     // [Br,Bc]
        dP = dOi * Vj.transpose();                              // line 17
        dropout(dP, o, w, rows, cols);                          // line 18
        // ---- dS
        Column D = w.sram("D", rows);                           // [Br]
        D = dOi.cwiseProduct(Oi).rowwise().sum();               // line 19
        auto& dS = dP.as("dS");                                 // the same memory: dS takes the place of dP
        dS = P.cwiseProduct(dP.colwise() - D);                  // line 20
        mask.derivative(dS, S, rows, cols);                     // of softcap
        dS.round(p.dtype);                                      // as the matrix unit takes it
        // ---- dQ
        dQi += mask.scale * dS * Kj;                            // line 21
        w.store(visible.last(rows, cols) ? p.dQ : p.dQ_acc, rows, dQi);        // between visits in fp32
        // ---- dK
        dKj += mask.scale * dS.transpose() * Qi;                // line 22
      }
      // ---- store
      p.grouped() ? w.accumulate(p.dK, cols, dKj) : w.store(p.dK, cols, dKj);  // line 24
      p.grouped() ? w.accumulate(p.dV, cols, dVj) : w.store(p.dV, cols, dVj);
    }
  });
}

}  // namespace flash::recomputed_backward

// 01 materialized, its backward pass (Dao et al. 2022, Algorithm 3), with the P that the forward pass left in HBM.
// Extends nothing. One product after the other over whole matrices; dP and dS go to HBM and come back.
// Why it matters: everything later has to give the same gradients.
// What it costs: P has to be kept, memory of size N², and traffic of the same size.
// The ledger must say: 7N² + 8Nd elements, Θ(N² + Nd).
#pragma once

#include "stages/common/stage.hpp"

namespace flash::materialized {

template <class Real>
void backward(const Problem<Real>& p, const Options& o, Machine<Real>& machine) {
  const Range rows{0, p.Nq}, cols{0, p.Nk};
  if (p.grouped()) machine.parallel(p.kv_grid(), [&](Worker<Real>& w) {        // several heads add to one dK, dV
    // ---- store
    w.store(p.dK, cols, w.zeros("dK", cols, p.d));
    w.store(p.dV, cols, w.zeros("dV", cols, p.dv));
  });
  machine.parallel(p.grid(), [&](Worker<Real>& w) {             // one worker: one head
    const ScoreMask mask(p, o, w);
    Tile dKj = w.zeros("dK", cols, p.d), dVj = w.zeros("dV", cols, p.dv);                 // [Bc,d] [Bc,dv]
    {
      // ---- load
      const Tile dOi = w.load(p.dO, rows);                      // [Br,dv]
      Tile P = w.load(p.P, rows, cols);                         // [Br,Bc]
      // ---- dV
      const Tile Z_P = dropped(P, o, w, p.dtype, rows, cols);
      dVj += Z_P.transpose() * dOi;                             // Alg. 3, line 1
    }
    {
      // ---- load
      const Tile dOi = w.load(p.dO, rows), Vj = w.load(p.V, cols);
      // ---- dP
      Tile dP = w.sram("dP", rows, cols);                       // [Br,Bc]
      dP = dOi * Vj.transpose();                                // line 2
      dropout(dP, o, w, rows, cols);
      // ---- store
      w.store(p.dP, rows, cols, dP);
    }
    {
      // ---- load
      const Tile P = w.load(p.P, rows, cols);
      Tile dP = w.load(p.dP, rows, cols);
      // ---- dS
      Column D = w.sram("D", rows);                             // [Br]
      D = P.cwiseProduct(dP).rowwise().sum();
      auto& dS = dP.as("dS");                                   // the same memory: dS takes the place of dP
      dS = P.cwiseProduct(dP.colwise() - D);                    // line 3
      if (o.softcap > 0) mask.derivative(dS, w.load(p.S, rows, cols), rows, cols);  // of softcap
      // ---- store
      w.store(p.dS, rows, cols, dS);
    }
    {
      // ---- load
      const Tile dS = w.load(p.dS, rows, cols), Kj = w.load(p.K, cols);        // [Bc,d]
      // ---- dQ
      Tile dQi = w.zeros("dQ", rows, p.d);                      // [Br,d]
      dQi += mask.scale * dS * Kj;                              // line 4
      w.store(p.dQ, rows, dQi);
    }
    {
      // ---- load
      const Tile dS = w.load(p.dS, rows, cols), Qi = w.load(p.Q, rows);
      // ---- dK
      dKj += mask.scale * dS.transpose() * Qi;                  // line 5
    }
    // ---- store
    p.grouped() ? w.accumulate(p.dK, cols, dKj) : w.store(p.dK, cols, dKj);
    p.grouped() ? w.accumulate(p.dV, cols, dVj) : w.store(p.dV, cols, dVj);
  });
}

}  // namespace flash::materialized

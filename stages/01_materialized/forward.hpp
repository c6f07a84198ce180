// 01 materialized: standard attention (Dao et al. 2022, Algorithm 0).
// Extends nothing. Three passes over whole matrices, as a library runs them: one tile is all, Br = Nq and Bc = Nk.
// Why it matters: everything later has to give the same O.
// What it costs: S and P in HBM, memory and traffic of size N². SRAM is taken to be as large as a pass needs.
// The ledger must say: 4N² + 4Nd elements, Θ(N² + Nd).
#pragma once

#include "stages/common/stage.hpp"

namespace flash::materialized {

// == pass: scores
template <class Real>
void scores(const Problem<Real>& p, const ScoreMask<Real>& mask, Worker<Real>& w, Range rows, Range cols) {
  // ---- load
  const Tile Qi = w.load(p.Q, rows), Kj = w.load(p.K, cols);    // [Br,d] [Bc,d]
  // ---- scores
  Tile S = w.sram("S", rows, cols);                             // [Br,Bc]
  S = mask.scale * Qi * Kj.transpose();                         // Alg. 0, line 1
  // ---- mask
  mask.apply(S, rows, cols);
  // ---- store
  w.store(p.S, rows, cols, S);
}

// == pass: softmax
template <class Real>
void softmax(const Problem<Real>& p, Worker<Real>& w, Range rows, Range cols) {
  // ---- load
  Tile S = w.load(p.S, rows, cols);
  // ---- softmax
  Column m = w.constant("m", rows, lowest<Real>), l = w.constant("l", rows, 0);                // [Br]
  if (cols.size() > 0) m = S.rowwise().maxCoeff().cwiseMax(m);  // Alg. 0, line 2; no keys: no maximum
  auto& P = S.as("P");                                          // the same memory: P takes the place of S
  P = (S.colwise() - m).array().exp();
  l = P.rowwise().sum();
  P = inverse_of_sum(l).asDiagonal() * P;
  // ---- store
  w.store(p.P, rows, cols, P);
}

// == pass: output
template <class Real>
void output(const Problem<Real>& p, const Options& o, Worker<Real>& w, Range rows, Range cols) {
  Tile Oi = w.zeros("O", rows, p.dv);                           // [Br,dv]
  // ---- load
  Tile P = w.load(p.P, rows, cols);
  const Tile Vj = w.load(p.V, cols);                            // [Bc,dv]
  // ---- softmax
  dropout(P, o, w, rows, cols);
  P.round(p.dtype);
  // ---- accumulate
  Oi += P * Vj;                                                 // Alg. 0, line 3
  // ---- store
  w.store(p.O, rows, Oi);
}

template <class Real>
void forward(const Problem<Real>& p, const Options& o, Machine<Real>& machine) {
  const Range rows{0, p.Nq}, cols{0, p.Nk};
  machine.parallel(p.grid(), [&](Worker<Real>& w) {             // one worker: one head
    const ScoreMask mask(p, o, w);
    scores(p, mask, w, rows, cols);
    softmax(p, w, rows, cols);
    output(p, o, w, rows, cols);
  });
}

}  // namespace flash::materialized

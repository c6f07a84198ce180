// 02 tiling: the same three passes by tiles that fit in SRAM.
// Extends 01. The change: every pass walks Br × Bc tiles; a tile of the result stays in SRAM until it is done.
// Why it helps: it runs with the SRAM there is, and tiles that no query sees are skipped.
// What it costs: Q and K come again for every tile of S, V for every row of tiles; S is read twice for the softmax.
// The ledger must now say: 5N² + (2Tr + Tc)Nd + Nd elements: honest, and still N² however large M is.
#pragma once

#include "stages/common/stage.hpp"

namespace flash::tiling {

/// SRAM of one worker [bytes], the fullest pass: Qi, Kj, S and an explicit mask's tile; S and statistics; P, Vj, Oi.
inline Index sram_bytes(const TileSizes& t) {
  return std::max({t.e * (t.Br + t.Bc) * t.d + t.a * t.Br * t.Bc + t.mask_bytes, t.e * t.Br * t.Bc + t.a * 3 * t.Br,
                   t.e * t.Bc * (t.Br + t.dv) + t.a * t.Br * t.dv});
}

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
void softmax(const Problem<Real>& p, Worker<Real>& w, Range rows, const VisibleTiles& visible) {
  Column m = w.constant("m", rows, lowest<Real>), l = w.constant("l", rows, 0);                // [Br]
  for (Range cols : visible.cols(rows)) {                       // first sweep: maximum and sum
    // ---- load
    const Tile S = w.load(p.S, rows, cols);
    // ---- softmax
    Column m_new = w.sram("m_new", rows);
    m_new = S.rowwise().maxCoeff().cwiseMax(m);                 // Alg. 0, line 2
    l = (m - m_new).array().exp() * l.array() + (S.colwise() - m_new).array().exp().rowwise().sum();
    m = m_new;
  }
  for (Range cols : visible.cols(rows)) {                       // second sweep: normalise
    // ---- load
    Tile S = w.load(p.S, rows, cols);
    // ---- softmax
    auto& P = S.as("P");                                        // the same memory: P takes the place of S
    P = (S.colwise() - m).array().exp();
    P = inverse_of_sum(l).asDiagonal() * P;
    // ---- store
    w.store(p.P, rows, cols, P);
  }
}

// == pass: output
template <class Real>
void output(const Problem<Real>& p, const Options& o, Worker<Real>& w, Range rows, const VisibleTiles& visible) {
  Tile Oi = w.zeros("O", rows, p.dv);                           // [Br,dv]
  for (Range cols : visible.cols(rows)) {
    // ---- load
    Tile P = w.load(p.P, rows, cols);
    const Tile Vj = w.load(p.V, cols);                          // [Bc,dv]
    // ---- softmax
    dropout(P, o, w, rows, cols);
    P.round(p.dtype);
    // ---- accumulate
    Oi += P * Vj;                                               // Alg. 0, line 3
  }
  // ---- store
  w.store(p.O, rows, Oi);
}

template <class Real>
void forward(const Problem<Real>& p, const Options& o, Machine<Real>& machine) {
  const auto [Br, Bc] = block_sizes(p, o, machine, sram_bytes);
  const VisibleTiles visible(p, o, Br, Bc);
  machine.parallel(p.grid(), [&](Worker<Real>& w) {             // one worker: one head
    const ScoreMask mask(p, o, w);
    for (Range rows : tiles(p.Nq, Br))
      for (Range cols : visible.cols(rows)) scores(p, mask, w, rows, cols);
    for (Range rows : tiles(p.Nq, Br)) softmax(p, w, rows, visible);
    for (Range rows : tiles(p.Nq, Br)) output(p, o, w, rows, visible);
  });
}

}  // namespace flash::tiling

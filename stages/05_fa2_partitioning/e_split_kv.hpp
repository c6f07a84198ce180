// 05e split keys: for a few queries and many keys, as where a model writes one word after the other.
// Extends 05a. The change: a tile's keys are shared out to several workers, and one more launch combines the parts.
// Why it helps: one query a head is work for one worker, and most of a GPU would have none.
// What it costs: each part reads Q, and its O and LSE go to HBM in fp32 and come back.
// The ledger must now say: Se·Nd + (2Se+1)N(d+1) + 2Tr·Nd with Se parts; with one what it said before.
#pragma once

#include "stages/common/stage.hpp"

namespace flash::fa2_partitioning::e_split_kv {

/// SRAM of one worker [bytes]: Kj, Vj, Qi; Oi, S (P takes its place), l, m; two more statistics or a mask's tile.
/// Or what a combining worker holds: two O, five statistics.
inline Index sram_bytes(const TileSizes& t) {
  const Index part = t.e * (t.Bc * (t.d + t.dv) + t.Br * t.d) + t.a * t.Br * (t.dv + t.Bc + 2) +
                     std::max(t.a * 2 * t.Br, t.mask_bytes);
  return t.splits > 1 ? std::max(part, t.a * t.Br * (2 * t.dv + 5)) : part;
}

template <class Real>
void combine(const Problem<Real>& p, const Parts<Real>& parts, Index Br, Machine<Real>& machine);

template <class Real>
void forward(const Problem<Real>& p, const Options& o, Machine<Real>& machine) {
  const auto [Br, Bc] = block_sizes(p, o, machine, sram_bytes, Long::rows);
  const VisibleTiles visible(p, o, Br, Bc);
  const Parts<Real> parts(p, o.splits, Br, Bc);
  machine.parallel(p.grid(parts.blocks()), [&](Worker<Real>& w) {               // one worker: a part of a tile's keys
    const ScoreMask mask(p, o, w);
    const auto [rows, keys] = parts.share(w.block);             // Alg. 1, line 3
    // ---- load
    const Tile Qi = w.load(p.Q, visible.seen_rows(rows, keys));                 // [Br,d], line 4
    Tile Oi = w.zeros("O", rows, p.dv);                         // [Br,dv], line 5
    Column l = w.constant("l", rows, 0), m = w.constant("m", rows, lowest<Real>);           // [Br]
    for (Range cols : visible.cols(rows, keys)) {               // line 6
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
    parts.count == 1 ? w.store(p.O, rows, Oi) : w.store(parts.partial_O, parts.rows(rows, keys), Oi);   // line 14
    parts.count == 1 ? w.store(p.LSE, rows, LSE) : w.store(parts.partial_LSE, parts.rows(rows, keys), LSE);
  });
  if (parts.count > 1) combine(p, parts, Br, machine);
}

// == pass: combine
template <class Real>
void combine(const Problem<Real>& p, const Parts<Real>& parts, Index Br, Machine<Real>& machine) {
  machine.parallel(p.grid(ceil_div(p.Nq, Br)), [&](Worker<Real>& w) {           // one worker: one tile of rows
    const Range rows = tile_range(w.block, p.Nq, Br);
    Tile Oi = w.zeros("O", rows, p.dv);                         // [Br,dv]
    Column l = w.constant("l", rows, 0), m = w.constant("m", rows, lowest<Real>);           // [Br]
    for (Range part : parts.all(rows)) {                        // as if it were a key: LSE is its score, O its value
      // ---- load
      const Tile O = w.load(parts.partial_O, part);             // [Br,dv]
      Column P = w.load(parts.partial_LSE, part);               // [Br]
      // ---- softmax
      Column m_new = w.sram("m_new", rows), alpha = w.sram("alpha", rows);
      m_new = P.cwiseMax(m);
      P = (P - m_new).array().exp();
      alpha = (m - m_new).array().exp();
      l = alpha.cwiseProduct(l) + P;
      m = m_new;
      // ---- accumulate
      Oi = alpha.asDiagonal() * Oi;
      Oi += P.asDiagonal() * O;
    }
    Oi = inverse_of_sum(l).asDiagonal() * Oi;
    l = m.array() + l.array().log();                            // LSE
    // ---- store
    w.store(p.O, rows, Oi);
    w.store(p.LSE, rows, l);
  });
}

}  // namespace flash::fa2_partitioning::e_split_kv

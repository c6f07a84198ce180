// 05a loop swap, its backward pass (Dao 2023, Algorithm 2), from Q, K, V, O, dO and LSE.
// Extends 04. The change: a tile of keys is a worker, their parts of dQ are added up in HBM, and D is made before.
// Why it helps: one head gives work to many workers, heads that share K and V share the loads, and O is read once.
// What it costs: two more launches, for D and dQ's zeros and for dQ's own format; sums in any order, or else in turns.
// The ledger must now say: 16 N²d²/M elements in the place of 20.
#pragma once

#include "stages/common/stage.hpp"

namespace flash::fa2_partitioning::a_loop_swap {

/// SRAM of one worker [bytes]: Kj, Vj, Qi, dOi; dKj, dVj, dQi, LSE, D; S, P, dP (dS in its place); P after dropout. Or
/// what the launch for D holds: dOi, Oi; D.
inline Index backward_sram_bytes(const TileSizes& t) {
  return std::max(t.e * (t.Bc + t.Br) * (t.d + t.dv) + t.a * (t.Bc * (t.d + t.dv) + t.Br * (t.d + 2)) +
                      t.a * 3 * t.Br * t.Bc + t.dropout_bytes,
                  t.e * 2 * t.Br * t.dv + t.a * t.Br);
}

template <class Real>
void backward(const Problem<Real>& p, const Options& o, Machine<Real>& machine) {
  const auto [Br, Bc] = block_sizes(p, o, machine, backward_sram_bytes);
  const VisibleTiles visible(p, o, Br, Bc);
  const Index Tr = ceil_div(p.Nq, Br), Tc = ceil_div(p.Nk, Bc);
  const auto turn = p.turns(Tr);                                // whose turn it is to add to a tile of dQ
  machine.parallel(p.grid(Tr), [&](Worker<Real>& w) {           // one worker: one tile of rows
    const Range rows = tile_range(w.block, p.Nq, Br);
    // ---- store
    w.store(p.dQ_acc, rows, w.zeros("dQ", rows, p.d));          // Alg. 2, line 3
    if (o.deterministic) w.store(turn, tile_range(w.block, Tr, 1), w.constant("turn", 1, 0));
    // ---- load
    const Tile dOi = w.load(p.dO, rows), Oi = w.load(p.O, rows);                // [Br,dv]
    // ---- dS
    Column D = w.sram("D", rows);                               // [Br]
    D = dOi.cwiseProduct(Oi).rowwise().sum();                   // line 4
    // ---- store
    w.store(p.D, rows, D);
  });
  machine.parallel(p.kv_grid(Tc), [&](Worker<Real>& kv) {       // one worker: one tile of a KV head's keys
    const Range cols = tile_range(kv.block, p.Nk, Bc);          // line 5
    // ---- load
    const Tile Kj = kv.load(p.K, visible.seen_cols(cols)), Vj = kv.load(p.V, visible.seen_cols(cols));  // line 6
    Tile dKj = kv.zeros("dK", cols, p.d), dVj = kv.zeros("dV", cols, p.dv);     // [Bc,d] [Bc,dv], line 7
    for (Worker<Real> w : kv.query_heads(p.heads)) {            // that share the KV head
      const ScoreMask mask(p, o, w);
      for (Range rows : visible.rows(cols)) {                   // line 8
        // ---- load
        const Tile dOi = w.load(p.dO, rows);                    // [Br,dv], line 9
        const Tile Qi = w.load(p.Q, rows);                      // [Br,d]
        const Column LSE = w.load(p.LSE, rows), D = w.load(p.D, rows);          // [Br]
        // ---- scores
        Tile S = w.sram("S", rows, cols);                       // [Br,Bc]
        S = mask.scale * Qi * Kj.transpose();                   // line 10
        // ---- mask
        mask.apply(S, rows, cols);
        // ---- probabilities
        Tile P = w.sram("P", rows, cols);                       // [Br,Bc]
        P = (S.colwise() - LSE.cwiseMax(lowest<Real>)).array().exp();           // line 11, with LSE
        // ---- dV
        const Tile Z_P = dropped(P, o, w, p.dtype, rows, cols);
        dVj += Z_P.transpose() * dOi;                           // line 12
        // ---- dP
        Tile dP = w.sram("dP", rows, cols);                     // [Br,Bc]
        dP = dOi * Vj.transpose();                              // line 13
        dropout(dP, o, w, rows, cols);
        // ---- dS
        auto& dS = dP.as("dS");                                 // the same memory: dS takes the place of dP
        dS = P.cwiseProduct(dP.colwise() - D);                  // line 14
        mask.derivative(dS, S, rows, cols);                     // of softcap
        dS.round(p.dtype);                                      // as the matrix unit takes it
        // ---- dQ
        Tile dQi = w.sram("dQ", rows, p.d);                     // [Br,d]
        dQi = mask.scale * dS * Kj;                             // line 15
        if (o.deterministic) w.take_turn(turn, rows.begin / Br);
        w.accumulate(p.dQ_acc, rows, dQi);                      // atomic, in fp32
        // ---- dK
        dKj += mask.scale * dS.transpose() * Qi;                // line 16
      }
    }
    // ---- store
    kv.store(p.dK, cols, dKj);                                  // line 18
    kv.store(p.dV, cols, dVj);
  });
  machine.parallel(p.grid(Tr), [&](Worker<Real>& w) {           // one worker: one tile of rows
    const Range rows = tile_range(w.block, p.Nq, Br);
    // ---- load
    const Tile dQi = w.load(p.dQ_acc, rows);                    // in fp32
    // ---- store
    w.store(p.dQ, rows, dQi);                                   // in its own format
  });
}

}  // namespace flash::fa2_partitioning::a_loop_swap

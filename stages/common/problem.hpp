// Everything of one attention problem that lives in HBM. Tensors that a stage does not touch take no memory.
#pragma once

#include "sim/memory/machine.hpp"
#include "stages/common/inputs.hpp"

namespace flash {

/// The tensors of one problem, in the numbers of a run: float, or double in fp64.
template <class Real>
struct Problem : Shape {
  using Matrix = sim::HbmMatrix<Real>;
  using Vector = sim::HbmVector<Real>;

  Format dtype;
  Matrix Q, K, V;              ///< inputs [Nq,d] [Nk,d] [Nk,dv] of each head or KV head
  Matrix mask;                 ///< explicit mask [Nq,Nk], one byte an element, nonzero = may attend; empty: none
  Vector slopes;               ///< ALiBi, one a head; empty: none
  Matrix O;                    ///< [Nq,dv]
  Vector LSE;                  ///< [Nq] log-sum-exp of the scaled scores, fp32: what 04 keeps for the backward pass
  Vector D;                    ///< [Nq] rowsum(dO∘O), fp32
  Matrix S, P;                 ///< [Nq,Nk] of 01 and 02; 01 keeps them for the backward pass
  Vector l, m;                 ///< [Nq] row sum and row maximum of 03, fp32
  Matrix O_acc, dQ_acc;        ///< fp32 accumulators in 16-bit runs; O and dQ themselves otherwise
  Matrix dO, dQ, dK, dV;       ///< gradients, like O, Q, K, V
  Matrix dP, dS;               ///< [Nq,Nk] of 01's backward pass
  std::vector<std::uint8_t> block_mask;  ///< [Tr,Tc], nonzero = computed; the launch's list of tiles, not traffic

  explicit Problem(const Inputs& in) : Shape(in.shape), dtype(in.dtype), block_mask(in.block_mask) {
    using enum sim::Role;
    Q = matrix("Q", input, heads, Nq, d, in.q);
    K = matrix("K", input, kv_heads, Nk, d, in.k);
    V = matrix("V", input, kv_heads, Nk, dv, in.v);
    dO = matrix("dO", input, heads, Nq, dv, in.dout);
    O = matrix("O", output, heads, Nq, dv);
    dQ = matrix("dQ", output, heads, Nq, d);
    dK = matrix("dK", output, kv_heads, Nk, d);
    dV = matrix("dV", output, kv_heads, Nk, dv);
    S = matrix("S", extra, heads, Nq, Nk);
    P = matrix("P", extra, heads, Nq, Nk);
    dP = matrix("dP", extra, heads, Nq, Nk);
    dS = matrix("dS", extra, heads, Nq, Nk);
    O_acc = is_16_bit(dtype) ? Matrix(info("O_acc", extra, Format::fp32, batch, heads, Nq, dv)) : O;
    dQ_acc = is_16_bit(dtype) ? Matrix(info("dQ_acc", extra, Format::fp32, batch, heads, Nq, d)) : dQ;
    l = Vector(info("l", extra, accumulator(dtype), batch, heads, Nq, 1));
    m = Vector(info("m", extra, accumulator(dtype), batch, heads, Nq, 1));
    LSE = Vector(info("LSE", extra, accumulator(dtype), batch, heads, Nq, 1));
    D = Vector(info("D", extra, accumulator(dtype), batch, heads, Nq, 1));
    if (!in.mask.empty()) {
      mask = Matrix(info("mask", input, Format::u8, in.mask_batch, in.mask_heads, Nq, Nk));
      std::ranges::copy(in.mask, mask.host().begin());
    }
    if (!in.slopes.empty()) {
      slopes = Vector(info("slopes", input, Format::fp32, 1, heads, 1, 1));
      std::ranges::copy(in.slopes, slopes.host().begin());
    }
  }

  /// What each part of the keys gives, [parts·Nq,dv] and [parts·Nq] in fp32: rows of part s begin at s·Nq.
  Matrix partial_O(Index parts) const {
    return Matrix(info("partial_O", sim::Role::extra, accumulator(dtype), batch, heads, parts * Nq, dv));
  }
  Vector partial_LSE(Index parts) const {
    return Vector(info("partial_LSE", sim::Role::extra, accumulator(dtype), batch, heads, parts * Nq, 1));
  }
  /// [Tr], four bytes each: whose turn it is to add to a tile of rows.
  Vector turns(Index Tr) const { return Vector(info("turn", sim::Role::extra, Format::fp32, batch, heads, Tr, 1)); }

  /// One worker for each head, or one for each of its blocks.
  sim::Grid grid(Index blocks = 1) const { return {batch, heads, kv_heads, blocks}; }
  /// The same of each KV head.
  sim::Grid kv_grid(Index blocks = 1) const { return {batch, kv_heads, kv_heads, blocks}; }
  bool grouped() const { return kv_heads != heads; }                 ///< several query heads add to one dK, dV

 private:
  static sim::TensorInfo info(const char* name, sim::Role role, Format format, Index batch, Index heads, Index rows,
                              Index cols) {
    return {name, format, role, batch, heads, rows, cols};
  }
  Matrix matrix(const char* name, sim::Role role, Index heads_of_it, Index rows, Index cols,
                const std::vector<double>& values = {}) const {
    Matrix tensor(info(name, role, dtype, batch, heads_of_it, rows, cols));
    if (!values.empty()) std::ranges::copy(values, tensor.host().begin());
    return tensor;
  }
};

}  // namespace flash

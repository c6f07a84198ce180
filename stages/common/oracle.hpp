// The oracle: attention in fp64, written as the formulas stand, with rules of its own. What it gives is the product's
// answer; every stage and kernel is compared with it. It shares nothing with what it judges.
//
//   x = scale·q·k                      s = c·tanh(x/c) (softcap), then − slope·|i + (Nk − Nq) − j| (ALiBi)
//   P = softmax of s over the keys that the row sees, LSE = ln Σ e^s
//   O = Σ_j P_ij·Z_ij·V_j              Z: dropout, 0 or 1/(1−p)
//   dV_j = Σ_i P_ij·Z_ij·dO_i          dP_ij = Z_ij·(dO_i·V_j), D_i = dO_i·O_i, dS = P∘(dP − D)
//   dQ_i = scale·Σ_j dS_ij·(ds/dx)·K_j  dK_j = scale·Σ_i dS_ij·(ds/dx)·Q_i   ds/dx = 1 − tanh²
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "stages/common/inputs.hpp"

namespace flash {

/// Philox4x32-10 (Salmon, Moraes, Dror, Shaw 2011): four random words for a counter under a key.
std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter, std::uint64_t key);

/// Who sees whom, and what ALiBi and dropout do to a pair: the oracle's own rules.
class OracleRules {
 public:
  const Inputs& inputs;
  const Options options;

  /// `inputs` must outlive the rules. Throws Refused where its arrays do not fit the shape or heads is no multiple of
  /// kv_heads.
  OracleRules(const Inputs& inputs, const Options& options);

  Index kv_head(Index h) const;
  bool sees(Index b, Index h, Index i, Index j) const;
  std::vector<Index> visible_keys(Index b, Index h, Index i) const;  ///< ascending
  double alibi(Index h, Index i, Index j) const;                     ///< what is subtracted from the score
  double dropout_factor(Index b, Index h, Index i, Index j) const;   ///< Z_ij: 0 or 1/(1−p); 1 without dropout
  /// Are query i's own q and the k and v of these keys finite?
  bool finite(Index b, Index h, Index i, const std::vector<Index>& keys) const;

 private:
  std::vector<bool> finite_q_, finite_k_, finite_v_;  // by row of the array
};

/// Query row i of head h: one entry for each key that it sees.
struct SoftmaxRow {
  std::vector<Index> keys;
  std::vector<double> s;      ///< scores, after scale, softcap and ALiBi
  std::vector<double> ds_dx;  ///< derivative of s with respect to the scaled product: 1 without softcap
  std::vector<double> p;      ///< softmax of s, sums to 1; NaN where the row sees a number that is not finite
  std::vector<double> z;      ///< dropout's factors
  double lse;                 ///< −inf where the row sees no key; NaN like p
};

SoftmaxRow softmax_row(const OracleRules& rules, Index b, Index h, Index i);

/// O and LSE, and with `backward` also dQ, dK, dV for `inputs.dout`. A row that sees no key has O = 0, LSE = −inf and
/// dQ = 0; a key that no query sees has dK = dV = 0. A number that is not finite makes NaN of O, LSE and dQ of the rows
/// that see it and of what they add to dK and dV, and of nothing else: pairs that are not visible are skipped, never
/// multiplied by zero. Throws Refused where the arrays do not fit the shape.
Outputs oracle(const Inputs& inputs, const Options& options, bool backward);

}  // namespace flash

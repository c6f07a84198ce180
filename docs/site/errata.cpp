#include "docs/site/errata.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

#include "sim/theory/closed_forms.hpp"
#include "stages/common/draw.hpp"
#include "stages/common/oracle.hpp"
#include "stages/common/run.hpp"

namespace flash::site {
namespace {

constexpr const char* fa1 = "FlashAttention, arXiv 2205.14135";
constexpr const char* fa2 = "FlashAttention-2, arXiv 2307.08691";
constexpr const char* fa3 = "FlashAttention-3, arXiv 2407.08608";

// ---- the hand example: N = 4, d = 2, scale = 1, tiles of 2 × 2

Options hand_options() {
  Options o;
  o.scale = 1;
  o.br = o.bc = 2;
  return o;
}

RunResult run_hand(const char* stage) {
  RunConfig config;
  config.backward = find_stage(stage).has_backward();
  return run(find_stage(stage), example_hand(Format::fp64), hand_options(), config);
}

/// dQ of row 0, column 0, with `D` subtracted from dP or not.
double hand_dq(bool with_D) {
  const Inputs in = example_hand(Format::fp64);
  const OracleRules rules(in, hand_options());
  const SoftmaxRow row = softmax_row(rules, 0, 0, 0);
  std::vector<double> dP;
  double D = 0, dq = 0;
  for (Index j = 0; j < in.shape.Nk; ++j) {
    dP.push_back(in.dout[0] * in.v[2 * j] + in.dout[1] * in.v[2 * j + 1]);
    D += row.p[j] * dP[j];
  }
  for (Index j = 0; j < in.shape.Nk; ++j) dq += row.p[j] * (dP[j] - (with_D ? D : 0)) * in.k[2 * j];
  return dq;
}

Erratum D_missing() {
  return {"dS = P∘dP",
          "popular summaries",
          "dS = P∘(dP − D) with D = rowsum(dO∘O)",
          "dQ of the hand example, row 0, column 0",
          hand_dq(false),
          hand_dq(true),
          run_hand("04").outputs.dq[0]};
}

// ---- two keys with scores 0 and ln 3, values 1 and 0, one to a tile

double two_keys_by_stage_03() {
  Inputs in{{1, 1, 1, 1, 2, 1, 1}, Format::fp64, {1}, {0, std::log(3.0)}, {1, 0}, {}, {}, {}, 1, 1, {}};
  Options o;
  o.scale = 1;
  o.br = o.bc = 1;
  return run(find_stage("03"), in, o, {}).outputs.o[0];
}

/// O after both keys, when the weight that the old part gets is `weight` and the sum is l.
double two_keys(double weight, double l) { return (weight * 1 + 1 * 0) / l; }

Erratum inverse_of_sums() {
  const double l_old = 1, l_new = std::exp(-std::log(3.0)) * 1 + 1;
  return {"the old output is weighed with diag(l/l′)⁻¹",
          std::string(fa2) + ", section 2.3.1",
          "its weight is l·e^(m − m′)/l′",
          "O for scores 0, ln 3 and values 1, 0",
          1 / (l_old / l_new) * 1,
          two_keys(std::exp(-std::log(3.0)) * l_old, l_new),
          two_keys_by_stage_03()};
}

Erratum inverse_of_rescaling(const std::string& where) {
  const double l = std::exp(-std::log(3.0)) + 1;
  return {"O ← diag(e^(m − m′))⁻¹·O + P·V",
          where,
          "the factor e^(m − m′) is multiplied, not inverted",
          "O for scores 0, ln 3 and values 1, 0",
          two_keys(1 / std::exp(-std::log(3.0)), l),
          two_keys(std::exp(-std::log(3.0)), l),
          two_keys_by_stage_03()};
}

// ---- sums over tiles

/// O of the hand example, row 0, column 0, from the keys up to `end`.
double hand_output(Index end) {
  const Inputs in = example_hand(Format::fp64);
  double sum = 0, o = 0;
  for (Index j = 0; j < end; ++j) {
    const double p = std::exp(in.q[0] * in.k[2 * j] + in.q[1] * in.k[2 * j + 1]);
    sum += p;
    o += p * in.v[2 * j];
  }
  return o / sum;
}

Erratum last_tile() {
  return {"the loop over key tiles runs for 1 ≤ j < Tc − 1",
          std::string(fa3) + ", Algorithm 2",
          "it runs to j = Tc − 1; the last P·V comes after it",
          "O of the hand example, row 0, column 0",
          hand_output(2),
          hand_output(4),
          run_hand("03").outputs.o[0]};
}

/// Two parts of a row, merged by their LSE, as if that were a logarithm to `base`.
double merged(double base) {
  const double lse_1 = 0, lse_2 = std::log(3.0), o_1 = 1, o_2 = 0;
  const double w_1 = std::pow(base, lse_1), w_2 = std::pow(base, lse_2);
  return (w_1 * o_1 + w_2 * o_2) / (w_1 + w_2);
}

Erratum base_of_LSE() {
  return {"parts are merged with weights 2^LSE",
          "mixed conventions of kernels, which keep log₂ inside",
          "LSE is stored as a natural logarithm, so the weights are e^LSE",
          "O of parts with LSE 0, ln 3 and O 1, 0",
          merged(2),
          merged(std::exp(1.0)),
          two_keys_by_stage_03()};
}

// ---- who sees whom

/// Pairs that a causal mask leaves of 2 queries and 5 keys when query i sees the keys up to i + `shift`.
double causal_pairs(Index shift) {
  double pairs = 0;
  for (Index i = 0; i < 2; ++i)
    for (Index j = 0; j < 5; ++j) pairs += j <= i + shift;
  return pairs;
}

Erratum causal_alignment() {
  theory::ClosedFormOptions causal;
  causal.causal = true;
  return {"causal means j ≤ i",
          "PyTorch's is_causal; flash-attn before 2.1",
          "with a cache of keys the last query is the newest: j ≤ i + (Nk − Nq), aligned at the bottom right",
          "visible pairs of 2 queries and 5 keys",
          causal_pairs(0),
          causal_pairs(5 - 2),
          static_cast<double>(theory::visible_pairs({1, 1, 1, 2, 5, 1, 1}, causal))};
}

// ---- what is counted

RunResult count_only(const char* stage, Index N, Index d, Index M, Format dtype, const Options& options = {}) {
  RunConfig config;
  config.machine.count_only = true;
  config.machine.sram_bytes = M * bytes_per_element(dtype);
  Inputs in;
  in.shape = {1, 1, 1, N, N, d, d};
  in.dtype = dtype;
  return run(find_stage(stage), in, options, config);
}

Erratum tiles_fit() {
  const Index d = 64, M = 4 * d * d, B = d;
  const double held = 4.0 * B * d + B * B;  // K, V, Q, O; S
  double counted = 0;
  const RunResult at_peak = count_only("03", 4 * d, d, M, Format::fp32);
  for (const sim::Holder& h : at_peak.forward.ledger.sram_peak().holders)
    if (h.cols > 1) counted += static_cast<double>(h.rows * h.cols);
  return {"the block sizes are chosen so that the tiles fit in M",
          std::string(fa1) + " and summaries of it",
          "for M below 8d² they do not: S takes Br·Bc more, m and l 2·Br",
          "matrices held at once, in units of M, for M = 4d² and d = 64",
          1,
          held / M,
          counted / M};
}

Erratum standard_attention() {
  const Index N = 512, d = 64, M = 4 * d, Br = 1, Bc = 1;
  const double ideal = 4.0 * N * N + 4.0 * N * d,
               tiled = 5.0 * N * N + N * d + (N / Bc) * N * d + 2.0 * (N / Br) * N * d;
  return {"standard attention moves Θ(N² + Nd), whatever the SRAM",
          std::string(fa1) + ", Theorem 2, read without its range",
          "that takes M ≥ d²: below it the two products alone move more than N²",
          "HBM elements at N = 512, d = 64, M = 4d",
          ideal,
          tiled,
          static_cast<double>(count_only("02", N, d, M, Format::fp32).forward.ledger.elements())};
}

Erratum not_linear() {
  const Index N = 1024, d = 64, M = 4 * d * d;
  const double Tc = 4.0 * N * d / M;
  return {"each of the Tc tiles of keys moves itself, so the traffic is linear in N",
          "a common misreading of Theorem 2",
          "each tile of keys makes all of Q and O pass again: Θ(N²d²/M)",
          "HBM elements at N = 1024, d = 64, M = 4d²",
          4.0 * N * d,
          3.0 * N * d + 2.0 * N + Tc * N * (3.0 * d + 4),
          static_cast<double>(count_only("03", N, d, M, Format::fp32).forward.ledger.elements())};
}

Erratum blocks_of_algorithm_1() {
  const Index N = 1024, d = 64, M = 16 * d * d;
  Options options;
  options.br = theory::paper_blocks(M, d).Br, options.bc = theory::paper_blocks(M, d).Bc;
  const auto moved = [&](double rows_that_stay) { return 2.0 * N * d + N + N / rows_that_stay * 2.0 * N * d; };
  return {"with the loops swapped, Algorithm 1's block sizes still give Θ(N²d²/M)",
          std::string(fa2) + ", whose loops leave Br and Bc open, read with FlashAttention's sizes",
          "their Br = min(⌈M/4d⌉, d) stops at d, and K and V pass N/d times; the roles have to be swapped, too",
          "HBM elements at N = 1024, d = 64, M = 16d²",
          moved(M / (4.0 * d)),
          moved(d),
          static_cast<double>(count_only("05a", N, d, M, Format::fp32, options).forward.ledger.elements())};
}

Erratum split_of_warps() {
  const Index N = 512, d = 64, warps = 4;
  Options options;
  options.br = options.bc = 64;
  options.warps = Warps::split_q;
  const sim::Ledger ledger = count_only("05b", N, d, 4 * d * d, Format::fp32, options).forward.ledger;
  const Index visited_rows = N * (N / options.bc);  // for each, O, l and m go from warp to warp
  return {"FlashAttention-2 splits K and V across warps",
          "popular summaries",
          "FlashAttention did; FlashAttention-2's warps split Q and need nothing of each other",
          "SRAM elements that four warps hand on: N = 512, d = 64, tiles of 64 × 64",
          static_cast<double>(2 * warps * visited_rows * (d + 2)),
          0,
          static_cast<double>(ledger.exchange().read + ledger.exchange().write)};
}

/// Rows of the D that stage 04's backward pass makes of the hand example.
double rows_of_D() {
  Index rows = 0;
  RunConfig config;
  config.backward = true;
  config.observer = [&](const sim::Event& e) {
    if (std::string_view(e.name) == "D") rows = std::max(rows, e.rows.end);
  };
  run(find_stage("04"), example_hand(Format::fp64), hand_options(), config);
  return static_cast<double>(rows);
}

Erratum length_of_D() {
  const Inputs in = example_hand(Format::fp64);
  return {"D ∈ R^d",
          std::string(fa3) + ", Algorithm 3",
          "D ∈ R^N: one number a row, rowsum(dO∘O)",
          "length of D in the hand example, N = 4, d = 2",
          static_cast<double>(in.shape.d),
          static_cast<double>(in.shape.Nq),
          rows_of_D()};
}

}  // namespace

std::vector<Erratum> errata() {
  return {D_missing(),
          inverse_of_sums(),
          inverse_of_rescaling(std::string(fa2) + ", Algorithm 1, line 10"),
          inverse_of_rescaling(std::string(fa3) + ", Algorithm 1"),
          last_tile(),
          tiles_fit(),
          standard_attention(),
          not_linear(),
          blocks_of_algorithm_1(),
          split_of_warps(),
          causal_alignment(),
          base_of_LSE(),
          length_of_D()};
}

}  // namespace flash::site

#include "stages/common/bounds.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "stages/common/oracle.hpp"

namespace flash {
namespace {

/// Largest relative error of one rounding, and what may be lost where a value is too small for the format.
struct Rounding {
  double unit, underflow;
};

Rounding rounding(Format format) {
  const double smallest = format == Format::fp64 ? 0x1p-1022 : format == Format::fp16 ? 0x1p-25 : 0x1p-126;
  return {epsilon(format) / 2, smallest};
}

/// Second-order terms, and roundings that only some programs make, fit in this factor.
constexpr double kSlack = 2;

using Row = Eigen::Map<Eigen::ArrayXd>;
using ConstRow = Eigen::Map<const Eigen::ArrayXd>;

double dot(const double* x, const double* y, Index n) { return (ConstRow(x, n) * ConstRow(y, n)).sum(); }

double absolute_dot(const double* x, const double* y, Index n) { return (ConstRow(x, n) * ConstRow(y, n)).abs().sum(); }

double norm_of_products(const double* x, const double* y, Index n) {
  return std::sqrt((ConstRow(x, n) * ConstRow(y, n)).square().sum());
}

void add_absolute(double* y, double a, const double* x, Index n) { Row(y, n) += a * ConstRow(x, n).abs(); }

void add_square(double* y, double a, const double* x, Index n) { Row(y, n) += (a * ConstRow(x, n)).square(); }

void add_scaled(double* y, double a, const double* x, Index n) { Row(y, n) += a * ConstRow(x, n); }

/// A number with its worst error and, in units of the format's epsilon, its typical one.
struct Uncertain {
  double value = 0, worst = 0, typical = 0;
};

/// What a row's scores and probabilities may lose, key by key; `lse` is the row's.
struct RowErrors {
  std::vector<Uncertain> s, p;
  Uncertain lse;
};

class BoundsPass {
 public:
  BoundsPass(const Inputs& in, const Options& options, const Outputs& exact, bool round_scores)
      : in_(in),
        options_(options),
        rules_(in, options),
        exact_(exact),
        stored_(rounding(in.dtype)),
        summed_(rounding(accumulator(in.dtype))),
        matrix_unit_(round_scores ? stored_.unit : 0),
        scale_(softmax_scale(in.shape, options)) {
    worst_.lse.resize(exact_.lse.size());
    for (Outputs* part : {&worst_, &typical_}) {
      part->o.resize(exact_.o.size());
      part->dq.resize(exact_.dq.size());
      part->dk.resize(exact_.dk.size());
      part->dv.resize(exact_.dv.size());
    }
  }

  Bounds run() {
    const Shape& s = in_.shape;
    for (Index query = 0; query < s.batch * s.heads * s.Nq; ++query) {
      const Index i = query % s.Nq, h = query / s.Nq % s.heads, b = query / s.Nq / s.heads;
      const SoftmaxRow row = softmax_row(rules_, b, h, i);
      if (row.keys.empty()) continue;  // exact: O = 0, LSE = −inf
      const Index first_key = (b * s.kv_heads + rules_.kv_head(h)) * s.Nk;
      const RowErrors errors = row_errors(row, query, first_key, h, i);
      worst_.lse[at(query)] = errors.lse.worst;
      add_output(row, errors, query, first_key);
      if (!exact_.dq.empty()) add_gradients(row, errors, query, first_key);
    }
    finish(exact_.dq, worst_.dq, typical_.dq);
    finish(exact_.dk, worst_.dk, typical_.dk);
    finish(exact_.dv, worst_.dv, typical_.dv);
    return {std::move(worst_), std::move(typical_)};
  }

 private:
  /// A score's product is summed in d steps; each loses a share of Σ|q·k|, mostly far less.
  Uncertain score_error(const SoftmaxRow& row, std::size_t n, Index query, Index first_key, Index h, Index i) const {
    const Index d = in_.shape.d, j = row.keys[n];
    const double products = absolute_dot(&in_.q[at(query * d)], &in_.k[at((first_key + j) * d)], d);
    const double reach = row.ds_dx[n] * std::abs(scale_) * products;
    const double size = std::abs(row.s[n]) + std::abs(rules_.alibi(h, i, j));
    return {row.s[n], summed_.unit * (static_cast<double>(d + 8) * reach + 8 * size) + matrix_unit_ * size,
            in_epsilons(summed_.unit * (reach + size) + matrix_unit_ * size)};
  }

  /// An error δ of the scores moves P = e^(s − LSE) by a factor within e^±(δ + δ_LSE).
  RowErrors row_errors(const SoftmaxRow& row, Index query, Index first_key, Index h, Index i) const {
    constexpr double kHuge = 50;  // beyond it any P in [0, 1] is possible
    RowErrors errors;
    double moved = 0, squares = 0, largest = 0;
    for (std::size_t n = 0; n < row.keys.size(); ++n) {
      const Uncertain s = score_error(row, n, query, first_key, h, i);
      moved += row.p[n] * std::expm1(std::min(s.worst, kHuge));
      largest = std::max(largest, s.worst);
      squares += row.p[n] * s.typical * row.p[n] * s.typical;
      errors.s.push_back(s);
    }
    const double size = std::max(1.0, std::abs(row.lse));
    const double visits = 4 + std::sqrt(static_cast<double>(row.keys.size())) / 2;  // where each rounds LSE
    const double lse_moved = largest > kHuge ? largest : std::log1p(moved);  // never further than the scores themselves
    errors.lse = {row.lse, lse_moved + 8 * summed_.unit * size,
                  in_epsilons(visits * summed_.unit * size) + std::sqrt(squares)};

    const double sums = summed_.unit * static_cast<double>(2 * row.keys.size() + 16);  // l, and a rescaling per tile
    for (std::size_t n = 0; n < row.keys.size(); ++n) {
      const double p = row.p[n], exponent = errors.s[n].worst + errors.lse.worst;
      const double moved_p = exponent > kHuge ? 1 : std::min(1.0, p * (std::expm1(exponent) + sums));
      errors.p.push_back({p, moved_p + stored_.unit * p + stored_.underflow,
                          p * (1 + errors.s[n].typical) + in_epsilons(stored_.underflow)});
    }
    return errors;
  }

  void add_output(const SoftmaxRow& row, const RowErrors& errors, Index query, Index first_key) {
    const Index dv = in_.shape.dv;
    const double sums = summed_.unit * static_cast<double>(row.keys.size());
    double *worst = &worst_.o[at(query * dv)], *typical = &typical_.o[at(query * dv)];
    for (std::size_t n = 0; n < row.keys.size(); ++n) {
      const double* V = &in_.v[at((first_key + row.keys[n]) * dv)];
      add_absolute(worst, row.z[n] * (errors.p[n].worst + sums * row.p[n]), V, dv);
      add_square(typical, row.z[n] * errors.p[n].typical, V, dv);
    }
    for (Index c = 0; c < dv; ++c) {
      const double O = std::abs(exact_.o[at(query * dv + c)]);
      worst[c] = kSlack * (worst[c] + stored_.unit * O + stored_.underflow);
      typical[c] = std::sqrt(typical[c]) + O * (1 + errors.lse.typical) + in_epsilons(stored_.underflow);
    }
  }

  void add_gradients(const SoftmaxRow& row, const RowErrors& errors, Index query, Index first_key) {
    const Index d = in_.shape.d, dv = in_.shape.dv;
    const double *dO = &in_.dout[at(query * dv)], *O = &exact_.o[at(query * dv)];
    const double product = summed_.unit * static_cast<double>(dv + 4), size = absolute_dot(dO, O, dv);
    const double rounded_O = norm_of_products(dO, &typical_.o[at(query * dv)], dv);
    const Uncertain D{dot(dO, O, dv), product * size + absolute_dot(dO, &worst_.o[at(query * dv)], dv),  // O as stored
                      rounded_O + in_epsilons(summed_.unit * size)};
    std::vector<double> common(at(d));
    for (std::size_t n = 0; n < row.keys.size(); ++n) {
      const Index key = first_key + row.keys[n];
      const double *V = &in_.v[at(key * dv)], m = row.z[n], size_dP = m * absolute_dot(dO, V, dv);
      const double value = m * dot(dO, V, dv), stored = matrix_unit_ * std::abs(value);
      const Uncertain dP{value, product * size_dP + stored, in_epsilons(summed_.unit * size_dP + stored)};
      add_absolute(&worst_.dv[at(key * dv)], m * (errors.p[n].worst + (sums() + group_sums()) * row.p[n]), dO, dv);
      add_square(&typical_.dv[at(key * dv)], m * (errors.p[n].typical + row.p[n] * errors.lse.typical), dO, dv);
      add_worst_dS(row, errors, n, dP, D, query, key);
      add_typical_dS(row, errors, n, dP, D, query, key);
      add_scaled(common.data(), scale_ * row.p[n] * row.ds_dx[n] * D.typical, &in_.k[at(key * d)], d);
    }
    // D and LSE are one number for all keys of the row: what they lose adds up in dQ.
    add_square(&typical_.dq[at(query * d)], 1, common.data(), d);
    add_square(&typical_.dq[at(query * d)], errors.lse.typical, &exact_.dq[at(query * d)], d);
  }

  /// dS = P·(dP − D)·ds/dx: each factor's error times the other factors.
  void add_worst_dS(const SoftmaxRow& row, const RowErrors& errors, std::size_t n, const Uncertain& dP,
                    const Uncertain& D, Index query, Index key) {
    const Index d = in_.shape.d;
    const double p = row.p[n], slope = row.ds_dx[n], difference = std::abs(dP.value - D.value);
    const double dS = p * difference * slope;
    const double error = errors.p[n].worst * difference * slope + p * difference * slope_error(row, errors, n).worst +
                         p * slope * (dP.worst + D.worst) + (stored_.unit + sums()) * dS;
    const double scaled = std::abs(scale_) * error + std::max(1.0, std::abs(scale_)) * stored_.underflow;
    add_absolute(&worst_.dq[at(query * d)], scaled, &in_.k[at(key * d)], d);
    add_absolute(&worst_.dk[at(key * d)], scaled + group_sums() * std::abs(scale_) * dS, &in_.q[at(query * d)], d);
  }

  void add_typical_dS(const SoftmaxRow& row, const RowErrors& errors, std::size_t n, const Uncertain& dP,
                      const Uncertain& D, Index query, Index key) {
    const Index d = in_.shape.d;
    const double p = scale_ * row.p[n], slope = row.ds_dx[n], difference = dP.value - D.value;
    const double own = std::hypot(scale_ * errors.p[n].typical * difference * slope,
                                  p * difference * slope_error(row, errors, n).typical, p * slope * dP.typical) +
                       std::max(1.0, std::abs(scale_)) * in_epsilons(stored_.underflow);
    add_square(&typical_.dq[at(query * d)], own, &in_.k[at(key * d)], d);
    const double shared = std::hypot(p * slope * D.typical, p * slope * difference * errors.lse.typical);
    add_square(&typical_.dk[at(key * d)], std::hypot(own, shared), &in_.q[at(query * d)], d);
  }

  /// Softcap's derivative 1 − (s/c)²: from s, and from the subtraction.
  Uncertain slope_error(const SoftmaxRow& row, const RowErrors& errors, std::size_t n) const {
    if (!(options_.softcap > 0)) return {1, 0, 0};
    const double by_score = 2 * std::sqrt(std::max(0.0, 1 - row.ds_dx[n])) / options_.softcap;
    return {row.ds_dx[n], 4 * summed_.unit + std::min(1.0, by_score * errors.s[n].worst),
            in_epsilons(2 * summed_.unit) + by_score * errors.s[n].typical};
  }

  void finish(const std::vector<double>& exact, std::vector<double>& worst, std::vector<double>& typical) const {
    for (std::size_t n = 0; n < exact.size(); ++n) {
      if (worst[n] > 0) worst[n] = kSlack * (worst[n] + stored_.unit * std::abs(exact[n]) + stored_.underflow);
      typical[n] = std::hypot(std::sqrt(typical[n]), exact[n]) + in_epsilons(stored_.underflow);
    }
  }

  /// What the longest sum of dQ, dK or dV loses, as a share of the sum of its terms' sizes.
  double sums() const {
    const Shape& s = in_.shape;
    return summed_.unit * static_cast<double>(std::max(s.Nk, s.Nq * (s.heads / s.kv_heads)) + 8);
  }

  /// The same for dK and dV of a head that several query heads add to, each rounding the sum so far.
  double group_sums() const {
    const Index group = in_.shape.heads / in_.shape.kv_heads;
    return group > 1 ? stored_.unit * static_cast<double>(group) : 0;
  }

  double in_epsilons(double error) const { return error / (2 * stored_.unit); }
  static std::size_t at(Index index) { return static_cast<std::size_t>(index); }

  const Inputs& in_;
  const Options& options_;
  const OracleRules rules_;
  const Outputs& exact_;
  const Rounding stored_, summed_;
  const double matrix_unit_, scale_;
  Outputs worst_, typical_;
};

}  // namespace

Bounds rounding_bounds(const Inputs& inputs, const Options& options, const Outputs& exact, bool round_scores) {
  return BoundsPass(inputs, options, exact, round_scores).run();
}

}  // namespace flash

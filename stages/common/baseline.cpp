#include "stages/common/baseline.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "stages/common/oracle.hpp"

namespace flash {
namespace {

template <class Real>
class Baseline {
 public:
  Baseline(const Inputs& in, const Options& options, bool backward, bool round_scores)
      : in_(in),
        options_(options),
        rules_(in, options),
        backward_(backward),
        round_scores_(round_scores),
        q_(narrowed(in.q)),
        k_(narrowed(in.k)),
        v_(narrowed(in.v)),
        dout_(narrowed(in.dout)),
        o_(queries() * shape().dv),
        dq_(queries() * shape().d),
        dk_(keys() * shape().d),
        dv_(keys() * shape().dv),
        lse_(queries()) {}

  Outputs run() {
    for (Index query = 0; query < static_cast<Index>(queries()); ++query) add_row(query);
    if (!backward_) return {finished(o_), widened(lse_), {}, {}, {}};
    return {finished(o_), widened(lse_), finished(dq_), finished(dk_), finished(dv_)};
  }

 private:
  using Vector = std::vector<Real>;

  const Shape& shape() const { return in_.shape; }
  std::size_t queries() const { return static_cast<std::size_t>(shape().batch * shape().heads * shape().Nq); }
  std::size_t keys() const { return static_cast<std::size_t>(shape().batch * shape().kv_heads * shape().Nk); }
  Real in_format(Real value) const { return rounded(value, in_.dtype); }

  static Vector narrowed(const std::vector<double>& values) { return Vector(values.begin(), values.end()); }
  static std::vector<double> widened(const Vector& values) { return {values.begin(), values.end()}; }
  std::vector<double> finished(const Vector& values) const {
    std::vector<double> result = widened(values);
    for (double& value : result) value = rounded(value, in_.dtype);
    return result;
  }

  static Real dot(const Real* x, const Real* y, Index n) {
    Real sum = 0;
    for (Index c = 0; c < n; ++c) sum += x[c] * y[c];
    return sum;
  }

  static void add_scaled(Real* y, Real a, const Real* x, Index n) {
    for (Index c = 0; c < n; ++c) y[c] += a * x[c];
  }

  /// Row of S over the visible keys; `ds_dx` receives softcap's derivative.
  Vector scores(const std::vector<Index>& visible, const Real* Q, Index first_key, Index h, Index i, Vector& ds_dx) {
    const Real scale = static_cast<Real>(softmax_scale(shape(), options_)), c = static_cast<Real>(options_.softcap);
    Vector S;
    for (const Index j : visible) {
      const Real x = scale * dot(Q, &k_[static_cast<std::size_t>((first_key + j) * shape().d)], shape().d);
      const Real tanh = c > 0 ? std::tanh(x / c) : 0;
      const Real s = (c > 0 ? c * tanh : x) - static_cast<Real>(rules_.alibi(h, i, j));
      S.push_back(round_scores_ ? in_format(s) : s);
      ds_dx.push_back(1 - tanh * tanh);
    }
    return S;
  }

  void add_row(Index query) {
    const Index i = query % shape().Nq, h = query / shape().Nq % shape().heads, b = query / shape().Nq / shape().heads;
    const Index first_key = (b * shape().kv_heads + rules_.kv_head(h)) * shape().Nk, dv = shape().dv;
    const std::vector<Index> visible = rules_.visible_keys(b, h, i);
    Real& lse = lse_[static_cast<std::size_t>(query)];
    lse = -std::numeric_limits<Real>::infinity();
    if (visible.empty()) return;

    Vector ds_dx;
    const Vector S = scores(visible, q_.data() + query * shape().d, first_key, h, i, ds_dx);
    const Real m = *std::max_element(S.begin(), S.end());
    Real l = 0;
    for (const Real s : S) l += std::exp(s - m);
    lse = m + std::log(l);

    Vector P, M;
    for (std::size_t n = 0; n < visible.size(); ++n) {
      const Index j = visible[n];
      P.push_back(in_format(std::exp(S[n] - m) / l));
      M.push_back(static_cast<Real>(rules_.dropout_factor(b, h, i, j)));
      add_scaled(&o_[static_cast<std::size_t>(query * dv)], in_format(P[n] * M[n]), v_.data() + (first_key + j) * dv,
                 dv);
    }
    if (backward_) add_gradients(query, first_key, visible, P, M, ds_dx);
  }

  /// FA1, Algorithm 3, for one row: dS_ij = P_ij·(dP_ij − Σ_l P_il·dP_il).
  void add_gradients(Index query, Index first_key, const std::vector<Index>& visible, const Vector& P, const Vector& M,
                     const Vector& ds_dx) {
    const Index d = shape().d, dv = shape().dv;
    const Real scale = static_cast<Real>(softmax_scale(shape(), options_));
    const Real* dO = dout_.data() + query * dv;
    Vector dP;
    for (std::size_t n = 0; n < visible.size(); ++n) {
      const Index key = first_key + visible[n];
      add_scaled(dv_.data() + key * dv, in_format(P[n] * M[n]), dO, dv);
      const Real product = M[n] * dot(dO, v_.data() + key * dv, dv);
      dP.push_back(round_scores_ ? in_format(product) : product);
    }
    const Real mean = dot(P.data(), dP.data(), static_cast<Index>(P.size()));
    for (std::size_t n = 0; n < visible.size(); ++n) {
      const Index key = first_key + visible[n];
      const Real dS = in_format(P[n] * (dP[n] - mean) * ds_dx[n]);
      add_scaled(dq_.data() + query * d, scale * dS, k_.data() + key * d, d);
      add_scaled(dk_.data() + key * d, scale * dS, q_.data() + query * d, d);
    }
  }

  const Inputs& in_;
  const Options& options_;
  const OracleRules rules_;
  const bool backward_, round_scores_;
  const Vector q_, k_, v_, dout_;
  Vector o_, dq_, dk_, dv_, lse_;
};

}  // namespace

Outputs baseline(const Inputs& inputs, const Options& options, bool backward, bool round_scores) {
  if (inputs.dtype == Format::fp64) return Baseline<double>(inputs, options, backward, round_scores).run();
  return Baseline<float>(inputs, options, backward, round_scores).run();
}

}  // namespace flash

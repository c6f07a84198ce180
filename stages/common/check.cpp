#include "stages/common/check.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "stages/common/baseline.hpp"
#include "stages/common/oracle.hpp"

namespace flash {
namespace {

using Values = std::vector<double>;

double largest_finite(const Values& values) {
  double largest = 0;
  for (const double value : values) {
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  }
  return largest;
}

/// |got − expected|: 0 where both are the same infinity or both NaN; NaN where one of them is.
double difference(double got, double expected) {
  if (got == expected || (std::isnan(got) && std::isnan(expected))) return 0;
  return std::abs(got - expected);
}

/// The oracle's values with those that the output's format can't hold replaced by its infinity.
Values representable(Values values, Format format) {
  for (double& value : values) {
    if (std::isinf(rounded(value, format))) value = rounded(value, format);
  }
  return values;
}

/// e_base; NaN where the baseline failed: then nothing passes, rather than everything.
double largest_error(const Values& baseline, const Values& oracle) {
  double largest = 0;
  for (std::size_t n = 0; n < oracle.size(); ++n) {
    if (!std::isfinite(oracle[n])) continue;  // how NaN spreads is the oracle's to say
    const double error = difference(baseline[n], oracle[n]);
    if (!std::isfinite(error)) return std::numeric_limits<double>::quiet_NaN();
    largest = std::max(largest, error);
  }
  return largest;
}

struct Spread {
  double correlation = 1;  ///< Pearson's, over the elements where both are finite
  double deviation = 0;    ///< standard deviation of the oracle's values
  Index count = 0;
};

Spread spread(const Values& got, const Values& oracle) {
  Spread result;
  double mean_got = 0, mean_oracle = 0;
  const auto for_finite = [&](auto&& body) {
    for (std::size_t n = 0; n < oracle.size(); ++n) {
      if (std::isfinite(got[n]) && std::isfinite(oracle[n])) body(got[n], oracle[n]);
    }
  };
  for_finite([&](double x, double y) {
    ++result.count;
    mean_got += x;
    mean_oracle += y;
  });
  if (result.count == 0) return result;
  const double count = static_cast<double>(result.count);
  mean_got /= count;
  mean_oracle /= count;
  double xx = 0, xy = 0, yy = 0;
  for_finite([&](double x, double y) {
    xx += (x - mean_got) * (x - mean_got);
    xy += (x - mean_got) * (y - mean_oracle);
    yy += (y - mean_oracle) * (y - mean_oracle);
  });
  result.deviation = std::sqrt(yy / count);
  result.correlation = xx > 0 && yy > 0 ? xy / (std::sqrt(xx) * std::sqrt(yy)) : 0;  // a constant follows nothing
  return result;
}

/// One output with all it is judged by.
struct Judged {
  std::string name;
  const Values& got;
  Values oracle;  ///< as the format holds it
  const Values& baseline;
  Values allowed;         ///< tolerance of each element
  const Values& worst;    ///< and what no right program exceeds
  const Values& typical;  ///< Bounds::typical; empty: correlation is not asked for
  std::vector<Index> axes;
  double epsilon;
};

std::vector<Index> multi_index(std::size_t flat, const std::vector<Index>& axes) {
  std::vector<Index> index(axes.size());
  auto rest = static_cast<Index>(flat);
  for (std::size_t axis = axes.size(); axis-- > 0;) {
    index[axis] = rest % axes[axis];
    rest /= axes[axis];
  }
  return index;
}

/// Error beyond which element n fails, the tighter of the two.
double limit(const Judged& output, std::size_t n) {
  const double worst = output.worst[n];
  return worst < output.allowed[n] ? worst : output.allowed[n];
}

/// First element that fails, and the one that is worst beside its tolerance; `result` receives the latter.
std::optional<std::size_t> compare_elements(const Judged& output, OutputCheck& result) {
  std::optional<std::size_t> first_bad;
  double worst_share = -1;
  for (std::size_t n = 0; n < output.oracle.size(); ++n) {
    const double error = difference(output.got[n], output.oracle[n]);
    const bool same = error == 0;  // NaN for NaN, for one, where the tolerance is NaN too
    if (!same && !(error <= limit(output, n)) && !first_bad) first_bad = n;
    const double share = same ? 0 : error / output.allowed[n];
    if (share <= worst_share || std::isnan(worst_share)) continue;
    worst_share = share;
    result.error = error;
    result.tolerance = output.allowed[n];
    result.worst = multi_index(n, output.axes);
  }
  return first_bad;
}

double root_mean_square(const Values& values) {
  double sum = 0;
  Index count = 0;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    sum += value * value;
    ++count;
  }
  return count > 0 ? std::sqrt(sum / static_cast<double>(count)) : 0;
}

/// Lowest correlation of a right program, whose errors E are at most four times the baseline's plus four times the
/// typical ones, all taken as roots of mean squares. Beside a deviation σ they leave about 1 − (E/σ)²/2.
std::optional<double> lowest_correlation(const Judged& output, const Spread& oracle) {
  constexpr Index kEnough = 64;
  if (oracle.count < kEnough || output.typical.empty()) return std::nullopt;
  Values errors(output.oracle.size());
  for (std::size_t n = 0; n < errors.size(); ++n) errors[n] = difference(output.baseline[n], output.oracle[n]);
  const double error = 4 * root_mean_square(errors) + 4 * output.epsilon * root_mean_square(output.typical);
  constexpr double kSquaresToZero = 1e-150;
  const double least = std::max({error, 1e-12 * largest_finite(output.oracle), kSquaresToZero});
  if (!(oracle.deviation > least)) return std::nullopt;  // nearly constant: only the elements can tell
  return 1 - error * error / (2 * oracle.deviation * oracle.deviation) - 1e-12;
}

OutputCheck judge(const Judged& output) {
  OutputCheck result;
  result.name = output.name;
  result.baseline = largest_error(output.baseline, output.oracle);
  if (output.got.size() != output.oracle.size()) {
    result.pass = false;
    result.error = std::numeric_limits<double>::quiet_NaN();
    result.message =
        fmt::format("{} has {} elements where the oracle has {}", output.name, output.got.size(), output.oracle.size());
    return result;
  }
  if (const std::optional<std::size_t> n = compare_elements(output, result)) {
    result.pass = false;
    result.error = difference(output.got[*n], output.oracle[*n]);
    result.tolerance = limit(output, *n);
    result.worst = multi_index(*n, output.axes);
    result.message = fmt::format("{}[{}] is {:.9g} where the oracle has {:.9g}: error {:.3g}, allowed {:.3g}",
                                 output.name, fmt::join(multi_index(*n, output.axes), ","), output.got[*n],
                                 output.oracle[*n], difference(output.got[*n], output.oracle[*n]), limit(output, *n));
  }
  const Spread spread_got = spread(output.got, output.oracle);
  if (const std::optional<double> lowest = lowest_correlation(output, spread_got)) {
    result.correlation = spread_got.correlation;
    if (!(result.correlation >= *lowest)) {
      result.pass = false;
      if (result.message.empty()) {
        result.message = fmt::format(
            "{}[{}] is where the largest error stands, within its tolerance, but {} correlates "
            "{:.4f} with the oracle where a right program reaches {:.4f}",
            output.name, fmt::join(result.worst, ","), output.name, result.correlation, *lowest);
      }
    }
  }
  return result;
}

/// 2·e_base + 4·eps·magnitude, the same for all elements.
Values even_tolerance(const Values& baseline, const Values& oracle, double epsilon, double magnitude) {
  return Values(oracle.size(), 2 * largest_error(baseline, oracle) + 4 * epsilon * magnitude);
}

Values lse_tolerance(const Reference& reference, double epsilon) {
  const double stored = reference.round_scores ? 2 * largest_error(reference.baseline.lse, reference.oracle.lse) : 0;
  Values allowed = reference.bounds.worst.lse;
  for (std::size_t n = 0; n < allowed.size(); ++n) {
    const double lse = reference.oracle.lse[n];
    allowed[n] += stored + (std::isfinite(lse) ? 4 * epsilon * std::max(1.0, std::abs(lse)) : 0);
  }
  return allowed;
}

}  // namespace

Reference reference(const Inputs& inputs, const Options& options, bool backward, bool round_scores) {
  Reference result{
      oracle(inputs, options, backward), baseline(inputs, options, backward, round_scores), {}, round_scores};
  result.bounds = rounding_bounds(inputs, options, result.oracle, round_scores);
  return result;
}

bool CheckResult::pass() const {
  return std::all_of(outputs.begin(), outputs.end(), [](const OutputCheck& output) { return output.pass; });
}

std::string CheckResult::message() const {
  std::vector<std::string> lines;
  for (const OutputCheck& output : outputs) {
    if (!output.pass) lines.push_back(output.message);
  }
  return fmt::format("{}", fmt::join(lines, "\n"));
}

CheckResult check(const Outputs& got, const Reference& ref, const Inputs& in, const Options& options) {
  const Shape& s = in.shape;
  const double eps = epsilon(in.dtype), eps_lse = epsilon(accumulator(in.dtype));
  const Outputs &exact = ref.oracle, &base = ref.baseline, &worst = ref.bounds.worst, &typical = ref.bounds.typical;
  const std::vector<Index> q_axes{s.batch, s.heads, s.Nq, s.d}, k_axes{s.batch, s.kv_heads, s.Nk, s.d};
  const std::vector<Index> o_axes{s.batch, s.heads, s.Nq, s.dv}, v_axes{s.batch, s.kv_heads, s.Nk, s.dv};

  CheckResult result;
  const auto add = [&](const char* name, Values Outputs::*part, double magnitude, const std::vector<Index>& axes) {
    const Values oracle = representable(exact.*part, in.dtype);
    const Values allowed = even_tolerance(base.*part, oracle, eps, magnitude);
    result.outputs.push_back(
        judge({name, got.*part, oracle, base.*part, allowed, worst.*part, typical.*part, axes, eps}));
  };
  const double largest_v = largest_finite(in.v) / (1 - options.dropout);
  add("o", &Outputs::o, std::max(largest_v, largest_finite(typical.o)), o_axes);
  result.outputs.push_back(judge({"lse",
                                  got.lse,
                                  exact.lse,
                                  base.lse,
                                  lse_tolerance(ref, eps_lse),
                                  Values(exact.lse.size(), std::numeric_limits<double>::infinity()),
                                  typical.lse,
                                  {s.batch, s.heads, s.Nq},
                                  eps_lse}));
  if (exact.dq.empty() && exact.dk.empty()) return result;
  add("dq", &Outputs::dq, largest_finite(typical.dq), q_axes);
  add("dk", &Outputs::dk, largest_finite(typical.dk), k_axes);
  add("dv", &Outputs::dv, largest_finite(typical.dv), v_axes);
  return result;
}

CheckResult check(const Outputs& got, const Outputs& oracle, const Outputs& baseline, const Inputs& inputs,
                  const Options& options, bool round_scores) {
  return check(got, {oracle, baseline, rounding_bounds(inputs, options, oracle, round_scores), round_scores}, inputs,
               options);
}

}  // namespace flash

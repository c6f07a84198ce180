// Small problems with known answers: building them by hand, and running them on every stage in several tilings.
#pragma once

#include <functional>
#include <initializer_list>

#include "stages/common/draw.hpp"
#include "stages/common/run.hpp"
#include "tests/catch.hpp"
#include "tests/support/judge.hpp"

namespace flash {

inline constexpr double kInf = std::numeric_limits<double>::infinity();

/// An array of `size` elements: element n is of(n).
inline std::vector<double> array(Index size, const std::function<double(Index)>& of) {
  std::vector<double> values(static_cast<std::size_t>(size));
  for (Index n = 0; n < size; ++n) values[static_cast<std::size_t>(n)] = of(n);
  return values;
}

/// Q = 0, so that every key that a row sees weighs the same and LSE = ln(number of them); K = 1; V[j][c] = of(j, c) in
/// each KV head; no dO.
inline Inputs equal_scores(const Shape& s, const std::function<double(Index, Index)>& of, Format dtype = Format::fp32) {
  Inputs in;
  in.shape = s;
  in.dtype = dtype;
  in.q.assign(s.batch * s.heads * s.Nq * s.d, 0);
  in.k.assign(s.batch * s.kv_heads * s.Nk * s.d, 1);
  in.v = array(s.batch * s.kv_heads * s.Nk * s.dv, [&](Index n) { return of(n / s.dv % s.Nk, n % s.dv); });
  return in;
}

/// One row with d = dv = 1 and these scores: q = 1, k = scores, to be run with scale 1.
inline Inputs one_row(std::vector<double> scores, std::vector<double> values, Format dtype = Format::fp32) {
  Inputs in;
  in.shape = {1, 1, 1, 1, static_cast<Index>(scores.size()), 1, 1};
  in.dtype = dtype;
  in.q = {1};
  in.k = std::move(scores);
  in.v = std::move(values);
  return in;
}

inline Options with_scale(double scale) {
  Options o;
  o.scale = scale;
  return o;
}

/// Runs the problem on each stage that takes it, with the budget's tiles and with small ones by hand, and gives each
/// result to `check`. Gradients are computed where a stage has them and the problem has dO.
inline void on_every_stage(const Inputs& in, const Options& options,
                           const std::function<void(const Stage&, const RunResult&)>& check, RunConfig config = {}) {
  config.machine.threads = 1;
  config.machine.poison_sram = true;  // a tile that is read before it is written shows
  int runs = 0;
  for (const Stage& stage : stages_on(Side::cpu)) {
    if (!takes_all(stage, in, options)) continue;
    for (const Blocks tiles : {Blocks{options.br, options.bc}, Blocks{1, 1}, Blocks{2, 3}, Blocks{64, 64}}) {
      const bool by_hand = tiles.Br != options.br || tiles.Bc != options.bc;
      if (by_hand && (!stage.takes("br and bc") || options.br > 0)) continue;
      Options o = options_for(stage, options);
      if (by_hand) o.br = tiles.Br, o.bc = tiles.Bc;
      config.backward = stage.has_backward() && !in.dout.empty();
      INFO("stage " << stage.id << (config.backward ? " with its backward pass" : "") << ", tiles " << o.br << " x "
                    << o.bc << " (0: the budget's)");
      check(stage, run(stage, in, o, config));
      ++runs;
    }
  }
  REQUIRE(runs > 0);
}

/// Empty when the run is refused in a sentence that holds `words`; else what happened.
inline std::string not_refused_with(const std::string& words, const Stage& stage, const Inputs& in,
                                    const Options& options, const RunConfig& config = {}) {
  try {
    run(stage, in, options, config);
    return "it ran";
  } catch (const Refused& refused) {
    const std::string sentence = refused.what();
    return sentence.find(words) == sentence.npos ? sentence : "";
  }
}

/// First element that is further than `tolerance` from `expected`, times max(1, |expected|); empty when there is none.
inline std::string differs(const std::vector<double>& got, const std::vector<double>& expected,
                           double tolerance = 1e-6) {
  if (got.size() != expected.size())
    return fmt::format("{} elements where {} are expected", got.size(), expected.size());
  for (std::size_t n = 0; n < got.size(); ++n) {
    const double error = got[n] == expected[n] ? 0 : std::abs(got[n] - expected[n]);
    if (!(error <= tolerance * std::max(1.0, std::abs(expected[n]))))
      return fmt::format("element {} is {:.9g} where {:.9g} is expected", n, got[n], expected[n]);
  }
  return {};
}

inline bool all_finite(const std::vector<double>& values) {
  return std::ranges::all_of(values, [](double x) { return std::isfinite(x); });
}

/// Equal as numbers, or both NaN.
inline bool same_bits(const std::vector<double>& a, const std::vector<double>& b) {
  return std::ranges::equal(a, b, [](double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); });
}

inline bool same_bits(const Outputs& a, const Outputs& b) {
  return same_bits(a.o, b.o) && same_bits(a.lse, b.lse) && same_bits(a.dq, b.dq) && same_bits(a.dk, b.dk) &&
         same_bits(a.dv, b.dv);
}

}  // namespace flash

// Random problems over everything that a stage takes, the same on every machine.
#pragma once

#include <cstdint>
#include <random>
#include <string>

#include "sim/theory/closed_forms.hpp"
#include "stages/common/draw.hpp"
#include "stages/common/run.hpp"

namespace flash {

/// Whole numbers with the same sequence everywhere: std's distributions differ between libraries.
class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  Index operator()(Index low, Index high) {
    return low + static_cast<Index>(engine_() % static_cast<std::uint64_t>(high - low + 1));
  }
  bool once_in(Index n) { return (*this)(1, n) == 1; }

 private:
  std::mt19937_64 engine_;
};

struct RandomProblem {
  Inputs inputs;
  Options options;
  RunConfig config;

  const Shape& shape() const { return inputs.shape; }
  bool windowed() const { return options.window.left >= 0 || options.window.right >= 0; }
  std::string text() const;
};

inline std::string RandomProblem::text() const {
  const Shape& s = shape();
  return fmt::format(
      "batch {} heads {}/{} Nq {} Nk {} d {} dv {} {} br {} bc {} causal {} window {},{} softcap {} dropout {} "
      "alibi {} mask {} block mask {} first touch {} splits {} split-K {} deterministic {} sram {} bytes, {}",
      s.batch, s.heads, s.kv_heads, s.Nq, s.Nk, s.d, s.dv, name(inputs.dtype), options.br, options.bc, options.causal,
      options.window.left, options.window.right, options.softcap, options.dropout, !inputs.slopes.empty(),
      !inputs.mask.empty(), !inputs.block_mask.empty(), options.first_touch, options.splits,
      options.warps == Warps::split_k, options.deterministic, config.machine.sram_bytes,
      config.machine.budget == sim::Budget::strict ? "strict" : "paper");
}

/// Tiles by hand, so that they are small beside N, or by the budget.
inline void choose_tiles(Random& random, const Stage& stage, RandomProblem& p) {
  const Shape& s = p.inputs.shape;
  p.config.machine.budget = random.once_in(2) ? sim::Budget::strict : sim::Budget::paper;
  p.config.machine.sram_bytes = random(3, 12) * 1024;
  if (!stage.takes("br and bc") || random.once_in(4)) return;
  p.config.machine.budget = sim::Budget::paper;
  p.options.br = random(1, 12);
  p.options.bc = random(1, 12);
  if (!random.once_in(2)) return;
  const Index Tr = sim::ceil_div(s.Nq, p.options.br), Tc = sim::ceil_div(s.Nk, p.options.bc), density = random(0, 3);
  for (Index t = 0; t < Tr * Tc; ++t) p.inputs.block_mask.push_back(random(1, 4) <= density);
}

/// A problem for `stage` with small sizes, any shape and any mixture of the options that it takes. In count-only mode
/// it has no arrays but masks and slopes.
inline RandomProblem random_problem(Random& random, const Stage& stage, bool count_only) {
  RandomProblem p;
  Shape s;
  s.kv_heads = random(1, 2);
  s.heads = s.kv_heads * (random.once_in(2) ? 1 : random(2, 3));
  s.batch = random(1, 2);
  s.Nq = random.once_in(4) ? 0 : random(1, 40);
  s.Nk = random.once_in(4) ? 0 : random.once_in(3) ? s.Nq : random(1, 40);
  s.d = random(1, 9);
  s.dv = random.once_in(2) ? s.d : random(1, 9);
  constexpr Format formats[] = {Format::fp64, Format::fp32, Format::fp16, Format::bf16};
  const Format dtype = formats[random(0, 3)];
  const auto seed = static_cast<std::uint64_t>(random(0, 1 << 30));
  if (count_only) {
    p.inputs.shape = s;
    p.inputs.dtype = dtype;
  } else {
    p.inputs = draw_inputs(s, dtype, seed);
    if (stage.has_backward()) draw_dout(p.inputs, seed);
  }
  p.config.machine.count_only = count_only;
  p.config.backward = stage.has_backward();

  Options& o = p.options;
  o.causal = random.once_in(3);
  if (random.once_in(3)) o.window.left = random.once_in(8) ? INT64_MAX : random(0, 30);
  if (random.once_in(3)) o.window.right = random.once_in(8) ? INT64_MAX : random(0, 30);
  if (random.once_in(3)) o.softcap = 2;
  if (random.once_in(3)) o.dropout = 0.25, o.dropout_seed = seed;
  if (random.once_in(3)) o.scale = 0.5;
  if (random.once_in(3))
    for (Index h = 0; h < s.heads; ++h) p.inputs.slopes.push_back(0.25f * static_cast<float>(h + 1));
  if (random.once_in(3)) {
    p.inputs.mask_batch = random.once_in(2) ? 1 : s.batch;
    p.inputs.mask_heads = random.once_in(2) ? 1 : s.heads;
    const Index size = p.inputs.mask_batch * p.inputs.mask_heads * s.Nq * s.Nk;
    for (Index n = 0; n < size; ++n) p.inputs.mask.push_back(random(0, 2) > 0);
  }
  o.first_touch = stage.takes("first-touch") && random.once_in(2);
  o.deterministic = stage.takes("deterministic") && p.config.backward && random.once_in(2);
  constexpr Index splits[] = {1, 2, 3, 7, 50};  // the last one more than there are tiles
  if (stage.takes("warps") && random.once_in(2)) o.warps = random.once_in(2) ? Warps::split_k : Warps::split_q;
  if (stage.takes("splits")) o.splits = splits[random(0, 4)];
  choose_tiles(random, stage, p);
  return p;
}

/// What the closed forms need to know of it.
inline theory::ClosedFormOptions closed_form_options(const RandomProblem& p) {
  theory::ClosedFormOptions o;
  o.causal = p.options.causal;
  o.window = p.options.window;
  o.has_mask = !p.inputs.mask.empty();
  o.has_alibi = !p.inputs.slopes.empty();
  o.softcap = p.options.softcap > 0;
  o.first_touch = p.options.first_touch;
  o.splits = p.options.splits;
  o.deterministic = p.options.deterministic;
  o.block_mask = p.inputs.block_mask;
  return o;
}

}  // namespace flash

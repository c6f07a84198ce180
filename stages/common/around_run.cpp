#include "stages/common/around_run.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/memory/range.hpp"

namespace flash {

std::vector<std::string_view> options_asked(const Inputs& in, const Options& o) {
  const std::pair<const char*, bool> options[] = {
      {"causal", o.causal},           {"window", o.window.left >= 0 || o.window.right >= 0},
      {"softcap", o.softcap > 0},     {"alibi", !in.slopes.empty()},
      {"mask", !in.mask.empty()},     {"block-mask", !in.block_mask.empty()},
      {"dropout", o.dropout > 0},     {"scale", o.scale.has_value()},
      {"first-touch", o.first_touch}, {"br and bc", o.br > 0 || o.bc > 0},
      {"splits", o.splits > 1},       {"deterministic", o.deterministic},
      {"warps", o.warps.has_value()},
  };
  std::vector<std::string_view> asked;
  for (const auto& [option, is_asked] : options)
    if (is_asked) asked.push_back(option);
  return asked;
}

void require_programs(const Stage& stage, Side side, bool backward) {
  if (!stage.has(side, Direction::forward))
    throw Refused(
        side == Side::cpu
            ? fmt::format("a run on the CPU was asked of stage {}, which is of kernels alone; take stage {}, or "
                          "--on vgpu",
                          stage.id, stage.folder())
            : fmt::format("the kernels of stage {} were asked for, but it has none; take --on cpu", stage.id));
  if (!backward || stage.has(side, Direction::backward)) return;
  std::string other(stage.folder());  // its main entry has one, or a later stage
  for (const Stage& s : main_stages())
    if (s.has(side, Direction::backward) && s.number() >= stage.number()) {
      other = s.id;
      break;
    }
  throw Refused(fmt::format("the backward pass was asked of stage {}, which has only a forward pass; take stage {}",
                            stage.id, other));
}

void require_arrays(const Inputs& in, const Options& o, bool backward, bool may_miss_arrays) {
  const Shape& s = in.shape;
  if (s.heads < 1 || s.kv_heads < 1 || s.heads % s.kv_heads != 0)
    throw Refused(
        fmt::format("{} query heads were asked of {} key/value heads, which they do not share evenly; take a "
                    "multiple",
                    s.heads, s.kv_heads));
  if ((o.br > 0) != (o.bc > 0)) throw Refused("tiles were asked with one side only; give both --br and --bc");
  if (!in.block_mask.empty() && o.br == 0)
    throw Refused("a block mask was given without its tiles; give --br and --bc");

  const auto fits = [](const char* array, std::size_t size, bool may_miss, Index needed) {
    if (static_cast<Index>(size) != needed && !(size == 0 && may_miss))
      throw Refused(fmt::format("{} has {} elements where the problem needs {}; give arrays of one problem", array,
                                size, needed));
  };
  fits("q", in.q.size(), may_miss_arrays, s.batch * s.heads * s.Nq * s.d);
  fits("k", in.k.size(), may_miss_arrays, s.batch * s.kv_heads * s.Nk * s.d);
  fits("v", in.v.size(), may_miss_arrays, s.batch * s.kv_heads * s.Nk * s.dv);
  fits("dout", in.dout.size(), may_miss_arrays || !backward, s.batch * s.heads * s.Nq * s.dv);
  fits("slopes", in.slopes.size(), true, s.heads);
  fits("mask", in.mask.size(), true, in.mask_batch * in.mask_heads * s.Nq * s.Nk);
  if (o.br > 0) fits("block mask", in.block_mask.size(), true, sim::ceil_div(s.Nq, o.br) * sim::ceil_div(s.Nk, o.bc));
}

void require_finite(const Inputs& inputs) {
  if (const std::string found = first_nonfinite(inputs); !found.empty())
    throw Refused("a run on finite inputs was asked for, but " + found + "; mend it or pass --allow-nonfinite");
}

void require_softcap_in_format(const Stage& stage, const Inputs& in, const Options& o, bool backward) {
  constexpr double smallest_normal = 0x1p-14;
  if (!backward || stage.lse != "S" || in.dtype != Format::fp16 || o.softcap == 0 || o.softcap >= smallest_normal)
    return;
  throw Refused(
      fmt::format("gradients with softcap {} were asked of stage {}, which stores the scores S in fp16, where numbers "
                  "under 2^-14 are coarse; take a larger cap or stage 04_recomputed_backward, which stores none",
                  o.softcap, stage.id));
}

void refuse_scores_beyond_fp16(const Stage& stage) {
  throw Refused(
      fmt::format("fp16 was asked of stage {}, which stores the scores S in it, and one of them is beyond "
                  "65504; take stage 03_online_softmax, which keeps them in fp32, or bf16",
                  stage.id));
}

void refuse_overflow(const Inputs& in, const Options& o, const std::vector<double>& lse) {
  const Shape& s = in.shape;
  const Sight sees(in, o);
  for (Index row = 0; row < static_cast<Index>(lse.size()); ++row) {
    const Index i = row % s.Nq, h = row / s.Nq % s.heads, b = row / s.Nq / s.heads;
    if (!std::isfinite(lse[row]) && sees.any(b, h, i))
      throw Refused(
          fmt::format("a run in {} was asked for, but a score of query {} of head {} is beyond what {} holds; take "
                      "smaller inputs{}",
                      name(in.dtype), i, h, name(accumulator(in.dtype)), in.dtype == Format::fp64 ? "" : ", or fp64"));
  }
}

void refuse_infinite_outputs(const Stage& stage, const Inputs& in, const Outputs& out) {
  for (const auto& [output, values] : {std::pair{"O", &out.o}, {"dQ", &out.dq}, {"dK", &out.dk}, {"dV", &out.dv}})
    if (!std::ranges::all_of(*values, [](double x) { return std::isfinite(x); }))
      throw Refused(fmt::format(
          "{} in {} was asked of stage {}, but it, or a step on the way to it, is beyond what {} "
          "holds; take smaller inputs{}",
          output, name(in.dtype), stage.id, name(in.dtype), in.dtype == Format::fp64 ? "" : " or a wider format"));
}

}  // namespace flash

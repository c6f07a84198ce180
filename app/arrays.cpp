#include "app/arrays.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "app/memory.hpp"
#include "stages/common/draw.hpp"
#include "stages/common/nonfinite.hpp"
#include "stages/common/npy.hpp"

namespace flash::app {
namespace {

std::string shown(const std::vector<Index>& shape) { return fmt::format("[{}]", fmt::join(shape, ",")); }

/// An array of floating-point numbers.
Array read_reals(const std::string& file) {
  Array array = read_npy(file);
  if (!array.descr.starts_with("<f"))
    throw Refused(
        fmt::format("{}: real numbers were expected, but its type is {}; save it as float32, float16 or float64", file,
                    array.descr));
  return array;
}

/// An array that says yes or no: bool, uint8 or numbers, nonzero = yes. −∞ and NaN are the sign of an additive mask.
std::vector<std::uint8_t> read_flags(const std::string& file, std::vector<Index>& shape) {
  const Array array = read_npy(file);
  if (array.descr.starts_with("<i"))
    throw Refused(fmt::format("{}: a mask was expected, but its type is {}; save it as bool, uint8 or float32", file,
                              array.descr));
  std::vector<std::uint8_t> flags(array.data.size());
  for (std::size_t n = 0; n < flags.size(); ++n) {
    if (!std::isfinite(array.data[n]))
      throw Refused(
          fmt::format("{}: element {} of the mask is {}, but a mask here is not added to the scores; save nonzero "
                      "where a query may attend and 0 elsewhere",
                      file, n, array.data[n]));
    flags[n] = array.data[n] != 0;
  }
  shape = array.shape;
  return flags;
}

/// [N,d], [H,N,d] or [B,H,N,d] with 1 in front where an axis is missing.
std::array<Index, 4> four_axes(const std::string& file, const std::vector<Index>& shape) {
  if (shape.size() < 2 || shape.size() > 4)
    throw Refused(fmt::format("{}: its shape is {}, but [N,d], [H,N,d] or [B,H,N,d] was expected; reshape it", file,
                              shown(shape)));
  std::array<Index, 4> axes{1, 1, 1, 1};
  std::ranges::copy(shape, axes.end() - static_cast<std::ptrdiff_t>(shape.size()));
  return axes;
}

void require(bool same, const char* name_a, const Array& a, const char* name_b, const Array& b, const char* what) {
  if (!same)
    throw Refused(fmt::format("{} has the shape {} and {} has {}, but both need {}; give arrays that belong together",
                              name_a, shown(a.shape), name_b, shown(b.shape), what));
}

void read_files(const RunOptions& typed, Asked& asked) {
  if (typed.q.empty() || typed.k.empty() || typed.v.empty())
    throw Refused("only some of --q, --k and --v were given; give all three, or sizes such as --n 512 --d 64");
  Array q = read_reals(typed.q), k = read_reals(typed.k), v = read_reals(typed.v);
  const auto qs = four_axes(typed.q, q.shape), ks = four_axes(typed.k, k.shape), vs = four_axes(typed.v, v.shape);
  require(q.shape.size() == k.shape.size(), "q", q, "k", k, "as many axes");
  require(k.shape.size() == v.shape.size(), "k", k, "v", v, "as many axes");
  require(qs[0] == ks[0], "q", q, "k", k, "the same batch");
  require(qs[3] == ks[3], "q", q, "k", k, "the same last axis, d");
  require(ks[0] == vs[0], "k", k, "v", v, "the same batch");
  require(ks[1] == vs[1], "k", k, "v", v, "the same number of heads");
  require(ks[2] == vs[2], "k", k, "v", v, "as many rows, one for each key");

  Inputs& in = asked.inputs;
  in.shape = {qs[0], qs[1], ks[1], qs[2], ks[2], qs[3], vs[3]};
  require_shape(in.shape);
  in.q = std::move(q.data);
  in.k = std::move(k.data);
  in.v = std::move(v.data);
  asked.axes = q.shape.size();
}

void read_example(const RunOptions& typed, Asked& asked) {
  const Format dtype = asked.inputs.dtype;
  if (typed.example == "minilm") {
    asked.inputs = example_minilm(FLASH_SOURCE_DIR "/stages/common/data", dtype);
    asked.axes = 3;
  } else {
    asked.inputs = example_hand(dtype);
    asked.axes = 2;
    if (!asked.options.scale) asked.options.scale = 1;
    const bool tiles_chosen = typed.br || typed.bc || !typed.sram.empty();
    if (!tiles_chosen && asked.stage->forward.sram_bytes) asked.options.br = asked.options.bc = 2;
  }
}

Shape typed_shape(const RunOptions& typed) {
  Shape s;
  s.batch = typed.batch.value_or(1);
  s.heads = typed.heads.value_or(1);
  s.kv_heads = typed.kv_heads.value_or(s.heads);
  s.Nq = typed.n.value_or(512);
  s.Nk = typed.nk.value_or(s.Nq);
  s.d = typed.d.value_or(64);
  s.dv = typed.dv.value_or(s.d);
  return s;
}

void refuse_two_sources(const RunOptions& typed) {
  const bool files = !typed.q.empty() || !typed.k.empty() || !typed.v.empty();
  const bool sizes = typed.n || typed.nk || typed.d || typed.dv || typed.batch || typed.heads || typed.kv_heads;
  if (files + sizes + !typed.example.empty() > 1)
    throw Refused(
        "the input was described in two ways; give files (--q, --k, --v), or sizes (--n, --d ...), or --example");
  if (!typed.example.empty() && typed.example != "hand" && typed.example != "minilm")
    throw Refused(fmt::format("the example \"{}\" was asked for, but there is no such example; take hand or minilm",
                              typed.example));
}

void read_dout(const RunOptions& typed, Asked& asked) {
  if (!typed.dout.empty() && !typed.backward)
    throw Refused("--dout was given, but it belongs to the backward pass, which was not asked; add --backward");
  Inputs& in = asked.inputs;
  if (!typed.backward) {
    in.dout.clear();
    return;
  }
  if (!typed.dout.empty()) {
    Array array = read_reals(typed.dout);
    const Shape& s = in.shape;
    if (const std::array<Index, 4> o{s.batch, s.heads, s.Nq, s.dv}; four_axes(typed.dout, array.shape) != o)
      throw Refused(fmt::format("dout has the shape {} and o [{}], but they must be the same; give the gradient of o",
                                shown(array.shape), fmt::join(o, ",")));
    in.dout = std::move(array.data);
    return;
  }
  asked.made_dout = true;
  if (in.dout.empty() && !(asked.config.machine.count_only && asked.source == "generated")) draw_dout(in, typed.seed);
}

/// Rounds to the run's format; a value that the format can't hold is not an infinity of the user's.
void round_to_format(Asked& asked) {
  const bool finite = first_nonfinite(asked.inputs).empty();
  round_inputs(asked.inputs);
  if (!finite) return;
  if (const std::string found = first_nonfinite(asked.inputs); !found.empty())
    throw Refused(fmt::format("{} was asked for, but rounded to it {}, beyond what it holds; take bf16, fp32 or fp64",
                              name(asked.inputs.dtype), found));
}

void read_slopes(const std::string& file, Inputs& in) {
  const Array array = read_reals(file);
  if (array.shape != std::vector<Index>{in.shape.heads})
    throw Refused(fmt::format("{}: its shape is {}, but ALiBi takes one slope for each query head, [{}]; give as many",
                              file, shown(array.shape), in.shape.heads));
  in.slopes.assign(array.data.begin(), array.data.end());
  for (std::size_t h = 0; h < in.slopes.size(); ++h)
    if (!std::isfinite(in.slopes[h]))
      throw Refused(fmt::format("{}: slope {} is {}; slopes must be finite in fp32", file, h, array.data[h]));
}

void read_mask(const std::string& file, Inputs& in) {
  const Shape& s = in.shape;
  std::vector<Index> shape;
  in.mask = read_flags(file, shape);
  const std::vector<Index> of_all{s.Nq, s.Nk}, of_heads{s.heads, s.Nq, s.Nk}, of_batch{s.batch, s.heads, s.Nq, s.Nk};
  if (shape != of_all && shape != of_heads && shape != of_batch)
    throw Refused(fmt::format("{}: its shape is {}, but a mask of this problem is {}, {} or {}; give one of them", file,
                              shown(shape), shown(of_all), shown(of_heads), shown(of_batch)));
  in.mask_heads = shape.size() > 2 ? s.heads : 1;
  in.mask_batch = shape.size() > 3 ? s.batch : 1;
}

/// Tiles given by hand, or no smaller than the run's; 0 for a stage without tiles.
Blocks largest_tiles(const Asked& asked) {
  if (!asked.stage->forward.sram_bytes || asked.kernels) return {};
  if (asked.options.br > 0) return {asked.options.br, asked.options.bc};
  const Inputs& in = asked.inputs;
  const Index M = asked.config.machine.sram_bytes / bytes_per_element(in.dtype);
  return theory::paper_blocks(std::max<Index>(M, 1), std::max(in.shape.d, in.shape.dv));
}

}  // namespace

void read_problem(const RunOptions& typed, Asked& asked) {
  refuse_two_sources(typed);
  Inputs& in = asked.inputs;
  const bool count_only = asked.config.machine.count_only;
  asked.source = !typed.q.empty() || !typed.k.empty() || !typed.v.empty() ? "files"
                 : !typed.example.empty()                                 ? typed.example
                                                                          : "generated";
  if (asked.source == "files") read_files(typed, asked);
  if (!typed.example.empty()) read_example(typed, asked);
  if (asked.source == "generated") {
    in.shape = typed_shape(typed);
    require_shape(in.shape);
  }
  if (!typed.mask.empty()) read_mask(typed.mask, in);
  if (asked.kernels) {
    cuda::require_taken(*asked.kernels, in, asked.options);
    cuda::require_room(*asked.kernels, in.shape, asked.options.splits, !typed.alibi.empty());
  }
  const Blocks tiles = largest_tiles(asked);
  require_memory(*asked.stage, in.shape,
                 {in.dtype, typed.backward, count_only, typed.check, asked.source != "generated",
                  static_cast<Index>(in.mask.size()), tiles.Br, tiles.Bc, asked.kernels.has_value()});
  if (asked.source == "generated" && !count_only) {
    Inputs drawn = draw_inputs(in.shape, in.dtype, typed.seed);
    in.q = std::move(drawn.q), in.k = std::move(drawn.k), in.v = std::move(drawn.v);
  }
  read_dout(typed, asked);
  round_to_format(asked);
  if (!typed.alibi.empty()) read_slopes(typed.alibi, in);
}

void read_block_mask(const std::string& file, Asked& asked) {
  const Options& o = asked.options;
  const Shape& s = asked.inputs.shape;
  if (o.br == 0)
    throw Refused(
        "--block-mask was given without --br and --bc, but its shape [Tr,Tc] depends on the tiles; give both");
  std::vector<Index> shape;
  asked.inputs.block_mask = read_flags(file, shape);
  if (const std::vector<Index> tiles{sim::ceil_div(s.Nq, o.br), sim::ceil_div(s.Nk, o.bc)}; shape != tiles)
    throw Refused(
        fmt::format("{}: its shape is {}, but tiles of {} x {} make a block mask of {}; give one of that shape", file,
                    shown(shape), o.br, o.bc, shown(tiles)));
}

}  // namespace flash::app

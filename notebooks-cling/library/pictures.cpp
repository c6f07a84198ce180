#include "notebooks-cling/library/pictures.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "cuda/ptx/layout.hpp"
#include "stages/common/visible_tiles.hpp"

namespace flash::notebook {

std::string against_oracle(const sim::TensorInfo& info, const std::vector<double>& values,
                           const std::vector<double>& oracle) {
  if (values.size() != oracle.size())
    throw Refused(
        fmt::format("{} was to be compared with {} numbers, but it has {}; take the oracle's of the same name",
                    info.name, oracle.size(), values.size()));
  double largest = 0;
  for (const double x : oracle) largest = std::max(largest, std::abs(x));
  for (std::size_t n = 0; n < values.size(); ++n)
    if (!(std::abs(values[n] - oracle[n]) <= 1e-5 * largest))
      return fmt::format("{} is NOT the oracle's: row {}, column {} is {:.4g} instead of {:.4g}\n", info.name,
                         n / info.cols % info.rows, n % info.cols, values[n], oracle[n]);
  return fmt::format("{} is the oracle's\n", info.name);
}

void require_head(const sim::TensorInfo& info, Index head) {
  if (head >= 0 && head < info.heads) return;
  throw Refused(info.heads == 1 ? fmt::format("head {} was asked for, but there is head 0; take it", head)
                                : fmt::format("head {} was asked for, but {} has heads 0 to {}; take one of them", head,
                                              info.name, info.heads - 1));
}

namespace {

/// "causal", "window 2, 1", "all": what decides who sees whom.
std::string rule_of(const Inputs& inputs, const Options& options) {
  std::vector<std::string> parts;
  if (options.causal) parts.push_back("causal");
  const auto side = [](Index n) { return n < 0 ? std::string("∞") : std::to_string(n); };
  if (options.window.left >= 0 || options.window.right >= 0)
    parts.push_back(fmt::format("window {}, {}", side(options.window.left), side(options.window.right)));
  if (!inputs.mask.empty()) parts.push_back("mask");
  return parts.empty() ? "all see all" : fmt::format("{}", fmt::join(parts, " and "));
}

}  // namespace

trace::Matrix who_sees_whom(const Inputs& inputs, const Options& options, Index Br, Index Bc) {
  const Shape& s = inputs.shape;
  const rules::Visibility sees = visibility(s, options);
  trace::Matrix m{
      .title = rule_of(inputs, options), .rows = s.Nq, .cols = s.Nk, .tile_rows = Br, .tile_cols = Bc, .largest = 2};
  for (Index i = 0; i < s.Nq; ++i)
    for (Index j = 0; j < s.Nk; ++j) {
      m.values.push_back(1);
      m.masked.push_back(!rules::visible(sees, i, j) || (!inputs.mask.empty() && !inputs.mask[i * s.Nk + j]));
    }
  m.texts.resize(m.values.size());
  return m;
}

trace::Matrix in_tiles(trace::Matrix matrix, Index Br, Index Bc) {
  matrix.tile_rows = Br, matrix.tile_cols = Bc;
  return matrix;
}

trace::Matrix outlined(trace::Matrix matrix, sim::Range rows, sim::Range cols, const std::string& words,
                       trace::Outline::Tone tone) {
  matrix.outlines.push_back({rows, cols, words, tone});
  return matrix;
}

trace::Matrix fragment(const std::string& operand) {
  using ptx::layout::Element;
  struct Map {
    const char *name, *title;
    Index rows, cols;
    int elements;
    Element (*at)(int lane, int i);
  };
  static constexpr std::array maps = {Map{"A", "A [16, 8], fp16: lane.element", 16, 8, 4, ptx::layout::mma_a},
                                      Map{"B", "B [8, 8], fp16: lane.element", 8, 8, 2, ptx::layout::mma_b},
                                      Map{"C", "C [16, 8], fp32: lane.element", 16, 8, 4, ptx::layout::mma_c}};
  const auto map = std::ranges::find(maps, operand, &Map::name);
  if (map == maps.end())
    throw Refused(
        fmt::format("fragment \"{}\" was asked for, but mma.m16n8k8 has A, B and C; take one of them", operand));
  trace::Matrix m{.title = map->title, .rows = map->rows, .cols = map->cols, .largest = 32};
  m.values.resize(m.rows * m.cols), m.texts.resize(m.rows * m.cols);
  for (int lane = 0; lane < 32; ++lane)
    for (int i = 0; i < map->elements; ++i) {
      const Element e = map->at(lane, i);
      m.values[e.row * m.cols + e.col] = lane + 1;
      m.texts[e.row * m.cols + e.col] = fmt::format("{}.{}", lane, i);
    }
  return m;
}

Banks banks(const std::vector<Index>& offsets) {
  constexpr Index count = 32, width = 4, row_bytes = 16;
  Banks b{{.title = "rows of an ldmatrix × 32 banks", .rows = static_cast<Index>(offsets.size()), .cols = count}, 0};
  std::array<int, count> load{};
  b.matrix.values.resize(b.matrix.rows * count);
  for (std::size_t row = 0; row < offsets.size(); ++row)
    for (Index byte = offsets[row]; byte < offsets[row] + row_bytes; byte += width) ++load[byte / width % count];
  for (std::size_t row = 0; row < offsets.size(); ++row)
    for (Index byte = offsets[row]; byte < offsets[row] + row_bytes; byte += width) {
      const Index bank = byte / width % count;
      b.matrix.values[row * count + bank] = load[bank] > 1 ? 1 : -1;  // orange: shared
    }
  b.wavefronts = *std::ranges::max_element(load);
  return b;
}

}  // namespace flash::notebook

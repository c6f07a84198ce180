#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>

#include "sim/trace/svg.hpp"
#include "sim/trace/svg_canvas.hpp"

namespace flash::trace {

namespace {

using Anchor = Canvas::Anchor;

constexpr int levels = 7;  // of a colour's strength
constexpr double title_height = 24, index_height = 18, line_height = 18, gap = 30, border = 8;

/// Size of a cell [pixels], the same for all matrices of a drawing.
struct Cells {
  bool with_numbers = true;
  double width = 0, height = 0;
};

enum class Kind { plain, masked, nan, unknown };

/// What stands in cell n.
std::string cell_text(const Matrix& m, Index n) {
  if (!m.texts.empty()) return m.texts[n];
  if (!m.unknown.empty() && m.unknown[n]) return "·";
  return m.values.empty() ? "" : number_text(m.values[n]);
}

class MatrixDrawing {
 public:
  MatrixDrawing(Canvas& canvas, const Matrix& matrix, const Cells& cells) : c_(canvas), m_(matrix), cells_(cells) {}

  double gutter() const { return 10 + text_width(std::to_string(m_.first_row + std::max<Index>(m_.rows - 1, 0))); }
  double width() const {
    double widest = std::max(text_width(m_.title), gutter() + m_.cols * cells_.width);
    for (const std::string& words : legend()) widest = std::max(widest, gutter() + 26 + text_width(words));
    return widest;
  }
  double height() const {
    return title_height + index_height + m_.rows * cells_.height + 8 + line_height * legend().size();
  }

  void draw(double x, double y) {
    c_.text(x, y + 14, Anchor::start, m_.title, "title");
    x_ = x + gutter(), y_ = y + title_height + index_height;
    colours();
    lines();
    indices();
    if (cells_.with_numbers) numbers();
    outlines();
    draw_legend();
  }

 private:
  double value(Index n) const { return m_.values.empty() ? 0 : m_.values[n]; }
  Kind kind(Index n) const {
    if (!m_.masked.empty() && m_.masked[n]) return Kind::masked;
    if (!m_.unknown.empty() && m_.unknown[n]) return Kind::unknown;
    if (std::isnan(value(n))) return Kind::nan;
    return value(n) == -std::numeric_limits<double>::infinity() ? Kind::masked : Kind::plain;
  }
  static bool is_lowest(double x) { return x <= std::numeric_limits<float>::lowest(); }

  std::string cell(Index i, Index j) const {
    return fmt::format("M{:g} {:g}h{:g}v{:g}h-{:g}z", x_ + j * cells_.width, y_ + i * cells_.height, cells_.width,
                       cells_.height, cells_.width);
  }

  double largest() const {
    if (m_.largest > 0) return m_.largest;
    double most = 0;
    for (const double v : m_.values)
      if (std::isfinite(v) && !is_lowest(v)) most = std::max(most, std::abs(v));
    return most;
  }

  /// One path for each strength of a colour and for each hatch.
  void colours() {
    std::array<std::string, levels + 1> minus, plus;
    std::string masked, nan;
    const double full = largest();
    for (Index n = 0; n < m_.rows * m_.cols; ++n) {
      const std::string path = cell(n / m_.cols, n % m_.cols);
      const double v = value(n);
      if (kind(n) == Kind::masked) masked += path;
      if (kind(n) == Kind::nan) nan += path;
      if (kind(n) != Kind::plain || is_lowest(v) || v == 0 || full == 0) continue;
      const double strength = std::min(1.0, std::abs(v) / full);
      (v < 0 ? minus : plus)[static_cast<int>(std::ceil(levels * strength))] += path;
    }
    const auto fill = [&](const char* name, const std::string& path, int level) {
      if (!path.empty()) c_.add("<path class='{}' fill-opacity='{:g}' d='{}'/>", name, level * 0.7 / levels, path);
    };
    for (int level = 1; level <= levels; ++level) {
      fill("minus", minus[level], level);
      fill("plus", plus[level], level);
    }
    if (!masked.empty()) c_.add("<path class='masked' d='{}'/>", masked);
    if (!nan.empty()) c_.add("<path class='{}' d='{}'/>", cells_.with_numbers ? "nan" : "nan small", nan);
  }

  void lines() {
    std::string grid, tiles;
    const double right = x_ + m_.cols * cells_.width, bottom = y_ + m_.rows * cells_.height;
    for (Index i = 1; i < m_.rows; ++i) {
      const bool of_tile = m_.tile_rows > 0 && i % m_.tile_rows == 0;
      if (of_tile || cells_.with_numbers)
        (of_tile ? tiles : grid) += fmt::format("M{:g} {:g}H{:g}", x_, y_ + i * cells_.height, right);
    }
    for (Index j = 1; j < m_.cols; ++j) {
      const bool of_tile = m_.tile_cols > 0 && j % m_.tile_cols == 0;
      if (of_tile || cells_.with_numbers)
        (of_tile ? tiles : grid) += fmt::format("M{:g} {:g}V{:g}", x_ + j * cells_.width, y_, bottom);
    }
    if (!grid.empty()) c_.add("<path class='grid' d='{}'/>", grid);
    c_.add("<path class='thin' d='M{:g} {:g}H{:g}V{:g}H{:g}z{}'/>", x_, y_, right, bottom, x_, tiles);
  }

  /// Every index where cells have numbers; else those where a tile begins, as far as there is room, and the last one.
  static std::set<Index> shown_indices(Index count, Index tile, double cell, double room) {
    std::set<Index> shown;
    const Index every = cell >= room ? 1 : std::max<Index>({1, tile, static_cast<Index>(std::ceil(room / cell))});
    for (Index i = 0; i < count; i += every)
      if (i == 0 || every == 1 || (count - 1 - i) * cell >= room) shown.insert(i);
    if (count > 0) shown.insert(count - 1);
    return shown;
  }

  void indices() {
    for (const Index j : shown_indices(m_.cols, m_.tile_cols, cells_.width, 24))
      c_.text(x_ + (j + 0.5) * cells_.width, y_ - 5, Anchor::middle, std::to_string(m_.first_col + j), "faint");
    for (const Index i : shown_indices(m_.rows, m_.tile_rows, cells_.height, 14))
      c_.text(x_ - 5, y_ + (i + 0.5) * cells_.height + 4, Anchor::end, std::to_string(m_.first_row + i), "faint");
  }

  void numbers() {
    for (Index n = 0; n < m_.rows * m_.cols; ++n) {
      const std::string words = cell_text(m_, n);
      if (!words.empty())
        c_.text(x_ + (n % m_.cols + 0.5) * cells_.width, y_ + (n / m_.cols + 0.5) * cells_.height + 4, Anchor::middle,
                words);
    }
  }

  static const char* tone_class(Outline::Tone tone) {
    return tone == Outline::Tone::read ? "read" : tone == Outline::Tone::written ? "written" : "thick";
  }

  void outlines() {
    for (const Outline& o : m_.outlines)
      c_.add("<rect class='{}' x='{:g}' y='{:g}' width='{:g}' height='{:g}'/>", tone_class(o.tone),
             x_ + o.cols.begin * cells_.width, y_ + o.rows.begin * cells_.height, o.cols.size() * cells_.width,
             o.rows.size() * cells_.height);
  }

  std::vector<std::string> legend() const {
    std::vector<std::string> all;
    for (const Outline& o : m_.outlines)
      if (!o.words.empty() && std::ranges::find(all, o.words) == all.end()) all.push_back(o.words);
    return all;
  }

  void draw_legend() {
    double y = y_ + m_.rows * cells_.height + 20;
    for (const std::string& words : legend()) {
      const auto outline = std::ranges::find(m_.outlines, words, &Outline::words);
      c_.add("<rect class='{}' x='{:g}' y='{:g}' width='16' height='10'/>", tone_class(outline->tone), x_ + 2, y - 10);
      c_.text(x_ + 26, y, Anchor::start, words);
      y += line_height;
    }
  }

  Canvas& c_;
  const Matrix& m_;
  Cells cells_;
  double x_ = 0, y_ = 0;
};

Cells cells_of(const std::vector<Matrix>& matrices) {
  Cells cells;
  Index longest = 1;
  double widest = 0;
  for (const Matrix& m : matrices) {
    cells.with_numbers = cells.with_numbers && m.cols <= 16 && m.rows <= 16;
    longest = std::max({longest, m.rows, m.cols});
  }
  if (!cells.with_numbers) {
    cells.width = cells.height = std::clamp(std::floor(320.0 / static_cast<double>(longest)), 2.0, 12.0);
    return cells;
  }
  for (const Matrix& m : matrices)
    for (Index n = 0; n < m.rows * m.cols; ++n) widest = std::max(widest, text_width(cell_text(m, n)));
  return {true, std::max(26.0, widest + 10), 24};
}

}  // namespace

std::string number_text(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "∞" : "−∞";
  if (value <= std::numeric_limits<float>::lowest()) return "lowest";
  std::string text = fmt::format("{:.3g}", value + 0.0);
  if (text == "-0") return "0";
  for (std::size_t at; (at = text.find("e+0")) != std::string::npos;) text.replace(at, 3, "e");
  for (std::size_t at; (at = text.find("e-0")) != std::string::npos;) text.replace(at, 3, "e-");
  for (std::size_t at; (at = text.find('-')) != std::string::npos;) text.replace(at, 1, "−");
  return text;
}

std::string matrices_svg(const std::vector<Matrix>& matrices) {
  Canvas canvas;
  const Cells cells = cells_of(matrices);
  double x = border, bottom = 0;
  std::string label;
  for (const Matrix& m : matrices) {
    MatrixDrawing drawing(canvas, m, cells);
    drawing.draw(x, border);
    x += drawing.width() + gap;
    bottom = std::max(bottom, border + drawing.height());
    label += fmt::format("{}{}: {} rows, {} columns", label.empty() ? "" : "; ", m.title, m.rows, m.cols);
  }
  return canvas.svg(std::max(x - gap, 0.0) + 2 * border, bottom + border, label);
}

}  // namespace flash::trace

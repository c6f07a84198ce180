#include <algorithm>
#include <stdexcept>

#include "sim/trace/svg.hpp"
#include "sim/trace/svg_canvas.hpp"

namespace flash::trace {

std::string bars_svg(const Bars& chart) {
  constexpr double top = 34, pitch = 26, thickness = 17, room = 400, right = 24;
  double largest = 0, left = 24, words = 0;
  for (const Bar& bar : chart.bars) {
    largest = std::max(largest, bar.length);
    left = std::max(left, 34 + text_width(bar.name));
    words = std::max(words, text_width(bar.words));
  }
  if (!(largest > 0)) throw std::invalid_argument("bars were asked for, but none is longer than 0; give one");
  Canvas canvas;
  canvas.text(24, 18, Canvas::Anchor::start, chart.title, "title");
  for (std::size_t n = 0; n < chart.bars.size(); ++n) {
    const Bar& bar = chart.bars[n];
    const double y = top + pitch * static_cast<double>(n), length = room * bar.length / largest;
    canvas.text(left - 8, y + 13, Canvas::Anchor::end, bar.name);
    canvas.add("<rect fill='{}' x='{:g}' y='{:g}' width='{:.1f}' height='{:g}'/>", colour(bar.kind), left, y, length,
               thickness);
    canvas.text(left + length + 7, y + 13, Canvas::Anchor::start, bar.words);
  }
  const double bottom = top + pitch * static_cast<double>(chart.bars.size());
  canvas.add("<path class='thin' d='M{:g} {:g}V{:g}'/>", left, top - 4, bottom - 4);
  return canvas.svg(left + room + 14 + words + right, bottom + 8, chart.title);
}

}  // namespace flash::trace

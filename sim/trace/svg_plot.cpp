#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "sim/trace/svg.hpp"
#include "sim/trace/svg_canvas.hpp"

namespace flash::trace {

namespace {

using Anchor = Canvas::Anchor;

constexpr double top = 34, plot_width = 560, plot_height = 300, right = 24;

std::string power_of_ten(int exponent) {
  constexpr std::array digits = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string text = exponent < 0 ? "10⁻" : "10";
  for (const char c : std::to_string(std::abs(exponent))) text += digits[c - '0'];
  return text;
}

std::string grouped(double value) {
  if (std::abs(value) < 1e3 || std::abs(value) >= 1e15 || value != std::round(value)) return number_text(value);
  const std::string digits = fmt::format("{:.0f}", std::abs(value));
  std::string text = value < 0 ? "−" : "";
  for (std::size_t n = 0; n < digits.size(); ++n) {
    if (n > 0 && (digits.size() - n) % 3 == 0) text += ',';
    text += digits[n];
  }
  return text;
}

/// Values to pixels, and where its ticks are.
class Axis {
 public:
  Axis(bool log, double low, double high, double from, double to) : log_(log), from_(from), to_(to) {
    if (log) {
      low_ = std::log2(low), high_ = std::log2(high);
    } else {
      low_ = low, high_ = high;
    }
    const double room = high_ > low_ ? 0.03 * (high_ - low_) : 1;
    low_ -= room, high_ += room;
  }

  double at(double value) const {
    return from_ + ((log_ ? std::log2(value) : value) - low_) / (high_ - low_) * (to_ - from_);
  }

  /// (value, words)
  std::vector<std::pair<double, std::string>> ticks() const {
    std::vector<std::pair<double, std::string>> all;
    if (!log_) {
      const double step = nice_step((high_ - low_) / 6);
      for (double v = std::ceil(low_ / step) * step; v <= high_; v += step)
        all.emplace_back(v, grouped(std::abs(v) < step / 2 ? 0 : v));
    } else if (const double decades = (high_ - low_) * std::log10(2.0); decades >= 2 && std::exp2(high_) > 1e6) {
      const int every = static_cast<int>(std::ceil(decades / 8));
      for (int e = static_cast<int>(std::ceil(low_ * std::log10(2.0))); e <= high_ * std::log10(2.0); e += every)
        all.emplace_back(std::pow(10.0, e), power_of_ten(e));
    } else {
      const int every = static_cast<int>(std::ceil((high_ - low_) / 7));
      for (int e = static_cast<int>(std::ceil(low_)); e <= high_; e += every)
        all.emplace_back(std::exp2(e), grouped(std::exp2(e)));
    }
    return all;
  }

 private:
  static double nice_step(double rough) {
    const double power = std::pow(10.0, std::floor(std::log10(rough)));
    for (const double factor : {1.0, 2.0, 5.0})
      if (factor * power >= rough) return factor * power;
    return 10 * power;
  }

  bool log_;
  double low_ = 0, high_ = 0, from_, to_;
};

constexpr std::array dashes = {"none", "8 4", "2 3", "10 3 2 3", "5 2", "12 4", "1 4", "14 3 4 3"};

std::string mark(std::size_t n, double x, double y) {
  switch (n % colours) {
    case 0: return fmt::format("M{:g} {:g}m-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0", x, y);
    case 1: return fmt::format("M{:g} {:g}m-4 -4h8v8h-8z", x, y);
    case 2: return fmt::format("M{:g} {:g}m0 -5l5 9h-10z", x, y);
    case 3: return fmt::format("M{:g} {:g}m0 -5l5 5l-5 5l-5 -5z", x, y);
    case 4: return fmt::format("M{:g} {:g}m-4 -4l8 8m0 -8l-8 8", x, y);
    case 5: return fmt::format("M{:g} {:g}m-5 0h10m-5 -5v10", x, y);
    case 6: return fmt::format("M{:g} {:g}m0 5l5 -9h-10z", x, y);
    default: return fmt::format("M{:g} {:g}m-5 0h10", x, y);
  }
}

struct Bounds {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  void add(double v) { low = std::min(low, v), high = std::max(high, v); }
};

bool shows(const Plot& p, const std::pair<double, double>& point) {
  return std::isfinite(point.first) && std::isfinite(point.second) && (!p.log_x || point.first > 0) &&
         (!p.log_y || point.second > 0);
}

void draw_axes(Canvas& canvas, const Plot& p, const Axis& x, const Axis& y, double left) {
  const double bottom = top + plot_height;
  canvas.text(left, 18, Anchor::start, p.title, "title");
  for (const auto& [value, words] : x.ticks()) {
    canvas.add("<path class='grid' d='M{:.1f} {:g}V{:g}'/>", x.at(value), top, bottom);
    canvas.text(std::round(x.at(value)), bottom + 17, Anchor::middle, words);
  }
  for (const auto& [value, words] : y.ticks()) {
    canvas.add("<path class='grid' d='M{:g} {:.1f}H{:g}'/>", left, y.at(value), left + plot_width);
    canvas.text(left - 7, std::round(y.at(value)) + 4, Anchor::end, words);
  }
  canvas.add("<rect class='thin' x='{:g}' y='{:g}' width='{:g}' height='{:g}'/>", left, top, plot_width, plot_height);
  canvas.text(left + plot_width / 2, bottom + 36, Anchor::middle, p.x);
  canvas.add("<text transform='translate(16 {:g}) rotate(-90)' text-anchor='middle'>{}</text>", top + plot_height / 2,
             escaped(p.y));
}

void draw_curve(Canvas& canvas, const Plot& p, std::size_t n, const Axis& x, const Axis& y) {
  std::string line, marks;
  for (const auto& point : p.curves[n].points) {
    if (!shows(p, point)) continue;
    const double px = std::round(10 * x.at(point.first)) / 10, py = std::round(10 * y.at(point.second)) / 10;
    line += fmt::format("{}{:g} {:g}", line.empty() ? "M" : "L", px, py);
    marks += mark(n, px, py);
  }
  if (p.curves[n].is_marks)
    canvas.add("<path fill='none' stroke='{}' stroke-width='2' d='{}'/>", colour(n), marks);
  else
    canvas.add("<path fill='none' stroke='{}' stroke-width='2' stroke-dasharray='{}' d='{}'/>", colour(n),
               dashes[n % colours], line);
}

void draw_legend(Canvas& canvas, const Plot& p, double left) {
  double y = top + plot_height + 60;
  for (std::size_t n = 0; n < p.curves.size(); ++n, y += 18) {
    if (p.curves[n].is_marks)
      canvas.add("<path fill='none' stroke='{}' stroke-width='2' d='{}'/>", colour(n), mark(n, left + 18, y - 4));
    else
      canvas.add("<path stroke='{}' stroke-width='2' stroke-dasharray='{}' d='M{:g} {:g}h36'/>", colour(n),
                 dashes[n % colours], left, y - 4);
    canvas.text(left + 46, y, Anchor::start, p.curves[n].title);
  }
}

}  // namespace

std::string plot_svg(const Plot& p) {
  Bounds x, y;
  for (const Curve& curve : p.curves)
    for (const auto& point : curve.points)
      if (shows(p, point)) x.add(point.first), y.add(point.second);
  if (!(x.low <= x.high)) throw std::invalid_argument("a plot was asked for, but there is no point to show; give one");
  const Axis up(p.log_y, y.low, y.high, top + plot_height, top);
  double left = 0;  // room for the vertical axis and its words
  for (const auto& [value, words] : up.ticks()) left = std::max(left, 40 + text_width(words));
  const Axis across(p.log_x, x.low, x.high, left, left + plot_width);
  Canvas canvas;
  draw_axes(canvas, p, across, up, left);
  for (std::size_t n = 0; n < p.curves.size(); ++n) draw_curve(canvas, p, n, across, up);
  draw_legend(canvas, p, left);
  double width = left + plot_width + right;
  for (const Curve& curve : p.curves) width = std::max(width, left + 60 + text_width(curve.title));
  return canvas.svg(width, top + plot_height + 52 + 18 * static_cast<double>(p.curves.size()), p.title);
}

}  // namespace flash::trace

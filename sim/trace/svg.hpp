// Drawings as SVG text: matrices with their tiles and masks, curves, bars and timelines. For notebooks, the stepper and
// the site: each is a whole <svg> element that stands in a page or is a file.
//
// Colours: blue is negative or reads, orange positive or writes; what colour says is said by a number, a hatch, a dash
// or words, too. Ink and paper follow the reader's light or dark setting; a page with a switch of its own sets
// --flash-ink and --flash-paper on any element around the drawing.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/memory/range.hpp"

namespace flash::trace {

/// A part of a matrix, outlined, with words at its corner.
struct Outline {
  enum class Tone { plain, read, written };
  sim::Range rows, cols;
  std::string words;
  Tone tone = Tone::plain;
};

/// A matrix [rows, cols] to draw. −∞, ∞ and NaN are shown as such; the lowest finite number, which stands for the
/// maximum of nothing, as "lowest".
struct Matrix {
  std::string title;  ///< above it: "S = scale·QKᵀ"
  Index rows = 0, cols = 0;
  std::vector<double> values{};        ///< row-major; empty: cells without numbers or colours
  std::vector<bool> masked{};          ///< hatched, whatever their value; empty: none
  std::vector<bool> unknown{};         ///< nobody wrote them: empty, with a dot; empty: none
  std::vector<std::string> texts{};    ///< in place of the numbers; empty: numbers, where the cells have room
  Index tile_rows = 0, tile_cols = 0;  ///< lines between tiles; 0: none
  std::vector<Outline> outlines{};
  Index first_row = 0, first_col = 0;  ///< what rows and columns at the margins count from
  double largest = 0;                  ///< of the colours, at full strength; 0: the largest finite |value|
};

/// Matrices side by side, all with the same cells: numbers in them up to 16 × 16, colours alone beyond.
std::string matrices_svg(const std::vector<Matrix>& matrices);
inline std::string matrix_svg(const Matrix& matrix) { return matrices_svg({matrix}); }

/// A number as cells show it: "−∞", "NaN", "lowest", "−1.28"; three digits.
std::string number_text(double value);

/// One curve or, where `is_marks`, unconnected points.
struct Curve {
  std::string title;
  std::vector<std::pair<double, double>> points;
  bool is_marks = false;
};

struct Plot {
  std::string title, x, y;    ///< with units: "M [elements]"
  std::vector<Curve> curves;  ///< up to 8: each has a colour, a dash and a mark of its own
  bool log_x = true, log_y = true;
};

/// @throws std::invalid_argument where no point can be shown: without curves, or by logarithm without positive points.
std::string plot_svg(const Plot& plot);

/// A bar of a chart, drawn from 0.
struct Bar {
  std::string name, words;  ///< before it and after it: the words say what it stands for, with its unit
  double length = 0;
  std::size_t kind = 0;  ///< which colour
};

struct Bars {
  std::string title;
  std::vector<Bar> bars;
};

/// Horizontal bars, one below the other. @throws std::invalid_argument where none is longer than 0.
std::string bars_svg(const Bars& bars);

/// A stretch of time in a lane.
struct Span {
  std::string kind;  ///< has a colour and a pattern, in order of appearance, and a line in the legend
  double begin = 0, end = 0;
  std::string words;  ///< shown when pointed at
};

struct Lane {
  std::string name;  ///< "warp 0"
  std::vector<Span> spans;
};

struct Timeline {
  std::string title, unit;  ///< of time, under the axis: "nominal cycles"
  std::vector<Lane> lanes;
};

std::string timeline_svg(const Timeline& timeline);

}  // namespace flash::trace

// What all drawings are made with: a growing list of SVG elements under one style.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace flash::trace {

/// Text as an element's content or an attribute's value.
std::string escaped(std::string_view text);

/// Pixels that a line of text takes, about.
double text_width(std::string_view text);

/// The n-th colour of curves and kinds, on light and dark paper.
std::string_view colour(std::size_t n);
constexpr std::size_t colours = 8;

class Canvas {
 public:
  enum class Anchor { start, middle, end };

  /// Appends an element: canvas.add("<rect x='{}'/>", x).
  template <class... Arguments>
  void add(fmt::format_string<Arguments...> element, Arguments&&... arguments) {
    body_ += fmt::format(element, std::forward<Arguments>(arguments)...) + "\n";
  }
  void text(double x, double y, Anchor anchor, std::string_view words, std::string_view classes = "");

  /// The whole element. `label`: what it shows, for those who don't see it.
  std::string svg(double width, double height, std::string_view label) const;

 private:
  std::string body_;
};

}  // namespace flash::trace

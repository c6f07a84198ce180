// What a notebook's C++ may show beside text: nb::svg(text), nb::html(text), nb::markdown(text), nb::latex(text); or an
// nb::Svg or nb::Html as a cell's last value. Compiled by anything but the kernel the calls do nothing.
#pragma once

#if defined(__CLING__) && defined(NDEBUG)
#undef NDEBUG  // cppyy sets it; in a notebook asserts hold
#endif
#include <cassert>
#include <cstdio>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <string_view>

namespace nb {

/// `mime`: a MIME type, or "bundle" with a JSON object of several.
inline void display([[maybe_unused]] std::string_view mime, [[maybe_unused]] std::string_view data) {
#ifdef __CLING__
  std::cout.flush();
  std::printf("\x1b]mime;%.*s;%zu\x07", static_cast<int>(mime.size()), mime.data(), data.size());
  std::fwrite(data.data(), 1, data.size(), stdout);
  std::fflush(stdout);
#endif
}
inline void html(std::string_view text) { display("text/html", text); }
inline void svg(std::string_view text) { display("image/svg+xml", text); }
inline void markdown(std::string_view text) { display("text/markdown", text); }
inline void latex(std::string_view text) { display("text/latex", text); }
/// What comes next takes the place of the cell's output so far.
inline void clear() { display("clear", ""); }
/// Puts a new cell with this text below the one that runs.
inline void next_cell(std::string_view text) { display("next cell", text); }

inline std::map<std::string, std::string> cells;  // by the name that diagnostics and source_location give them
inline void remember(const std::string& source, const std::string& cell) { cells[source] = cell; }
/// Line `line` (from 1) of the cell that compilers call `source`; empty where there is none.
inline std::string line_of(const std::string& source, std::size_t line) {
  const auto cell = cells.find(source);
  if (cell == cells.end()) return "";
  std::istringstream text(cell->second);
  std::string found;
  while (line-- > 0)
    if (!std::getline(text, found)) return "";
  return found;
}

struct Html {
  std::string text;
};
struct Svg {
  std::string text;
};

}  // namespace nb

#ifdef __CLING__
namespace cling {
inline std::string printValue(const nb::Html* value) { return nb::html(value->text), ""; }
inline std::string printValue(const nb::Svg* value) { return nb::svg(value->text), ""; }
}  // namespace cling
#endif

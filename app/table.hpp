// Plain-text tables and paragraphs for a terminal: aligned, with units, in characters rather than bytes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/memory/eigen.hpp"

namespace flash::app {

/// Columns as wide as their widest cell, two blanks apart, a unit under each title.
class Table {
 public:
  enum class Align { left, right };

  Table& column(std::string title, std::string unit = "", Align align = Align::right);
  /// One cell for each column; missing ones at the end are empty.
  Table& row(std::vector<std::string> cells);

  /// All lines, each with a line end and without blanks before it. The unit line is left out where no column has one.
  std::string text() const;

 private:
  struct Column {
    std::string title, unit;
    Align align;
  };
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

/// Characters of a UTF-8 text, each taken as one column wide.
std::size_t width(std::string_view text);

/// `text` broken between words into lines of at most `columns`; the first begins with `label`, the others are indented
/// as far. Each ends with a line end.
std::string paragraph(std::string_view label, std::string_view text, std::size_t columns);

/// Begins with a capital letter, unless the first word is a symbol: "e^(S − LSE) is P" stays.
std::string sentence(std::string_view words);

/// Three digits and a decimal unit: 268435456 is "268 MB", 1 MB being 10⁶ bytes.
std::string decimal_bytes(Index bytes);

/// An SRAM's size, as --sram takes it: 65536 is "64KiB"; bytes where it is no multiple of 1024.
std::string binary_bytes(Index bytes);

/// How many times less or more `after` is than `before`: "4.2x less", "1.3x more", "the same".
std::string times(Index before, Index after);

}  // namespace flash::app

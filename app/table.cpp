#include "app/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <sstream>

namespace flash::app {

Table& Table::column(std::string title, std::string unit, Align align) {
  columns_.push_back({std::move(title), std::move(unit), align});
  return *this;
}

Table& Table::row(std::vector<std::string> cells) {
  cells.resize(columns_.size());
  rows_.push_back(std::move(cells));
  return *this;
}

std::string Table::text() const {
  std::vector<std::string> titles, units;
  for (const Column& c : columns_) titles.push_back(c.title), units.push_back(c.unit);
  std::vector<std::vector<std::string>> lines{titles};
  if (std::ranges::any_of(units, [](const std::string& u) { return !u.empty(); })) lines.push_back(units);
  lines.insert(lines.end(), rows_.begin(), rows_.end());

  std::vector<std::size_t> widths(columns_.size());
  for (const auto& cells : lines)
    for (std::size_t c = 0; c < cells.size(); ++c) widths[c] = std::max(widths[c], width(cells[c]));

  std::string text;
  for (const auto& cells : lines) {
    std::string line;
    for (std::size_t c = 0; c < cells.size(); ++c) {
      const std::string blanks(widths[c] - width(cells[c]), ' ');
      if (c > 0) line += "  ";
      line += columns_[c].align == Align::left ? cells[c] + blanks : blanks + cells[c];
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::size_t width(std::string_view text) {
  return std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

std::string paragraph(std::string_view label, std::string_view text, std::size_t columns) {
  const std::string indent(width(label), ' ');
  std::string all, line(label), word;
  bool empty = true;
  for (std::istringstream words{std::string(text)}; words >> word;) {
    if (!empty && width(line) + 1 + width(word) > columns) {
      all += line + "\n";
      line = indent;
      empty = true;
    }
    line += (empty ? "" : " ") + word;
    empty = false;
  }
  return all + line + "\n";
}

std::string sentence(std::string_view words) {
  std::string text(words);
  const bool is_word = text.size() > 1 && (std::isalpha(static_cast<unsigned char>(text[1])) || text[1] == ' ');
  if (is_word) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

std::string decimal_bytes(Index bytes) {
  constexpr std::array units{"B", "kB", "MB", "GB", "TB", "PB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 999.5 && unit + 1 < units.size(); ++unit) value /= 1000;
  const int decimals = unit == 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f} {}", value, decimals, units[unit]);
}

std::string binary_bytes(Index bytes) {
  return bytes % 1024 == 0 ? fmt::format("{}KiB", bytes / 1024) : fmt::format("{}", bytes);
}

std::string times(Index before, Index after) {
  if (before == after) return "the same";
  const double ratio = static_cast<double>(before) / static_cast<double>(after);
  return ratio > 1 ? fmt::format("{:.3g}x less", ratio) : fmt::format("{:.3g}x more", 1 / ratio);
}

}  // namespace flash::app

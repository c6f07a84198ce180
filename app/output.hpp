// Standard output carries a command's result and nothing else; a refusal is one sentence on standard error.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace flash::app {

constexpr std::size_t columns = 120;  ///< of a table, at most

/// Writes all of `text` to standard output. A reader that went away is no error; a full disk throws Refused.
void print(std::string_view text);

/// The same for one JSON document, indented, with a line end.
void print_json(const nlohmann::ordered_json& json);

/// Throws Refused where --out names a folder rather than a file.
void require_file_name(const std::string& file);

/// `text` as the whole of a file, which is replaced or not touched. Throws Refused.
void write_file(const std::string& file, std::string_view text);

/// A JSON number, or "nan", "inf", "-inf", which JSON has no numbers for.
nlohmann::ordered_json json_number(double value);

/// `text` on one line, fit for a terminal: control characters become "?", white space one blank.
std::string one_line(std::string_view text);

/// 1234567 as "1,234,567".
std::string grouped(long long value);

}  // namespace flash::app

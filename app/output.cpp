#include "app/output.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "stages/common/npy.hpp"

namespace flash::app {

void print(std::string_view text) {
  errno = 0;
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  if (!written && errno != EPIPE)
    throw Refused(
        fmt::format("the result was to go to standard output, but writing there failed ({}); free space or send "
                    "it elsewhere",
                    std::strerror(errno)));
}

void print_json(const nlohmann::ordered_json& json) {
  print(json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

void require_file_name(const std::string& file) {
  std::error_code ignored;
  if (std::filesystem::path(file).filename().empty() || std::filesystem::is_directory(file, ignored))
    throw Refused(fmt::format("--out {} was asked for, but it names a folder; name a file in it", file));
  if (std::filesystem::exists(file, ignored) && !std::filesystem::is_regular_file(file, ignored))
    throw Refused(fmt::format("--out {} was asked for, but that is a device or a pipe; name a file", file));
}

void write_file(const std::string& file, std::string_view text) {
  namespace fs = std::filesystem;
  const fs::path path = fs::is_symlink(file) ? fs::canonical(file) : fs::path(file);  // what a link names is replaced
  const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
  write_files(path.has_parent_path() ? path.parent_path() : ".",
              {{path.filename().string(), Bytes(bytes, bytes + text.size())}});
}

nlohmann::ordered_json json_number(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

std::string one_line(std::string_view text) {
  std::string line;
  for (const char c : text) {
    const bool space = c == ' ' || c == '\n' || c == '\t' || c == '\r';
    const bool control = static_cast<unsigned char>(c) < ' ' || c == '\x7f';
    if (space && (line.empty() || line.back() == ' ')) continue;
    line += space ? ' ' : control ? '?' : c;
  }
  while (line.ends_with(' ')) line.pop_back();
  return line;
}

std::string grouped(long long value) {
  std::string digits = fmt::format("{}", value);
  const std::size_t first = value < 0 ? 1 : 0;
  for (std::size_t at = digits.size(); at > first + 3;) digits.insert(at -= 3, 1, ',');
  return digits;
}

}  // namespace flash::app

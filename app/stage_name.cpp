#include "app/stage_name.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>

namespace flash::app {
namespace {

/// Stages to come: named, so that they are not taken for mistakes.
constexpr std::string_view planned[] = {"05_fa2_partitioning", "06_fa3_pipelines", "07_fa4_rescaling"};

struct StageName {
  std::string_view stage, letter;
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// "05b" and "fa2_partitioning/b_split_q_warps" apart: the stage, and the letter or the letter's file.
StageName split(std::string_view name) {
  if (const std::size_t slash = name.find('/'); slash != std::string_view::npos)
    return {name.substr(0, slash), name.substr(slash + 1)};
  const std::size_t digits = std::ranges::find_if_not(name, is_digit) - name.begin();
  if (digits > 0 && name.size() == digits + 1) return {name.substr(0, digits), name.substr(digits)};
  return {name, {}};
}

bool means(std::string_view name, std::string_view id) {
  const std::string_view number = id.substr(0, 2);
  return name == id || name == id.substr(3) || name == number || (number[0] == '0' && name == number.substr(1));
}

}  // namespace

const Stage& stage_named(std::string_view name) {
  const auto [stage, letter] = split(name);
  std::vector<std::string_view> built;
  for (const Stage& s : stages()) {
    built.push_back(s.id);
    if (!means(stage, s.id)) continue;
    if (letter.data() == nullptr) return s;
    throw Refused(fmt::format("\"{}\" was asked for, but stage {} is one program without letters; say {}", name, s.id,
                              s.number()));
  }
  for (const std::string_view id : planned)
    if (means(stage, id))
      throw Refused(
          fmt::format("stage \"{}\" was asked for, but it waits for {}, which is not built yet; take one of {}", name,
                      id, fmt::join(built, ", ")));
  return find_stage(name);  // refuses, naming those there are
}

}  // namespace flash::app

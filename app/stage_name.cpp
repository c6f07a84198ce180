#include "app/stage_name.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>

namespace flash::app {
namespace {

/// Stages to come: named, so that they are not taken for mistakes.
constexpr std::string_view planned[] = {"06_fa3_pipelines", "07_fa4_rescaling"};

/// "05_fa2_partitioning has the letters a_loop_swap, …".
std::string letters_of(const StageName& asked) {
  std::vector<std::string_view> letters;
  for (const Stage& s : stages())
    if (asked.means_folder(s.folder()) && !s.letter().empty()) letters.push_back(s.letter());
  return fmt::format("{}", fmt::join(letters, ", "));
}

}  // namespace

const Stage& stage_named(std::string_view name) {
  const StageName asked(name);
  std::vector<std::string_view> built;
  for (const Stage& s : main_stages()) {
    built.push_back(s.id);
    if (!asked.means_folder(s.folder())) continue;
    if (asked.letter.data() == nullptr) return find_stage(s.id);
    for (const Stage& step : stages())
      if (asked.means(step)) return step;
    const std::string letters = letters_of(asked);
    if (letters.empty())
      throw Refused(fmt::format("\"{}\" was asked for, but stage {} is one program without letters; say {}", name, s.id,
                                s.number()));
    throw Refused(fmt::format("\"{}\" was asked for, but stage {} has the letters {}; say {}a or {}", name, s.id,
                              letters, s.number(), s.number()));
  }
  for (const std::string_view id : planned)
    if (asked.means_folder(id))
      throw Refused(
          fmt::format("stage \"{}\" was asked for, but it waits for {}, which is not built yet; take one of {}", name,
                      id, fmt::join(built, ", ")));
  return find_stage(name);  // refuses, naming those there are
}

}  // namespace flash::app

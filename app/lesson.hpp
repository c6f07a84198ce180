// What a stage's source says of itself: its head comment, from which `why`, `tour` and the lessons are made.
#pragma once

#include <string>
#include <string_view>

#include "stages/common/registry.hpp"

namespace flash::app {

/// One program of a stage: its source, what it is said to extend, and where it runs.
struct Step {
  const Stage* stage = nullptr;
  Direction direction = Direction::forward;

  const Program& program() const;
  const ProgramFacts& facts() const;
  bool on_cpu() const { return stage->has(Side::cpu, direction); }
  std::string source() const;  ///< "stages/03_online_softmax/forward.hpp", from the project's root; or its kernel's
  std::string kernel() const;  ///< "cuda/03_online_softmax/forward.cu"
};

/// The step that `step` is a changed copy of. @throws Refused where stage.json names one that there isn't.
std::optional<Step> extended(const Step& step);

/// The head comment, without its labels. "Extends 02. The change: …", "Why it helps: …" (or "matters"), "What it
/// costs: …", "The ledger must now say: …".
struct HeadComment {
  std::string title, extends, change, why, costs, ledger;
};

/// @throws Refused naming `file` and the line that is missing.
HeadComment parse_head_comment(std::string_view source, std::string_view file);

/// @throws Refused where the source can't be read, or as above.
HeadComment head_comment(const Step& step);

/// A file of the project, whole. `path` is taken from the project's root. @throws Refused.
std::string read_source(const std::string& path);

}  // namespace flash::app

#include "app/lesson.hpp"

#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <sstream>

namespace flash::app {

namespace {

struct Label {
  std::string_view words;
  std::string HeadComment::*part;
};

constexpr Label labels[] = {{"Extends ", &HeadComment::extends},
                            {"The change: ", &HeadComment::change},
                            {"Why it helps: ", &HeadComment::why},
                            {"Why it matters: ", &HeadComment::why},
                            {"What it costs: ", &HeadComment::costs},
                            {"The ledger must now say: ", &HeadComment::ledger},
                            {"The ledger must say: ", &HeadComment::ledger}};

/// "02. The change: every pass …" is two parts on one line; a first stage, which extends nothing, has no change to
/// name.
void split_change(HeadComment& head) {
  const std::size_t end = head.extends.find(". ");
  if (!head.change.empty() || end == std::string::npos) return;
  std::string_view rest = std::string_view(head.extends).substr(end + 2);
  if (rest.starts_with(labels[1].words)) rest.remove_prefix(labels[1].words.size());
  head.change = rest;
  head.extends.resize(end);
}

}  // namespace

const Program& Step::program() const { return direction == Direction::forward ? stage->forward : stage->backward; }

const ProgramFacts& Step::facts() const {
  return direction == Direction::forward ? stage->forward_facts : stage->backward_facts;
}

std::string Step::source() const {
  return on_cpu() ? "stages/" + stage->source(Side::cpu, direction) + ".hpp" : kernel();
}

std::string Step::kernel() const { return "cuda/" + stage->source(Side::cuda, direction) + ".cu"; }

std::optional<Step> extended(const Step& step) {
  const std::string& extends = step.facts().extends;
  if (extends.empty()) return std::nullopt;
  const auto [stage, direction] = find_program(extends);
  return Step{stage, direction};
}

HeadComment parse_head_comment(std::string_view source, std::string_view file) {
  HeadComment head;
  std::string* part = &head.title;
  std::istringstream lines{std::string(source)};
  for (std::string line; std::getline(lines, line) && line.starts_with("//");) {
    std::string_view text = std::string_view(line).substr(std::min<std::size_t>(line.size(), 3));
    for (const Label& label : labels) {
      if (!text.starts_with(label.words)) continue;
      part = &(head.*label.part);
      text.remove_prefix(label.words.size());
    }
    part->append(part->empty() ? "" : " ").append(text);
  }
  split_change(head);
  for (const Label& label : labels)
    if ((head.*label.part).empty())
      throw Refused(
          fmt::format("the head comment of {} was asked for, but it has no \"{}…\"; add that line", file, label.words));
  return head;
}

HeadComment head_comment(const Step& step) { return parse_head_comment(read_source(step.source()), step.source()); }

std::string read_source(const std::string& path) {
  std::ifstream file(FLASH_SOURCE_DIR "/" + path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file.is_open() || file.bad() || text.empty())
    throw Refused(
        fmt::format("{} was to be read in {}, but it can't be; keep the program together with its sources, or "
                    "build it again where they are",
                    path, FLASH_SOURCE_DIR));
  return text;
}

}  // namespace flash::app

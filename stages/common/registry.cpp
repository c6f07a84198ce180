#include "stages/common/registry.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

namespace flash {

namespace {

using Json = nlohmann::json;

std::vector<Stage>& registered() {
  static std::vector<Stage> all;
  return all;
}

/// stage.json of each folder.
std::map<std::string, Json, std::less<>>& manifests() {
  static std::map<std::string, Json, std::less<>> all;
  return all;
}

ProgramFacts facts(const Json& json) {
  return {json.value("extends", ""), json.at("sections"), json.value("budget", 0), json.value("law", "")};
}

/// Of a program that a side has: "NN_name/forward", "NN_name/a_letter" or "NN_name/a_letter_backward".
std::string source_of(const Stage& stage, Direction direction) {
  if (stage.letter().empty()) return fmt::format("{}/{}", stage.id, name(direction));
  return stage.id + (direction == Direction::forward ? "" : "_backward");
}

const Stage& step_of(const std::string& folder, const Json& letter) {
  return find_stage(folder + "/" + letter.get<std::string>());
}

/// The main entry of a stage with letters: the programs that stage.json calls main.
Stage main_entry(const std::string& folder, const Json& json) {
  const Json& main = json.at("main");
  const Stage &forward = step_of(folder, main.at("forward")), &backward = step_of(folder, main.at("backward"));
  Stage stage{folder,
              json.at("title"),
              json.at("lse"),
              forward.options,
              forward.forward,
              backward.backward,
              forward.forward_facts,
              backward.backward_facts,
              {}};
  for (const std::string& option : backward.options)
    if (!stage.takes(option)) stage.options.push_back(option);
  for (const Direction d : {Direction::forward, Direction::backward}) {
    const std::string key(name(d));
    const auto at = static_cast<std::size_t>(d);
    stage.sources[0][at] = step_of(folder, main.at(key)).source(Side::cpu, d);
    stage.sources[1][at] = step_of(folder, main.at("cuda").at(key)).source(Side::cuda, d);
  }
  return stage;
}

const std::vector<Stage>& main_entries() {
  static const std::vector<Stage> all = [] {
    std::vector<Stage> entries;
    for (const auto& [folder, json] : manifests())
      if (json.contains("steps")) entries.push_back(main_entry(folder, json));
    return entries;
  }();
  return all;
}

}  // namespace

std::string_view Stage::letter() const {
  const std::size_t slash = id.find('/');
  return slash == id.npos ? std::string_view() : std::string_view(id).substr(slash + 1);
}

std::string Stage::short_name() const { return std::string(number()) + std::string(letter().substr(0, 1)); }

bool Stage::takes(std::string_view option) const { return std::ranges::find(options, option) != options.end(); }

const std::vector<Stage>& stages() { return registered(); }

StageList stages_on(Side side) {
  StageList all;
  for (const Stage& s : stages())
    if (s.has(side, Direction::forward)) all.emplace_back(s);
  return all;
}

StageList main_stages() {
  StageList all;
  for (const Stage& s : stages())
    if (s.letter().empty()) all.emplace_back(s);
  for (const Stage& s : main_entries()) all.emplace_back(s);
  std::ranges::sort(all, {}, [](const Stage& s) { return s.id; });
  return all;
}

StageName::StageName(std::string_view name) : stage(name) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const std::size_t slash = name.find('/'), digits = std::ranges::find_if_not(name, is_digit) - name.begin();
  if (slash != name.npos)
    stage = name.substr(0, slash), letter = name.substr(slash + 1);
  else if (digits > 0 && name.size() == digits + 1)
    stage = name.substr(0, digits), letter = name.substr(digits);
}

bool StageName::means_folder(std::string_view folder) const {
  const std::string_view number = folder.substr(0, 2);
  return stage == folder || stage == folder.substr(3) || stage == number ||
         (number[0] == '0' && stage == number.substr(1));
}

bool StageName::means(const Stage& s) const {
  const bool is_whole = letter.data() == nullptr;  // "05/" has a letter that there isn't
  return means_folder(s.folder()) &&
         (is_whole ? s.letter().empty()
                   : !letter.empty() && (letter == s.letter() || letter == s.letter().substr(0, 1)));
}

const Stage& find_stage(std::string_view name) {
  const StageName asked(name);
  for (const Stage& s : stages())
    if (asked.means(s)) return s;
  if (asked.letter.empty())
    for (const Stage& s : main_entries())
      if (asked.means(s)) return s;
  std::vector<std::string_view> known;
  for (const Stage& s : stages()) known.push_back(s.id);
  throw Refused(fmt::format("stage \"{}\" was asked for, but there is no such stage; take one of {}", name,
                            fmt::join(known, ", ")));
}

std::pair<const Stage*, Direction> find_program(std::string_view source) {
  for (const Stage& s : stages())
    for (const Direction d : {Direction::forward, Direction::backward})
      if (s.source(Side::cpu, d) == source || s.source(Side::cuda, d) == source) return {&s, d};
  throw Refused(fmt::format("the program {} was asked for, but no stage has it; mend what names it", source));
}

Registration::Registration(const char* id, const char* stage_json, const Program& forward, const Program& backward) {
  Stage stage{id, {}, {}, {}, forward, backward, {}, {}, {}};
  const Json whole = manifests()[std::string(stage.folder())] = Json::parse(stage_json);
  Json json = whole;
  if (!stage.letter().empty()) json.update(whole.at("steps").at(std::string(stage.letter())));
  stage.title = json.at("title");
  stage.lse = json.at("lse");
  stage.options = json.at("options");
  const Json cuda = json.value("cuda", Json::object());
  for (const Direction d : {Direction::forward, Direction::backward}) {
    const std::string key(name(d));
    const auto at = static_cast<std::size_t>(d);
    if (cuda.contains(key)) stage.sources[1][at] = source_of(stage, d);
    if (json.contains(key)) stage.sources[0][at] = source_of(stage, d);
    if (json.contains(key) || cuda.contains(key))
      (d == Direction::forward ? stage.forward_facts : stage.backward_facts) =
          facts(json.contains(key) ? json.at(key) : cuda.at(key));
  }
  auto& all = registered();
  all.insert(std::ranges::upper_bound(all, stage.id, {}, &Stage::id), std::move(stage));
}

}  // namespace flash

#include "stages/common/registry.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace flash {

namespace {

std::vector<Stage>& registered() {
  static std::vector<Stage> all;
  return all;
}

ProgramFacts facts(const nlohmann::json& json) {
  return {json.value("extends", ""), json.at("sections"), json.at("budget"), json.at("law")};
}

}  // namespace

bool Stage::takes(std::string_view option) const { return std::ranges::find(options, option) != options.end(); }

const std::vector<Stage>& stages() { return registered(); }

const Stage& find_stage(std::string_view name) {
  std::vector<std::string_view> known;
  for (const Stage& s : stages()) {
    const std::string_view number = s.number();
    if (name == s.id || name == s.name() || name == number || (number[0] == '0' && name == number.substr(1))) return s;
    known.push_back(s.id);
  }
  throw Refused(fmt::format("stage \"{}\" was asked for, but there is no such stage; take one of {}", name,
                            fmt::join(known, ", ")));
}

Registration::Registration(const char* id, const char* stage_json, const Program& forward, const Program& backward) {
  const auto json = nlohmann::json::parse(stage_json);
  Stage stage{id, json.at("title"), json.at("lse"), json.at("options"), forward, backward, facts(json.at("forward")),
              {}};
  if (stage.has_backward()) stage.backward_facts = facts(json.at("backward"));
  auto& all = registered();
  all.insert(std::ranges::upper_bound(all, stage.id, {}, &Stage::id), std::move(stage));
}

}  // namespace flash

// A run, shown: as a report for people and as the JSON of docs/schema/run.schema.json.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "app/closed_form_json.hpp"
#include "app/run_options.hpp"
#include "stages/common/check.hpp"

namespace flash::app {

/// A run with everything that is said about it.
struct Reported {
  const Asked& asked;
  const RunResult& result;
  Index visible_pairs = 0;
  Law forward;
  std::optional<Law> backward;
  std::optional<CheckResult> check;
};

nlohmann::ordered_json run_json(const Reported& run);

/// Its "problem": shape, options, where the arrays come from.
nlohmann::ordered_json problem_json(const Asked& asked);

/// One screen or two, with a unit on every number.
std::string run_report(const Reported& run);

/// One line for each output.
std::string check_report(const CheckResult& check);

}  // namespace flash::app

// The closed form beside the ledger: what the theory says a pass moves, and whether the count equals it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "sim/theory/closed_forms.hpp"
#include "stages/common/run.hpp"

namespace flash::app {

/// A pass held against its stage's law.
struct Law {
  std::optional<theory::ClosedForm> form;
  bool equal = false;  ///< every tensor's reads, writes and read-modify-writes are the form's, as integers
  std::string why;     ///< there is no form
};

/// `law`: the name of a closed form, from stage.json.
Law law_of(const Pass& pass, const std::string& law, const Inputs& inputs, const Options& options);

/// Sets "closed_form" in `json`: text, elements, equal; or null, and "why" beside it.
void add_closed_form(nlohmann::ordered_json& json, const Law& law);

/// (query, key) pairs that all masks together leave, over batch and query heads.
Index visible_pairs(const Inputs& inputs, const Options& options);

}  // namespace flash::app

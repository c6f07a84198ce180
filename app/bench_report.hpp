// Benches, shown: as tables for people and as the JSON of docs/schema/bench.schema.json.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "app/bench.hpp"

namespace flash::app {

std::string bench_text(const Benches& benches);

/// One document for each cell.
std::vector<nlohmann::ordered_json> bench_json(const Benches& benches);

}  // namespace flash::app

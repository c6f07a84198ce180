// A run of a stage's kernels on the virtual GPU as the steps of a trace.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "app/run_options.hpp"

namespace flash::app {

/// Runs the kernels and fills in what docs/schema/step.schema.json calls chapters, files, tensors, lanes and steps.
/// @return what the virtual GPU reports, as text; empty where there is nothing.
std::string record_kernels(const Asked& asked, nlohmann::ordered_json& document);

}  // namespace flash::app

// The stepper page: one self-contained HTML file of sim/trace/page's sources and one trace or two.
#pragma once

#include <string>
#include <vector>

#include "sim/trace/source.hpp"

namespace flash::trace {

/// @throws std::runtime_error where a source of the page is missing.
std::string page(const std::vector<Json>& traces);

}  // namespace flash::trace

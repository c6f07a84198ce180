// The stage that a name on the command line means.
#pragma once

#include <string_view>

#include "stages/common/registry.hpp"

namespace flash::app {

/// `3`, `03`, `online_softmax`, `03_online_softmax`; with a letter `05b`, `fa2_partitioning/b_split_q_warps`.
/// Throws Refused for a stage that is not built yet, one that does not exist, and a letter on a stage without letters.
const Stage& stage_named(std::string_view name);

}  // namespace flash::app

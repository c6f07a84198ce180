// Are the numbers right? A stage on each backend that is here, beside the oracle, over a grid of problems.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "app/lesson.hpp"
#include "stages/common/check.hpp"

namespace flash::app {

/// One problem of the grid: one head, Nq = Nk = n, drawn at random.
struct VerifyCell {
  Format dtype = Format::fp16;
  Index d = 0, n = 0;
  bool causal = false;
};

/// What a backend computed, beside the oracle.
struct Compared {
  std::vector<OutputCheck> outputs;  ///< O and LSE, or the gradients; empty: it did not run
  std::string failure;               ///< empty: all is within the tolerances
};

/// One problem and direction on all backends, by their names.
struct VerifyRow {
  VerifyCell cell;
  Direction direction;
  std::map<std::string, Compared> on;
};

/// A backend that is not here, or doesn't take a part of the grid.
struct Missing {
  std::string backend, why;
};

struct Verification {
  const Stage* stage = nullptr;
  std::vector<std::string> backends;  ///< those that ran
  std::vector<VerifyRow> rows;
  std::vector<Missing> missing;

  int comparisons() const;
  int breaches() const;
};

constexpr Index verify_sizes[] = {512, 2048};
constexpr Index largest_on_vgpu = 512;  ///< it executes every instruction

/// `on`: "cpu", "vgpu" or "gpu" alone; empty: all that are here. @throws Refused where the one that is asked for is
/// not.
Verification verify(const Stage& stage, const std::string& on);

}  // namespace flash::app

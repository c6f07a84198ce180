// What the order of the loops gives, and what the shape of the blocks: forward passes under one strict SRAM.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "stages/common/run.hpp"

namespace flash::app {

/// One head of N = Nq = Nk, d = dv, with M elements of SRAM; fp32, so that M holds as many accumulators as inputs.
struct MemoryProblem {
  Index N = 4096, d = 64, M = 8 * 64 * 64;
};

/// A forward pass in blocks of a shape. `shape` gives the blocks with a longer side of B; the largest that fit are
/// taken, or the stage's own where there is none.
struct Contender {
  std::string name, stage;
  Blocks (*shape)(Index B, Index d) = nullptr;
};

/// 01 (ideal: it takes the SRAM that it needs) to 04, then FA2's order in Algorithm 1's blocks and in its own, and both
/// orders with all of M for one side.
const std::vector<Contender>& contenders();

/// Counts a contender under the strict budget.
Pass count_within(const MemoryProblem& problem, const Contender& contender);

/// All of them on one problem.
struct EqualMemory {
  MemoryProblem problem;
  std::vector<Pass> passes;     ///< as contenders()
  double order = 0;             ///< 03 over FA2's order in its own blocks
  double shape = 0;             ///< FA2's order in Algorithm 1's blocks over the same in its own
  double all_of_M[2] = {0, 0};  ///< 03, and FA2's order, each over the same with all of M for the side that stays

  double over_05(std::size_t n) const;  ///< the n-th over FA2's order in its own blocks
};

EqualMemory equal_memory(const MemoryProblem& problem = {});

std::string to_text(const EqualMemory& found);
nlohmann::ordered_json to_json(const EqualMemory& found);

}  // namespace flash::app

// Times stages' kernels on a GPU, one after the other in each round.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/backend.hpp"
#include "stages/common/check.hpp"

namespace flash::app {

struct BenchProblem {
  Index batch = 8, heads = 32, kv_heads = 32, n = 4096, d = 64;
  bool causal = false, backward = false;
  int rounds = 20;
};

/// One stage's kernels of the asked direction.
struct BenchRow {
  cuda::Kernels kernels;
  std::string why_not;  ///< they can't be timed on this problem; empty: they were
  std::optional<Blocks> tiles;
  CheckResult check;                       ///< on a small problem, before it was timed
  int launches = 1;                        ///< of each timing, one after the other
  std::vector<double> seconds, clock_mhz;  ///< of one launch; by round
};

struct Bench {
  BenchProblem problem;
  Gpu gpu;
  std::string driver, date;
  double flops = 0;  ///< 4·d·visible pairs over batch and heads; backward 2.5 times as many
  std::vector<BenchRow> rows;

  bool checks_pass() const;
};

/// Compares each stage with the oracle on a small problem; where all pass, times them on the asked one. @throws Refused
/// where there is no GPU, or none of the stages can run.
Bench bench(const std::vector<const Stage*>& stages, const BenchProblem& problem, Index device);

}  // namespace flash::app

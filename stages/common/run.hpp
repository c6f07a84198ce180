// Runs a stage on given inputs and collects what it computed and what it moved.
#pragma once

#include "stages/common/registry.hpp"

namespace flash {

/// How a stage is run: on which machine, in which directions, watched by whom.
struct RunConfig {
  sim::MachineConfig machine;
  bool backward = false;          ///< the forward pass, then the backward pass
  bool allow_nonfinite = false;   ///< NaN and infinities in the inputs: rows that see them are NaN, all others unchanged
  sim::Observer observer;         ///< gets every event of both passes
};

/// What one pass moved, and with which tiles.
struct Pass {
  sim::Ledger ledger;
  std::optional<Blocks> blocks;   ///< none for a program without tiles
};

/// What a run computed and moved.
struct RunResult {
  Outputs outputs;                ///< empty in count-only mode
  Pass forward;
  std::optional<Pass> backward;
  double seconds = 0;             ///< in the stage's programs
};

/// @throws Refused for an option that the stage does not take, arrays that are not of one problem, blocks that don't fit, a
/// missing backward pass, non-finite inputs, or scores beyond what holds them (65504 in fp16 for a stage that stores S,
/// 3.4e38 for the others); sim::CapacityError under the strict budget.
RunResult run(const Stage& stage, const Inputs& inputs, const Options& options, const RunConfig& config);

}  // namespace flash

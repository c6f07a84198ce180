// What a forward kernel moves, by the card's own counters beside the ledger: bench --traffic.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "app/bench.hpp"

namespace flash::app {

/// Bytes that the counters saw.
struct Counted {
  double sm_fill = 0;  ///< from L2 into the SMs
  double l2_read = 0;  ///< asked of L2, nearly all by the SMs
  double dram_read = 0, dram_written = 0;
};

/// One kernel on one problem.
struct TrafficRow {
  const Stage* stage = nullptr;
  BenchProblem problem;
  std::optional<Blocks> tiles;
  double ledger_read = 0, ledger_written = 0;  ///< [bytes] of the CPU program with the kernel's tiles
  Counted counted;

  double off() const { return counted.sm_fill / ledger_read - 1; }
  bool pass() const;
};

struct Traffic {
  Gpu gpu;
  std::string driver, date;
  std::vector<TrafficRow> rows;

  bool pass() const;
};

/// Runs this program under Nsight Compute for each stage and size. @throws Refused where there is no GPU, no ncu, or it
/// can't read the counters.
Traffic measure_traffic(const std::vector<const Stage*>& stages, const BenchSetting& setting);

/// What it runs: the stage's forward kernels once, with a cleared L2 cache.
void run_under_profiler(const Stage& stage, const BenchProblem& problem, Index device);

std::string traffic_text(const Traffic& traffic);
nlohmann::ordered_json traffic_json(const Traffic& traffic);

}  // namespace flash::app

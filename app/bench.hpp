// Times stages' kernels on a GPU, in turn with each other, with the card's own GEMM or copy, and with other kernels.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/backend.hpp"
#include "stages/common/check.hpp"

namespace flash::app {

/// One cell of a table. Nq is n, or 1 where a token is decoded.
struct BenchProblem {
  Index batch = 8, heads = 32, kv_heads = 32, n = 4096, d = 64;
  Format dtype = Format::bf16;
  bool causal = false, backward = false;
  bool decode = false;         ///< one query to n keys: measured against a copy
  bool deterministic = false;  ///< the backward pass both ways
  Index splits = 1;

  Shape shape() const { return {batch, heads, kv_heads, decode ? 1 : n, n, d, d}; }
  Options options(bool deterministic) const;
  double flops() const;  ///< 4·d for each visible pair; backward 2.5 times as many
  double bytes() const;  ///< Q, K, V read and O, LSE written, each once
};

/// Seconds of one launch and the clock after it, by round.
struct Timings {
  int launches = 1;  ///< of each timing, one after the other
  std::vector<double> seconds, clock_mhz;

  bool empty() const { return seconds.empty(); }
  double median() const;
  double median_clock() const;
};

/// One stage's kernels of the asked direction.
struct BenchRow {
  cuda::Kernels kernels;
  bool deterministic = false;
  std::string why_not;  ///< they can't be timed on this problem; empty: they were
  std::optional<Blocks> tiles;
  CheckResult check;  ///< on a small problem, before it was timed
  Timings times;
  int same_bits = 0;  ///< deterministic: of this many runs on the same inputs, 0 where two differ
};

/// Somebody else's kernels.
struct PeerRow {
  std::string name, title;
  std::string version;
  std::string why_not;
  double error = 0, tolerance = 0;  ///< on a small problem against PyTorch in fp32
  Timings times;
};

/// What the card does at its best: a GEMM, or for decoding a copy.
struct YardstickRow {
  std::string why_not;
  double work = 0;  ///< flops, or bytes read and written
  Timings times;
  double rate() const { return work / times.median(); }
};

struct Bench {
  BenchProblem problem;
  std::string date;
  int rounds = 0;
  std::vector<BenchRow> rows;
  std::vector<PeerRow> peers;
  YardstickRow yardstick;

  bool checks_pass() const;
};

/// Cells measured in one run.
struct Benches {
  Gpu gpu;
  std::string driver;
  std::vector<Bench> cells;

  bool checks_pass() const;
};

struct BenchSetting {
  int rounds = 20;
  Index device = 0;
  bool peers = false;
  std::string dtype;  ///< empty: bf16 where all of the stages' kernels take it, else fp16
};

/// Drawn at random, a million values over and over, for drawing takes its time.
Inputs large_inputs(const BenchProblem& problem);

std::string utc_now();

constexpr int gemm_size = 8192;
constexpr int bit_runs = 100;  ///< of a deterministic backward pass

/// Compares each stage with the oracle on a small problem; where all pass, times them on each cell. @throws Refused
/// where there is no GPU, or none of the stages can run any of the cells.
Benches bench(const std::vector<const Stage*>& stages, std::vector<BenchProblem> cells, const BenchSetting& setting);

}  // namespace flash::app

// The machine: it runs a grid of workers, each with an SRAM of its own, and keeps the ledger.
#pragma once

#include <functional>

#include "sim/memory/worker.hpp"

namespace flash::sim {

/// The machine that is simulated, and how.
struct MachineConfig {
  Index sram_bytes = 64 * 1024;  ///< of each worker
  Budget budget = Budget::paper;
  bool count_only = false;   ///< the same loops without arithmetic, on tensors that take no memory
  bool poison_sram = false;  ///< fresh tiles are NaN, so that reading what nobody wrote shows
  int threads = 0;           ///< 0: one a core. The results don't depend on it.
};

class MachineBase {
 public:
  explicit MachineBase(const MachineConfig& config) : config_(config) {}

  const MachineConfig& config() const { return config_; }
  const Ledger& ledger() const { return ledger_; }

  /// `observer` gets every event, in the workers' order: the run then takes one thread.
  void observe(Observer observer) { observer_ = std::move(observer); }

 protected:
  /// Runs body(worker, state) for all workers on threads and adds their tallies to the ledger; of several exceptions
  /// the first worker's is thrown.
  void launch(Index workers, const std::function<void(Index, WorkerState&)>& body);

 private:
  MachineConfig config_;
  Ledger ledger_;
  Observer observer_;
};

/// The machine that a stage is given.
template <class Real>
class Machine : public MachineBase {
 public:
  explicit Machine(const MachineConfig& config = {}) : MachineBase(config) {}

  /// One launch: body(worker) for each worker of the grid.
  template <class Body>
  void parallel(const Grid& grid, Body body) {
    std::vector<std::vector<PendingSum<Real>>> sums(grid.size());
    launch(grid.size(), [&](Index id, WorkerState& state) {
      Worker<Real> worker(state, sums[id], grid, id);
      body(worker);
    });
    for (const auto& of_worker : sums)
      for (const PendingSum<Real>& sum : of_worker) {
        Real* to = sum.tensor.host().data() + sum.first;
        for (const Real x : sum.values) *to = rounded(*to + x, sum.tensor.info().format), ++to;
      }
  }
};

}  // namespace flash::sim

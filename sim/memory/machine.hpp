// The machine: it runs a grid of workers, each with an SRAM of its own, and keeps the ledger.
#pragma once

#include <functional>
#include <mutex>
#include <optional>

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

/// What workers add to tensors in HBM: a worker's sums are made once all workers before it are done.
template <class Real>
class OrderedSums {
 public:
  explicit OrderedSums(Index workers) : waiting_(workers) {}

  void done(Index worker, std::vector<PendingSum<Real>> sums) {
    const std::lock_guard lock(mutex_);
    waiting_[worker] = std::move(sums);
    for (; next_ < static_cast<Index>(waiting_.size()) && waiting_[next_]; ++next_) {
      for (const PendingSum<Real>& sum : *waiting_[next_]) make(sum);
      waiting_[next_].emplace();  // gives its memory back
    }
  }

 private:
  static void make(const PendingSum<Real>& sum) {
    Real* to = sum.tensor.host().data() + sum.first;
    for (const Real x : sum.values) *to = rounded(*to + x, sum.tensor.info().format), ++to;
  }

  std::mutex mutex_;
  std::vector<std::optional<std::vector<PendingSum<Real>>>> waiting_;
  Index next_ = 0;
};

/// The machine that a stage is given.
template <class Real>
class Machine : public MachineBase {
 public:
  explicit Machine(const MachineConfig& config = {}) : MachineBase(config) {}

  /// One launch: body(worker) for each worker of the grid.
  template <class Body>
  void parallel(const Grid& grid, Body body) {
    OrderedSums<Real> sums(grid.size());
    launch(grid.size(), [&](Index id, WorkerState& state) {
      std::vector<PendingSum<Real>> own;
      Worker<Real> worker(state, own, grid, id);
      body(worker);
      sums.done(id, std::move(own));
    });
  }
};

}  // namespace flash::sim

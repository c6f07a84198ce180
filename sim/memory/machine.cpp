#include "sim/memory/machine.hpp"

#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

namespace flash::sim {

void MachineBase::launch(Index workers, const std::function<void(Index, WorkerState&)>& body) {
  const Index cores = config_.threads > 0 ? config_.threads : std::max(1u, std::thread::hardware_concurrency());
  const Index threads = observer_ ? 1 : std::min(cores, workers);

  std::atomic<Index> next = 0;
  std::mutex mutex;  // protects the ledger and the error
  std::exception_ptr error;
  Index failed = workers;

  const auto run = [&] {
    WorkerState state{Sram(config_.sram_bytes, config_.budget, !config_.count_only), {}, config_.count_only, config_.poison_sram,
                      observer_ ? &observer_ : nullptr};
    for (Index id = next++; id < workers; id = next++) {
      try {
        body(id, state);
      } catch (...) {
        next = workers;
        const std::lock_guard lock(mutex);
        if (id < failed) failed = id, error = std::current_exception();
      }
    }
    state.tally.peak = state.sram.peak;
    const std::lock_guard lock(mutex);
    ledger_.add(state.tally);
  };

  {
    std::vector<std::jthread> others;
    for (Index t = 1; t < threads; ++t) others.emplace_back(run);
    run();
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace flash::sim

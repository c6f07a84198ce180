#include "sim/theory/jobs.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

namespace flash::theory {

void run_all(std::vector<Job> jobs, unsigned threads) {
  std::stable_sort(jobs.begin(), jobs.end(), [](const Job& a, const Job& b) { return a.visits > b.visits; });
  if (threads == 0) threads = std::max(1u, std::thread::hardware_concurrency());
  std::atomic<std::size_t> next = 0;
  std::exception_ptr failure;
  std::mutex failure_lock;
  const auto take_jobs = [&] {
    for (std::size_t i = next++; i < jobs.size(); i = next++) {
      try {
        jobs[i].work();
      } catch (...) {
        const std::scoped_lock lock(failure_lock);
        if (!failure) failure = std::current_exception();
        next = jobs.size();
      }
    }
  };
  {
    std::vector<std::jthread> others;
    for (unsigned t = 1; t < threads; ++t) others.emplace_back(take_jobs);
    take_jobs();
  }  // joined
  if (failure) std::rethrow_exception(failure);
}

}  // namespace flash::theory

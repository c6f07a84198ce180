// Walks are independent of each other: they run on all cores, the longest first.
#pragma once

#include <functional>
#include <vector>

#include "sim/memory/eigen.hpp"

namespace flash::theory {

struct Job {
  Index visits = 0;  ///< tile visits, about: its length
  std::function<void()> work;
};

/// Returns when all jobs are done; 0 threads: as many as the machine has. Rethrows the first failure of a job; jobs
/// not yet begun are then left out.
void run_all(std::vector<Job> jobs, unsigned threads = 0);

}  // namespace flash::theory

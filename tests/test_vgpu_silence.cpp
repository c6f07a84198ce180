// A report on a right kernel is as bad as a miss: every kernel, many schedules, every completion mode, no report.
#include <ctime>

#include "tests/support/kernel_runs.hpp"

using namespace flash;

namespace {

void silent(const KernelProblem& p, std::uint64_t seed, gpu::Completion completion) {
  for (const Stage& stage : stages()) {
    gpu::Config config;
    config.seed = seed;
    config.completion = completion;
    const cuda::Kernels kernels = on_virtual_gpu(stage, config);
    cuda::execute(kernels, p.in, p.options, false);
    INFO(stage.id << ", " << p.name << ", seed " << seed);
    REQUIRE(reports(kernels) == "");
  }
}

void silent_over_seeds(std::uint64_t first, std::uint64_t last) {
  const KernelProblem p = kernel_problem(64, "causal", true, 70, 97);
  for (std::uint64_t seed = first; seed < last; ++seed)
    for (const auto completion : {gpu::Completion::early, gpu::Completion::late, gpu::Completion::random})
      silent(p, seed, completion);
}

}  // namespace

TEST_CASE("kernels are silent: ten seeds in each completion mode") { silent_over_seeds(0, 10); }

TEST_CASE("kernels are silent: two hundred seeds in each completion mode", "[deep]") { silent_over_seeds(10, 200); }

TEST_CASE("kernels are silent: a tenth of all problems, another one each day", "[full]") {
  const auto all = kernel_problems();
  const auto today = static_cast<std::size_t>(std::time(nullptr) / 86400);
  for (std::size_t n = today % 10; n < all.size(); n += 10)
    for (std::uint64_t seed = 0; seed < 3; ++seed) silent(all[n], today + seed, gpu::Completion(seed));
}

// A report on a right kernel is as bad as a miss: every kernel, many schedules, every completion mode, no report.
#include <ctime>

#include "tests/support/kernel_runs.hpp"

using namespace flash;

namespace {

/// What the virtual GPU reports of right kernels.
std::string noise(const KernelProblem& p, std::uint64_t seed, gpu::Completion completion) {
  std::string all;
  for (const Stage* stage : kernel_stages()) {
    gpu::Config config;
    config.seed = seed;
    config.completion = completion;
    const cuda::Kernels kernels = on_virtual_gpu(*stage, config);
    if (!takes(kernels, p)) continue;
    cuda::execute(kernels, p.in, p.options, false);
    if (const std::string said = reports(kernels); !said.empty())
      all += fmt::format("{}, {}, seed {}: {}\n", stage->id, p.name, seed, said);
  }
  return all;
}

/// Each seed in each of the three completion modes.
std::string noise_over_seeds(std::uint64_t first, std::uint64_t last) {
  const KernelProblem p = kernel_problem(64, "causal", true, 70, 97);
  const KernelProblem q = kernel_problem(64, "splits", true, 150, 97), r = kernel_problem(64, "everything", true, 70, 97);
  return in_parallel(3 * (last - first), [&](std::size_t n) {
    const std::uint64_t seed = first + n / 3;
    const auto completion = gpu::Completion(n % 3);
    return noise(p, seed, completion) + noise(q, seed, completion) + noise(r, seed, completion);
  });
}

}  // namespace

TEST_CASE("kernels are silent: five seeds in each completion mode") { CHECK(noise_over_seeds(0, 5) == ""); }

TEST_CASE("kernels are silent: two hundred seeds in each completion mode", "[deep]") {
  CHECK(noise_over_seeds(0, 200) == "");
}

TEST_CASE("kernels are silent: a tenth of all problems, another one each day", "[full]") {
  const auto today = static_cast<std::size_t>(std::time(nullptr) / 86400);
  for (const auto& [all, part] : {std::pair{kernel_problems(), 10}, {main_problems(), 40}})
    CHECK(in_parallel(all.size() / part, [&, &all = all, part = part](std::size_t n) {
            return noise(all[part * n + (today + n) % part], today + n, gpu::Completion(n % 3));
          }) == "");
}

// What counting costs: a stage's source against sim/memory, and the same source against plain matrices, in one run.
// Exit status 1 when the counted one takes more than 1.10 times as long. Rounds of the two alternate and each ratio is
// of neighbours, so that whatever else the machine does meets both.
#include <benchmark/benchmark.h>
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

#include "tests/bench/programs.hpp"
#include "tests/bench/uncounted/programs.hpp"

namespace {

constexpr double kAllowed = 1.10;
bool too_slow = false;

/// Processor time of this thread, which does all the work: what others do in between is not in it.
double now() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

double seconds(const std::function<void()>& run) {
  const double start = now();
  run();
  return now() - start;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

/// Times of two programs, a round of each at a time.
struct Rounds {
  std::vector<double> first, second, ratios;

  void add(const std::function<void()>& a, const std::function<void()>& b) {
    const bool swap = ratios.size() % 2 == 1;  // neither always comes first
    const double before = swap ? seconds(b) : seconds(a), after = swap ? seconds(a) : seconds(b);
    first.push_back(swap ? after : before);
    second.push_back(swap ? before : after);
    ratios.push_back(first.back() / second.back());
  }

  double ratio() const { return median(ratios); }
};

void counted_over_uncounted(benchmark::State& state, flash::Which which, flash::Index Br, flash::Index Bc) {
  flash::Bench counted(which, 2048, 64, Br, Bc);
  uncounted::Bench plain(static_cast<int>(which), 2048, 64, Br, Bc);
  if (!(std::abs(counted.sum() - plain.sum()) <= 1e-6 * plain.sum())) {
    too_slow = true;
    return state.SkipWithError("the two do not compute the same");
  }
  Rounds rounds;
  for (auto _ : state) {
    rounds.add([&] { counted.run(); }, [&] { plain.run(); });
    state.SetIterationTime(rounds.first.back());
  }
  state.counters["ratio"] = rounds.ratio();
  state.counters["uncounted_ms"] = 1e3 * median(rounds.second);
  if (!(rounds.ratio() <= kAllowed)) too_slow = true;
}

void online_over_materialized(benchmark::State& state) {
  flash::Bench online(flash::Which::online_softmax, 4096, 64, 64, 64);  // the paper's tiles at M = 4d²
  flash::Bench materialized(flash::Which::materialized, 4096, 64, 0, 0);
  Rounds rounds;
  for (auto _ : state) {
    rounds.add([&] { online.run(); }, [&] { materialized.run(); });
    state.SetIterationTime(rounds.first.back());
  }
  state.counters["ratio"] = rounds.ratio();
  state.counters["materialized_ms"] = 1e3 * median(rounds.second);
}

}  // namespace

int main(int argc, char** argv) {
  const std::pair<const char*, flash::Which> programs[] = {
      {"03_online_softmax/forward", flash::Which::online_softmax},
      {"04_recomputed_backward/forward", flash::Which::recomputed_forward},
      {"04_recomputed_backward/backward", flash::Which::recomputed_backward},
      {"05_fa2_partitioning/a_loop_swap", flash::Which::loop_swap},
      {"05_fa2_partitioning/a_loop_swap_backward", flash::Which::loop_swap_backward},
      {"05_fa2_partitioning/b_split_q_warps", flash::Which::split_q_warps},
      {"05_fa2_partitioning/e_split_kv, 4 splits", flash::Which::split_kv},
  };
  for (const auto& [name, which] : programs)
    for (const auto& [Br, Bc] : {std::pair<flash::Index, flash::Index>{32, 32}, {64, 64}, {64, 128}})
      benchmark::RegisterBenchmark(
          fmt::format("counted over uncounted: {} {}x{}", name, Br, Bc).c_str(),
          [which = which, Br = Br, Bc = Bc](benchmark::State& state) { counted_over_uncounted(state, which, Br, Bc); })
          ->UseManualTime()
          ->Iterations(15)
          ->Unit(benchmark::kMillisecond);
  benchmark::RegisterBenchmark("03 over 01, N = 4096, d = 64", online_over_materialized)
      ->UseManualTime()
      ->Iterations(7)
      ->Unit(benchmark::kMillisecond);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  if (too_slow) fmt::print("counting takes more than {:.2f} of the uncounted time\n", kAllowed);
  return too_slow;
}

// The kernels of every stage equal the oracle, on the virtual GPU and, where there is one, on a GPU, for every option;
// and with tiles they move what the CPU stage moves.
#include <cstdio>
#include <ctime>

#include "tests/support/kernel_runs.hpp"
#include "tests/support/stage_runs.hpp"

using namespace flash;

namespace {

constexpr gpu::Completion completions[] = {gpu::Completion::early, gpu::Completion::late, gpu::Completion::random};

/// What is wrong with each stage's kernels on the virtual GPU.
std::string wrong_on_the_virtual_gpu(const KernelProblem& p, std::size_t number) {
  Judge judge(p.in, p.options);
  std::string all;
  for (const Stage* each : kernel_stages()) {
    const Stage& stage = *each;
    gpu::Config config;
    config.completion = completions[number % 3];
    config.seed = number;
    const cuda::Kernels kernels = on_virtual_gpu(stage, config);
    if (!takes(kernels, p)) continue;
    const RunResult result = cuda::execute(kernels, p.in, p.options, false);
    const std::string said = reports(kernels).empty() ? wrong(judge, stage, result.outputs) : reports(kernels);
    if (!said.empty()) all += fmt::format("{}, {}: {}\n", stage.id, p.name, said);
  }
  return all;
}

/// Elements of each tensor, read, written and both at once.
std::string traffic(const sim::Ledger& ledger) {
  std::string text;
  for (const auto& [access, name] :
       {std::pair{sim::Access::read, "read"}, {sim::Access::write, "write"}, {sim::Access::rmw, "rmw"}})
    for (const auto& [tensor, n] : ledger.by_tensor(access)) text += fmt::format("{} {} {}\n", name, tensor, n);
  return text;
}

/// What the CPU stage moves with the kernels' tiles.
RunResult counted_on_the_cpu(const Stage& stage, const KernelProblem& p, const Blocks& tiles) {
  Options o = p.options;
  o.br = tiles.Br, o.bc = tiles.Bc;
  o.deterministic = o.deterministic && stage.has_backward();
  RunConfig config;
  config.machine.count_only = true;
  config.machine.threads = 1;
  config.backward = stage.has_backward();
  return run(stage, p.in, o, config);
}

double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

}  // namespace

TEST_CASE("kernels equal the oracle on the virtual GPU: a sample") {
  const auto all = kernel_problems();
  CHECK(in_parallel(13, [&](std::size_t n) { return wrong_on_the_virtual_gpu(all[n * 11], n); }) == "");
  const auto more = main_problems();
  CHECK(in_parallel(
            20, [&](std::size_t n) { return wrong_on_the_virtual_gpu(more[(n * 389 + 17) % more.size()], n); }) == "");
}

TEST_CASE("kernels equal the oracle on the virtual GPU: a twentieth of all problems, another one each day", "[full]") {
  const auto today = static_cast<std::size_t>(std::time(nullptr) / 86400);
  for (const auto& all : {kernel_problems(), main_problems()})
    CHECK(in_parallel(all.size() / 20, [&](std::size_t n) {
            return wrong_on_the_virtual_gpu(all[20 * n + (today + n) % 20], n + today);
          }) == "");
}

TEST_CASE(
    "kernels equal the oracle on the virtual GPU: every option, head size, grouping and raggedness, in each completion "
    "mode",
    "[deep]") {
  for (const auto& all : {kernel_problems(), main_problems()})
    CHECK(in_parallel(3 * all.size(), [&](std::size_t n) { return wrong_on_the_virtual_gpu(all[n / 3], n); }) == "");
}

namespace {

/// Where the virtual GPU counts something else than the CPU stage's ledger.
std::string other_traffic(const KernelProblem& p) {
  std::string all;
  for (const char* name : {"03", "04", "05a", "05e", "05"}) {
    const Stage& stage = find_stage(name);
    const cuda::Kernels kernels = on_virtual_gpu(stage);
    if (!takes(kernels, p)) continue;
    const RunResult kernel = cuda::execute(kernels, p.in, p.options, false);
    const RunResult cpu = counted_on_the_cpu(stage, p, *kernel.forward.blocks);
    if (traffic(kernel.forward.ledger) != traffic(cpu.forward.ledger))
      all += fmt::format("{}, forward, {}:\n{}where the CPU stage has\n{}", stage.id, p.name,
                         traffic(kernel.forward.ledger), traffic(cpu.forward.ledger));
    if (!kernel.backward) continue;
    const RunResult backward = counted_on_the_cpu(stage, p, *kernel.backward->blocks);
    if (traffic(kernel.backward->ledger) != traffic(backward.backward->ledger))
      all += fmt::format("{}, backward, {}:\n{}where the CPU stage has\n{}", stage.id, p.name,
                         traffic(kernel.backward->ledger), traffic(backward.backward->ledger));
  }
  return all;
}

}  // namespace

TEST_CASE("the virtual GPU counts what the CPU stage's ledger counts, tensor by tensor: a sample") {
  for (const auto& all : {kernel_problems(), main_problems()})
    CHECK(in_parallel(10, [&](std::size_t n) { return other_traffic(all[(n * 389 + 29) % all.size()]); }) == "");
}

TEST_CASE(
    "the virtual GPU counts what the CPU stage's ledger counts, tensor by tensor: a twentieth of all, another one each "
    "day",
    "[full]") {
  const auto today = static_cast<std::size_t>(std::time(nullptr) / 86400);
  for (const auto& all : {kernel_problems(), main_problems()})
    CHECK(in_parallel(all.size() / 20, [&](std::size_t n) { return other_traffic(all[20 * n + (today + n) % 20]); }) ==
          "");
}

TEST_CASE("the virtual GPU counts what the CPU stage's ledger counts, tensor by tensor: all problems", "[deep]") {
  for (const auto& all : {kernel_problems(), main_problems()})
    CHECK(in_parallel(all.size(), [&](std::size_t n) { return other_traffic(all[n]); }) == "");
}

TEST_CASE("the first two stages move what they move on the CPU where a tile is a tile: S and P once each") {
  const KernelProblem p = kernel_problem(64, "none", false, 65, 130);
  const Stage& stage = find_stage("02");
  const RunResult kernel = cuda::execute(on_virtual_gpu(stage), p.in, p.options, false);
  const auto written = kernel.forward.ledger.by_tensor(sim::Access::write);
  CHECK(written.at("S") == 2 * 65 * 130);
  CHECK(written.at("P") == 2 * 65 * 130);
}

namespace {

constexpr double slower = FLASH_SANITIZED ? 4 : 1;  ///< a sanitizer's checks take time, too

/// Of a processor, for stage 03's kernel on one head, d = 64, with all checks: the least of two, since whatever else
/// runs here only adds to it.
double seconds_of_a_head(Index N, bool causal) {
  Inputs in = draw_inputs({1, 1, 1, N, N, 64, 64}, Format::fp16, 0);
  Options o;
  o.causal = causal;
  const cuda::Kernels kernels = on_virtual_gpu(find_stage("03"));
  const cuda::OnDevice memory(*kernels.device, in, o, cuda::tensors_of({kernels.forward}, false));
  double took = INFINITY;
  for (int times = 0; times < 2; ++times) {
    const double start = processor_seconds();
    kernels.device->run(*kernels.forward, memory.problem(), 1);
    took = std::min(took, processor_seconds() - start);
  }
  REQUIRE(reports(kernels) == "");
  std::printf("03 on the virtual GPU, one head, all checks: N = %d%s %.2f s\n", static_cast<int>(N),
              causal ? " causal" : "", took);
  return took;
}

}  // namespace

TEST_CASE("one head of N = 512 with all checks takes half a second of a processor") {
  CHECK(seconds_of_a_head(512, false) <= 0.5 * slower);
}

TEST_CASE("one causal head of N = 4096 with all checks takes ten seconds of a processor", "[deep]") {
  CHECK(seconds_of_a_head(4096, true) <= 10 * slower);
}

TEST_CASE("many seeds of the schedule give the same bits") {
  KernelProblem p = kernel_problem(64, "causal", false, 129, 129);
  for (const Stage* stage : kernel_stages()) {
    p.options.deterministic = true;
    if (!takes(on_virtual_gpu(*stage), p)) p.options.deterministic = false;
    const bool in_any_order = stage->number() == "05" && !p.options.deterministic;
    std::optional<Outputs> first;
    for (const std::uint64_t seed : {0, 1, 2, 3, 4}) {
      gpu::Config config;
      config.seed = seed;
      RunResult result = cuda::execute(on_virtual_gpu(*stage, config), p.in, p.options, false);
      if (in_any_order) result.outputs.dq.clear();  // its sums
      if (!first) first = result.outputs;
      INFO(stage->id << ", seed " << seed);
      CHECK(same_bits(*first, result.outputs));
    }
  }
}

TEST_CASE("a machine of one SM gives the same as one of many") {
  const KernelProblem p = kernel_problem(64, "none", true, 65, 65);
  for (const Stage* stage : kernel_stages())
    for (const int sms : {1, 132}) {
      gpu::Config config;
      config.sms = sms;
      const cuda::Kernels kernels = on_virtual_gpu(*stage, config);
      Judge judge(p.in, p.options);
      CHECK(wrong(judge, *stage, cuda::execute(kernels, p.in, p.options, false).outputs) == "");
      CHECK(reports(kernels) == "");
    }
}

namespace {

/// The largest difference of a GPU and the virtual one over some problems, and what is wrong on the GPU.
struct OnBoth {
  double largest = 0;
  std::string where, wrong;
};

/// All on the GPU, every `part`-th on the virtual one, too.
OnBoth on_both(const std::vector<KernelProblem>& all, std::size_t part) {
  OnBoth result;
  std::mutex lock;
  result.wrong = in_parallel(all.size(), [&](std::size_t n) {
    const KernelProblem& p = all[n];
    Judge judge(p.in, p.options);
    std::string said;
    for (const Stage* stage : kernel_stages()) {
      const cuda::Kernels on_card = on_gpu(*stage), on_cpu = on_virtual_gpu(*stage);
      if (!takes(on_card, p)) continue;
      const Outputs card = cuda::execute(on_card, p.in, p.options, false).outputs;
      if (const std::string bad = wrong(judge, *stage, card); !bad.empty())
        said += fmt::format("{}, {}: {}\n", stage->id, p.name, bad);
      if (n % part > 0) continue;
      const double difference = largest_difference(card, cuda::execute(on_cpu, p.in, p.options, false).outputs);
      const std::lock_guard guard(lock);
      if (!(difference <= result.largest)) result.largest = difference, result.where = stage->id + ", " + p.name;
    }
    return said;
  });
  std::printf("largest |GPU - virtual GPU| / max(1, |x|) in %zu problems: %.3g (%s)\n", (all.size() + part - 1) / part,
              result.largest, result.where.c_str());
  return result;
}

}  // namespace

TEST_CASE("kernels equal the oracle on a GPU, and the virtual GPU") {
  if (!has_gpu()) return;
  const OnBoth all = on_both(kernel_problems(), 5), more = on_both(main_problems(), 71);
  CHECK(all.wrong == "");
  CHECK(all.largest <= 0x1p-8);  // a few units of fp16 in the last place
  CHECK(more.wrong == "");
  CHECK(more.largest <= 0x1p-5);  // of bf16
}

TEST_CASE("kernels equal the oracle on a GPU at larger sizes") {
  if (!has_gpu()) return;
  std::vector<KernelProblem> all;
  for (const auto& [d, option, gqa, Nq, Nk] : {std::tuple{64, "none", false, 1024, 1024},
                                               {64, "causal", true, 1000, 1511},
                                               {128, "causal", false, 777, 777},
                                               {128, "softcap", true, 512, 1023},
                                               {128, "alibi", false, 1025, 640},
                                               {64, "window", true, 1300, 1300},
                                               {256, "causal", true, 1111, 2000},
                                               {96, "dropout", false, 900, 900},
                                               {128, "splits", true, 100, 4000},
                                               {64, "deterministic", true, 2000, 2000},
                                               {192, "everything", false, 1000, 1100}})
    for (const Format dtype : {Format::fp16, Format::bf16})
      all.push_back(kernel_problem(d, option, gqa, Nq, Nk, 0, dtype));
  for (const KernelProblem& p : all) {
    Judge judge(p.in, p.options);
    for (const Stage* stage : kernel_stages()) {
      if (!takes(on_gpu(*stage), p)) continue;
      INFO(stage->id << ", " << p.name);
      CHECK(wrong(judge, *stage, cuda::execute(on_gpu(*stage), p.in, p.options, false).outputs) == "");
    }
  }
}

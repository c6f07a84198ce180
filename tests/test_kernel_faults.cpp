// Faults that attention kernels have had, each as its smallest case (F13 … F37): on the virtual GPU, and on a GPU where
// there is one.
#include "cuda/common/module.hpp"
#include "tests/support/kernel_runs.hpp"
#include "tests/support/stage_runs.hpp"

using namespace flash;

namespace {

/// Runs on the virtual GPU and, where `gpu`, on a GPU, and gives each result to `look`.
void on_each_backend(const Inputs& in, const Options& o, bool gpu,
                     const std::function<void(const Stage&, const RunResult&)>& look) {
  for (const Stage& stage : stages_on(Side::cuda)) {
    const bool backward = stage.has(Side::cuda, Direction::backward) && !in.dout.empty();
    cuda::Kernels kernels = on_virtual_gpu(stage);
    if (!backward) kernels.backward = nullptr;
    INFO(stage.id << " on the virtual GPU");
    const RunResult result = cuda::execute(kernels, in, o, false);
    REQUIRE(reports(kernels) == "");
    look(stage, result);
  }
  if (!gpu || !has_gpu()) return;
  for (const Stage& stage : stages_on(Side::cuda)) {
    cuda::Kernels kernels = on_gpu(stage);
    if (!stage.has(Side::cuda, Direction::backward) || in.dout.empty()) kernels.backward = nullptr;
    INFO(stage.id << " on a GPU");
    look(stage, cuda::execute(kernels, in, o, false));
  }
}

Outputs forward_on_gpu(const Stage& stage, const Inputs& in, const Options& o) {
  cuda::Kernels kernels = on_gpu(stage);
  kernels.backward = nullptr;
  return cuda::execute(kernels, in, o, false).outputs;
}

/// One head of a problem.
Inputs head(const Inputs& in, Index index) {
  Inputs one = in;
  one.shape.batch = one.shape.heads = one.shape.kv_heads = 1;
  const auto part = [&](std::vector<double>& to, const std::vector<double>& from, Index rows) {
    const Index size = rows * in.shape.d;
    to.assign(from.begin() + index * size, from.begin() + (index + 1) * size);
  };
  part(one.q, in.q, in.shape.Nq), part(one.k, in.k, in.shape.Nk), part(one.v, in.v, in.shape.Nk);
  one.dout.clear();
  return one;
}

/// What the launcher of a kernel says to a problem with a tensor at this address.
std::string said(const cuda::Module& module, cuda::Problem problem) {
  try {
    module.launch(problem, nullptr);
  } catch (const std::exception& sentence) {
    return sentence.what();
  }
  return "it was launched";
}

}  // namespace

TEST_CASE("F08: huge scores, of which one outweighs all others") {
  Inputs in = draw_inputs({1, 2, 2, 40, 70, 64, 64}, Format::fp16, 0);
  draw_dout(in, 0);
  for (auto* values : {&in.q, &in.k})
    for (double& x : *values) x = static_cast<double>(Eigen::half(static_cast<float>(300 * x)));
  RunConfig config;
  config.backward = true;
  const Outputs expected = run(find_stage("04"), in, {}, config).outputs;
  for (const char* name : {"04", "05a", "05d", "05"}) {
    INFO(name);
    CHECK(largest_difference(cuda::execute(on_virtual_gpu(find_stage(name)), in, {}, false).outputs, expected) <=
          0x1p-7);
    if (has_gpu())
      CHECK(largest_difference(cuda::execute(on_gpu(find_stage(name)), in, {}, false).outputs, expected) <= 0x1p-7);
  }
}

TEST_CASE("F13: offsets beyond 31 bits") {
  if (!has_gpu()) return;
  const auto device = app::open_gpu(0).device;
  SECTION("S and P of 01 and 02") {
    const Inputs in = draw_inputs({1, 36, 36, 8192, 8192, 64, 64}, Format::fp16, 0);  // 36·8192² > 2³¹
    for (const char* name : {"01_materialized/forward", "02_tiling/forward"}) {
      const cuda::Module& module = *cuda::find_module(cuda::Backend::gpu, name);
      const auto O = [&](const Inputs& problem) {
        const cuda::OnDevice memory(*device, problem, {}, cuda::tensors_of({&module}, false));
        device->run(module, memory.problem(), 1);
        return memory.read<Eigen::half>("O");
      };
      const auto all = O(in), last = O(head(in, 35));
      INFO(name);
      CHECK(std::equal(last.begin(), last.end(), all.end() - static_cast<std::ptrdiff_t>(last.size())));
    }
  }
  SECTION("Q and O of 03 and 04") {
    const std::size_t rows = 4096, heads = (std::size_t(1) << 31) / (rows * 64) + 2, size = heads * rows * 64;
    const std::vector<Eigen::half> ones(64, Eigen::half(1));
    const std::unique_ptr<Eigen::half[], void (*)(void*)> zeros(
        static_cast<Eigen::half*>(std::calloc(size, sizeof(Eigen::half))), std::free);
    for (const char* name : {"03_online_softmax/forward", "04_recomputed_backward/forward"}) {
      cuda::Problem p{};
      p.batch = 1, p.heads = heads, p.kv_heads = 1, p.Nq = rows, p.Nk = 1, p.d = 64, p.scale = 0.125f;
      p.sees = rules::visibility(rows, 1, false, -1, -1);
      p.Q = static_cast<half*>(device->allocate("Q", size * sizeof(half), zeros.get()));
      p.K = p.V = static_cast<half*>(device->allocate("K", 64 * sizeof(half), ones.data()));
      p.O = static_cast<half*>(device->allocate("O", size * sizeof(half), nullptr));
      p.O_acc = static_cast<float*>(device->allocate("O_acc", size * sizeof(float), nullptr));
      for (float** statistic : {&p.l, &p.m, &p.LSE})
        *statistic = static_cast<float*>(device->allocate("l", heads * rows * sizeof(float), nullptr));
      device->run(*cuda::find_module(cuda::Backend::gpu, name), p, 1);
      std::vector<Eigen::half> end(2 * rows * 64);
      device->copy_out(end.data(), p.O + size - end.size(), end.size() * sizeof(half));
      device->free_all();
      INFO(name);
      CHECK(std::all_of(end.begin(), end.end(), [](Eigen::half o) { return o == Eigen::half(1); }));
    }
  }
}

TEST_CASE("F14: more batches than a grid has in y and z") {
  SECTION("batches lie in x: all of them are computed") {
    if (!has_gpu()) return;
    const Index batches = 65536;
    Inputs in = draw_inputs({batches, 1, 1, 1, 1, 64, 64}, Format::fp16, 0);
    for (const Stage& stage : stages_on(Side::cuda)) CHECK(forward_on_gpu(stage, in, {}).o == in.v);
  }
  SECTION("rows of tiles lie in y: too many are refused before anything is launched") {
    const Stage& stage = find_stage("01");
    Inputs in = draw_inputs({1, 1, 1, Index(16) * 65536, 1, 64, 64}, Format::fp16, 0);
    cuda::Kernels kernels = on_virtual_gpu(stage);
    kernels.backward = nullptr;
    CHECK_THROWS_WITH(cuda::execute(kernels, in, {}, false), Catch::Contains("grid of") && Catch::Contains("65535"));
  }
}

TEST_CASE("F17: more shared memory than the card has") {
  gpu::Machine machine;
  const ptx::Limits turing = [&] {
    ptx::Limits limits;
    machine.run([&] {
      const gpu::DeviceLimits found = gpu::device_limits();
      limits = {found.device, found.smem_per_cta};
    });
    return limits;
  }();
  CHECK(turing.smem_per_cta == 65536);
  CHECK_NOTHROW(ptx::require_launch(turing, "k", dim3(1), dim3(128), 65536));
  CHECK_THROWS_WITH(ptx::require_launch(turing, "k", dim3(1), dim3(128), 300 * 1024),
                    Catch::Contains("307200 bytes of shared memory") && Catch::Contains("65536"));
  CHECK_THROWS_WITH(ptx::require_launch(turing, "k", dim3(1), dim3(2048), 0), Catch::Contains("2048 threads"));
}

TEST_CASE("F21: a tensor at an address that 16-byte accesses can't take is refused") {
  alignas(16) static half memory[64 * 8 + 8];
  for (const Stage& stage : stages_on(Side::cuda)) {
    const cuda::Module& module = *cuda::find_module(cuda::Backend::vgpu, stage.source(Side::cuda, Direction::forward));
    cuda::Problem p{};
    p.batch = p.heads = p.kv_heads = p.Nq = p.Nk = 1;
    p.d = 64;
    p.Q = p.K = p.V = memory;
    p.Q = memory + 1;
    INFO(stage.id);
    CHECK_THAT(said(module, p), Catch::Contains("Q ") && Catch::Contains("16 bytes"));
  }
}

TEST_CASE("F22: each KV head serves neighbouring query heads") {
  for (const auto& [heads, kv_heads] : {std::pair<Index, Index>{6, 2}, {8, 2}, {4, 1}}) {
    Inputs in = equal_scores(
        {2, heads, kv_heads, 3, 5, 64, 64}, [](Index, Index) { return 0; }, Format::fp16);
    for (std::size_t n = 0; n < in.v.size(); ++n)
      in.v[n] = static_cast<double>(n / (5 * 64) % static_cast<std::size_t>(kv_heads) + 1);
    on_each_backend(in, {}, true, [&](const Stage&, const RunResult& result) {
      for (Index h = 0; h < heads; ++h) CHECK(result.outputs.o[h * 3 * 64] == h * kv_heads / heads + 1);
    });
  }
}

TEST_CASE("F23: dK and dV are summed over the group") {
  Inputs in = equal_scores(
      {1, 4, 1, 1, 1, 64, 64}, [](Index, Index) { return 1; }, Format::fp16);
  for (Index n = 0; n < 4 * 64; ++n) in.dout.push_back(static_cast<double>(n / 64 + 1));
  on_each_backend(in, {}, true, [&](const Stage&, const RunResult& result) {
    if (!result.backward) return;
    CHECK(result.outputs.dv == std::vector<double>(64, 10));
    CHECK(result.outputs.dk == std::vector<double>(64, 0));
    CHECK(result.outputs.dq == std::vector<double>(4 * 64, 0));
  });
}

TEST_CASE("F01, F03: rows that see no key, keys that no query sees") {
  Inputs in = equal_scores(
      {1, 1, 1, 5, 2, 64, 64}, [](Index j, Index) { return j == 0 ? 1 : 3; }, Format::fp16);
  in.dout.assign(5 * 64, 1);
  Options causal;
  causal.causal = true;
  on_each_backend(in, causal, true, [&](const Stage&, const RunResult& result) {
    const double expected[] = {0, 0, 0, 1, 2};
    for (Index i = 0; i < 5; ++i) CHECK(result.outputs.o[i * 64] == expected[i]);
    for (Index i = 0; i < 3; ++i) CHECK(result.outputs.lse[i] == -kInf);
    CHECK(std::abs(result.outputs.lse[4] - std::log(2)) < 1e-6);
    if (result.backward) CHECK(all_finite(result.outputs.dq));
  });
  Inputs unseen = equal_scores(
      {1, 1, 1, 2, 70, 64, 64}, [](Index j, Index) { return j % 3; }, Format::fp16);
  unseen.dout.assign(2 * 64, 1);
  Options window;
  window.window = {1, 0};
  on_each_backend(unseen, window, true, [&](const Stage&, const RunResult& result) {
    if (result.backward)
      CHECK(
          std::all_of(result.outputs.dv.begin(), result.outputs.dv.begin() + 60 * 64, [](double x) { return x == 0; }));
  });
}

TEST_CASE("F30: the same bits every time") {
  if (!has_gpu()) return;
  const Inputs in = draw_inputs({1, 4, 4, 2048, 128, 128, 128}, Format::fp16, 0);
  for (const Stage& stage : stages_on(Side::cuda)) {
    const Outputs first = forward_on_gpu(stage, in, {});
    for (int run = 0; run < 100; ++run) REQUIRE(same_bits(forward_on_gpu(stage, in, {}), first));
  }
}

TEST_CASE("F31: unequal trip counts") {
  const KernelProblem p = kernel_problem(64, "causal", false, 129, 463);
  Judge judge(p.in, p.options);
  on_each_backend(p.in, p.options, true, [&](const Stage& stage, const RunResult& result) {
    CHECK(wrong(judge, stage, result.outputs) == "");
  });
}

TEST_CASE("F32: columns and rows stay in their places") {
  for (const Index d : {64, 128}) {
    const Index N = 150;
    on_each_backend(equal_scores(
                        {1, 1, 1, 70, N, d, d}, [](Index, Index c) { return c; }, Format::fp16),
                    {}, true, [&](const Stage&, const RunResult& result) {
                      for (Index n = 0; n < 70 * d; ++n)
                        REQUIRE(std::abs(result.outputs.o[n] - n % d) <= 0.01 * (n % d));
                    });
    on_each_backend(equal_scores(
                        {1, 1, 1, 70, N, d, d}, [](Index j, Index) { return j; }, Format::fp16),
                    {}, true, [&](const Stage&, const RunResult& result) {
                      for (const double o : result.outputs.o) REQUIRE(std::abs(o - (N - 1) / 2.) <= 0.2);
                    });
  }
}

TEST_CASE("F33: gradients are the same bits every time") {
  if (!has_gpu()) return;
  Inputs in = draw_inputs({4, 8, 8, 2048, 2048, 64, 64}, Format::fp16, 0);
  draw_dout(in, 0);
  for (const auto& [name, deterministic] : {std::pair{"04", false}, {"05", true}, {"05", false}}) {
    const cuda::Kernels kernels = on_gpu(find_stage(name));
    const auto gradients = [&, deterministic = deterministic,
                            in_any_order = kernels.stage->number() == "05" && !deterministic] {
      Options options;
      options.deterministic = deterministic;
      Outputs outputs = cuda::execute(kernels, in, options, false).outputs;
      if (in_any_order) outputs.dq.clear();  // the sum of several CTAs
      return outputs;
    };
    const Outputs first = gradients();
    for (int run = 0; run < 30; ++run) REQUIRE(same_bits(gradients(), first));
  }
}

TEST_CASE("F37: a second GPU gives the same bits") {
  if (!has_gpu()) return;
  if (app::find_gpus().count < 2) {
    WARN("SKIPPED: there is one GPU");
    SUCCEED("nothing to run");
    return;
  }
  const KernelProblem p = kernel_problem(128, "causal", false, 193, 130);
  for (const Stage& stage : stages_on(Side::cuda)) {
    cuda::Kernels second = on_gpu(stage);
    second.device = app::open_gpu(1).device;
    CHECK(same_bits(cuda::execute(second, p.in, p.options, false).outputs,
                    cuda::execute(on_gpu(stage), p.in, p.options, false).outputs));
  }
}

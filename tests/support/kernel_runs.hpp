// Problems for the kernels, and running them on the backends that there are.
#pragma once

#include <array>
#include <atomic>
#include <mutex>
#include <thread>

#include "app/backend.hpp"
#include "cuda/common/on_device.hpp"
#include "cuda/common/tensors.hpp"
#include "stages/common/draw.hpp"
#include "tests/catch.hpp"
#include "tests/support/judge.hpp"

namespace flash {

/// One problem that every kernel takes.
struct KernelProblem {
  std::string name;
  Inputs in;
  Options options;
};

constexpr std::array kernel_options = {"none", "causal", "window", "softcap", "alibi"};

inline KernelProblem kernel_problem(Index d, const std::string& option, bool gqa, Index Nq, Index Nk,
                                    std::uint64_t seed = 0, Format dtype = Format::fp16) {
  const Shape shape{1, gqa ? Index(4) : Index(2), gqa ? Index(1) : Index(2), Nq, Nk, d, d};
  KernelProblem p{
      fmt::format("{}, d = {}, {}, {}, Nq = {}, Nk = {}", name(dtype), d, option, gqa ? "GQA 4:1" : "MHA", Nq, Nk),
      draw_inputs(shape, dtype, seed),
      {}};
  draw_dout(p.in, seed);
  if (option == "causal") p.options.causal = true;
  if (option == "window") p.options.window = {20, 7};
  if (option == "softcap") p.options.softcap = 2;
  if (option == "negative scale") p.options.scale = -0.2;
  if (option == "splits") p.options.splits = 3;
  if (option == "deterministic") p.options.deterministic = true;
  if (option == "dropout" || option == "everything") p.options.dropout = 0.3, p.options.dropout_seed = 7;
  if (option == "everything") p.options.causal = true, p.options.softcap = 4, p.options.deterministic = true;
  if (option == "alibi" || option == "everything")
    for (Index h = 0; h < shape.heads; ++h) p.in.slopes.push_back(0.25f / static_cast<float>(h + 1));
  return p;
}

/// {d 64, 128} × {none, causal, window, softcap, ALiBi} × {MHA, GQA 4:1} × N × Nk = Nq or not: 200 of them, in an order
/// that puts unlike ones side by side.
inline std::vector<KernelProblem> kernel_problems() {
  std::vector<KernelProblem> all;
  const std::pair<Index, Index> sizes[] = {{1, 1},   {17, 17}, {64, 64}, {65, 65}, {193, 193},
                                           {1, 193}, {17, 65}, {64, 17}, {65, 64}, {193, 130}};
  for (const auto& [Nq, Nk] : sizes)
    for (const char* option : kernel_options)
      for (const Index d : {64, 128})
        for (const bool gqa : {false, true}) all.push_back(kernel_problem(d, option, gqa, Nq, Nk));
  return all;
}

/// What main letters take beyond it: both dtypes, every head size, dropout, splits, sums in turns.
inline std::vector<KernelProblem> main_problems() {
  constexpr std::array options = {"none",    "causal",         "window", "softcap",       "alibi",
                                  "dropout", "negative scale", "splits", "deterministic", "everything"};
  const std::pair<Index, Index> sizes[] = {{1, 1}, {17, 193}, {65, 65}, {130, 300}, {193, 130}, {300, 64}};
  std::vector<KernelProblem> all;
  for (const auto& [Nq, Nk] : sizes)
    for (const Format dtype : {Format::bf16, Format::fp16})
      for (const char* option : options)
        for (const bool gqa : {false, true})
          for (const Index d : {32, 64, 96, 128, 192, 256})
            all.push_back(kernel_problem(d, option, gqa, Nq, Nk, 0, dtype));
  return all;
}

/// All stages that have kernels: each letter, and the main letters together.
inline std::vector<const Stage*> kernel_stages() {
  std::vector<const Stage*> all;
  for (const Stage& stage : stages_on(Side::cuda)) all.push_back(&stage);
  for (const Stage& stage : main_stages())
    if (std::ranges::none_of(all, [&](const Stage* s) { return s->id == stage.id; })) all.push_back(&stage);
  return all;
}

/// Is the problem one that these kernels take?
inline bool takes(const cuda::Kernels& kernels, const KernelProblem& p) {
  try {
    cuda::require_taken(kernels, p.in, p.options);
    return true;
  } catch (const Refused&) {
    return false;
  }
}

/// Kernels of a stage on the virtual GPU.
inline cuda::Kernels on_virtual_gpu(const Stage& stage, gpu::Config config = {}) {
  cuda::Kernels kernels = cuda::find_kernels(stage, cuda::Backend::vgpu, stage.has(Side::cuda, Direction::backward));
  app::open_virtual_gpu(kernels, config);
  return kernels;
}

/// Is there a GPU, and has this build kernels for it? Says so where not.
inline bool has_gpu() {
  static const std::string missing = [] {
    try {
      app::find_gpus();
      return std::string();
    } catch (const std::exception& why) {
      return std::string(why.what());
    }
  }();
  if (!missing.empty()) {
    WARN("SKIPPED: " << missing);
    SUCCEED("nothing to run");
  }
  return missing.empty();
}

/// Kernels of a stage on the first GPU; each thread has a stream of its own there.
inline cuda::Kernels on_gpu(const Stage& stage) {
  cuda::Kernels kernels = cuda::find_kernels(stage, cuda::Backend::gpu, stage.has(Side::cuda, Direction::backward));
  static thread_local const std::shared_ptr<cuda::Device> device = app::open_gpu(0).device;
  kernels.device = device;
  return kernels;
}

/// Empty when the outputs are right.
inline std::string wrong(Judge& judge, const Stage& stage, const Outputs& out) {
  const CheckResult checked = judge(stage, out);
  return checked.pass() ? "" : checked.message();
}

/// What `look(n)` says for n = 0 … count−1, all processors at work; what is not empty, a line each. (Catch2 can't be
/// asked by several threads.)
inline std::string in_parallel(std::size_t count, const std::function<std::string(std::size_t)>& look) {
  std::atomic<std::size_t> next = 0;
  std::mutex lock;
  std::string all;
  const auto work = [&] {
    for (std::size_t n = next++; n < count; n = next++) {
      std::string said;
      try {
        said = look(n);
      } catch (const std::exception& thrown) {
        said = thrown.what();
      }
      const std::lock_guard guard(lock);
      if (!said.empty()) all += said + "\n";
    }
  };
  std::vector<std::jthread> threads(std::max(1u, std::thread::hardware_concurrency()));
  for (std::jthread& thread : threads) thread = std::jthread(work);
  threads.clear();
  return all;
}

/// All that the virtual GPU reported in its last runs.
inline std::string reports(const cuda::Kernels& kernels) {
  std::string all;
  for (const cuda::Watched& run : kernels.virtual_device->watched())
    for (const gpu::Report& report : run.reports) all += fmt::format("[{}] {}\n", report.kind, report.text);
  return all;
}

/// Largest difference of any two elements of O and the gradients, in parts of the larger one's size or 1.
inline double largest_difference(const Outputs& a, const Outputs& b) {
  double largest = 0;
  const auto look = [&](const std::vector<double>& x, const std::vector<double>& y) {
    if (x.size() != y.size()) throw std::logic_error("outputs of different sizes");
    for (std::size_t n = 0; n < x.size(); ++n) {
      const double difference = std::abs(x[n] - y[n]) / std::max(1.0, std::abs(x[n]));
      if (!(difference <= largest)) largest = difference;
    }
  };
  look(a.o, b.o), look(a.dq, b.dq), look(a.dk, b.dk), look(a.dv, b.dv);
  return largest;
}

}  // namespace flash

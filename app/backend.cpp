#include "app/backend.hpp"

#include <fmt/format.h>

#include <cctype>
#include <fstream>
#include <limits>

#include "app/memory.hpp"
#include "app/run_options.hpp"
#include "stages/common/around_run.hpp"

namespace flash::app {
namespace {

using cuda::Backend;
using gpu::Completion;

constexpr Completion completions[] = {Completion::early, Completion::late, Completion::random};

Completion parse_completion(std::string_view text) {
  for (const Completion completion : completions)
    if (text == name(completion)) return completion;
  throw Refused(
      fmt::format("--completion {} was asked for, but there is no such time; take early, late or random", text));
}

}  // namespace

void require_own_options(const RunOptions& t, std::optional<Backend> backend) {
  const std::optional<Backend> cpu;
  const char* kernel_tiles = "kernels have tiles of their own";
  struct Option {
    const char* name;
    bool given;
    std::optional<Backend> owner;
    const char* why;
  };
  const Option options[] = {
      {"--br", t.br.has_value(), cpu, kernel_tiles},
      {"--bc", t.bc.has_value(), cpu, kernel_tiles},
      {"--sram", !t.sram.empty(), cpu, kernel_tiles},
      {"--budget", !t.budget.empty(), cpu, kernel_tiles},
      {"--block-mask", !t.block_mask.empty(), cpu, kernel_tiles},
      {"--count-only", t.count_only, cpu, "kernels compute what they count"},
      {"--completion", !t.completion.empty(), Backend::vgpu, "it is the virtual GPU's"},
      {"--vgpu-seed", t.vgpu_seed.has_value(), Backend::vgpu, "it is the virtual GPU's"},
      {"--device", t.device.has_value(), Backend::gpu, "only GPUs are numbered"},
  };
  for (const Option& o : options)
    if (o.given && o.owner != backend)
      throw Refused(fmt::format("{} was asked with --on {}, but {}; leave it out or take --on {}", o.name, t.on, o.why,
                                o.owner ? name(*o.owner) : "cpu"));
  if (t.device && *t.device < 0)
    throw Refused(fmt::format("--device {} was asked for, but GPUs are counted from 0; take 0 or more", *t.device));
}

std::string_view name(Completion completion) {
  switch (completion) {
    case Completion::early: return "early";
    case Completion::late: return "late";
    case Completion::random: return "random";
  }
  return "";
}

std::optional<Backend> parse_backend(std::string_view on) {
  if (on == "cpu") return std::nullopt;
  for (const Backend backend : {Backend::vgpu, Backend::gpu})
    if (on == name(backend)) return backend;
  throw Refused(fmt::format("a run on \"{}\" was asked for, but there is no such backend; take cpu, vgpu or gpu", on));
}

void open_virtual_gpu(cuda::Kernels& kernels, gpu::Config config) {
  config.arch = cuda::arch(kernels);
  const double available = available_bytes();
  const std::size_t bytes =
      available > 0 ? static_cast<std::size_t>(available) : std::numeric_limits<std::size_t>::max();
  const auto device = std::make_shared<cuda::VirtualDevice>(config, bytes);
  kernels.device = device;
  kernels.virtual_device = device.get();
}

Gpus find_gpus() {
  Gpus gpus{cuda::find_cuda(), 0};
  if (!gpus.cuda)
    throw Refused(
        "a GPU was asked for, but this build has no GPU kernels; build with the cuda preset on a machine with the "
        "CUDA toolkit, or run --on vgpu, which needs no GPU");
  std::string reason = gpus.cuda->driver() == 0 ? "there is no driver" : "there is none";
  try {
    gpus.count = gpus.cuda->count();
  } catch (const std::exception& error) {
    if (gpus.cuda->driver() != 0) reason = error.what();
  }
  if (gpus.count == 0)
    throw Refused(
        fmt::format("a GPU was asked for, but CUDA finds none on this machine ({}); take one with a GPU and its "
                    "driver, or run --on vgpu, which needs no GPU",
                    reason));
  return gpus;
}

Gpu open_gpu(Index ordinal) {
  const Gpus gpus = find_gpus();
  if (ordinal >= gpus.count)
    throw Refused(
        fmt::format("--device {} was asked for, but the GPUs here are counted from 0 to {}; take one of these", ordinal,
                    gpus.count - 1));
  const int n = static_cast<int>(ordinal);
  return {gpus.cuda, gpus.cuda->facts(n), std::shared_ptr<cuda::Device>(gpus.cuda->open(n))};
}

std::string driver_text(const cuda::Cuda& cuda) {
  const int version = cuda.driver();
  if (version == 0) return "none";
  const std::string cuda_version = fmt::format("CUDA {}.{}", version / 1000, version % 1000 / 10);
  std::ifstream file("/proc/driver/nvidia/version");
  for (std::string word; file >> word;)  // "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  Sun ..."
    if (std::isdigit(static_cast<unsigned char>(word[0])) && word.find('.') != std::string::npos)
      return fmt::format("{} ({})", word, cuda_version);
  return cuda_version;
}

cuda::Kernels open_kernels(const RunOptions& typed, const Stage& stage, Backend backend) {
  require_programs(stage, Side::cuda, typed.backward);
  if (backend == Backend::gpu) {
    const Gpu gpu = open_gpu(typed.device.value_or(0));
    cuda::Kernels kernels = cuda::find_kernels(stage, backend, typed.backward);
    kernels.device = gpu.device;
    return kernels;
  }
  gpu::Config config;
  if (!typed.completion.empty()) config.completion = parse_completion(typed.completion);
  config.seed = typed.vgpu_seed.value_or(config.seed);
  config.timeline = typed.timeline;
  config.accesses = typed.accesses;
  cuda::Kernels kernels = cuda::find_kernels(stage, backend, typed.backward);
  open_virtual_gpu(kernels, config);
  return kernels;
}

}  // namespace flash::app

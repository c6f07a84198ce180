// A device.so without CUDA: "GPUs" that are virtual ones, for what the program does around a GPU. The environment says
// how many there are and how much memory they have (FLASH_PRETENDED_GPUS, FLASH_PRETENDED_BYTES), from how many keys on
// nothing is computed (FLASH_PRETENDED_KEYS) whether cuBLAS is there (FLASH_PRETENDED_CUBLAS),
// and for how many keys dQ's first bits change from run to run (FLASH_PRETENDED_NOISE).
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "cuda/common/cuda_device.hpp"
#include "cuda/common/module.hpp"
#include "sim/gpu/machine.hpp"

namespace {

using namespace flash;

long said(const char* variable, long otherwise) {
  const char* text = std::getenv(variable);
  return text ? std::atol(text) : otherwise;
}

class Pretended final : public cuda::Device {
 public:
  std::string name() const override { return "pretended GPU (sm_90)"; }
  std::size_t free_bytes() const override { return static_cast<std::size_t>(said("FLASH_PRETENDED_BYTES", 1L << 30)); }
  std::size_t smem_per_cta() const override { return 232448; }
  void* allocate(const std::string& tensor, std::size_t bytes, const void* contents) override {
    void* memory = machine_.allocate(tensor, bytes, contents ? gpu::Contents::given : gpu::Contents::undefined);
    if (contents) std::memcpy(memory, contents, bytes);
    return memory;
  }
  void copy_out(void* to, const void* from, std::size_t bytes) override { std::memcpy(to, from, bytes); }
  void free_all() override { machine_.free_all(); }
  double run(const cuda::Module& module, const cuda::Problem& problem, int times) override {
    if (problem.Nk < said("FLASH_PRETENDED_KEYS", 1L << 40)) machine_.run([&] { module.launch(problem, nullptr); });
    if (problem.dQ && problem.Nk == said("FLASH_PRETENDED_NOISE", 0))
      reinterpret_cast<unsigned short*>(problem.dQ)[0] ^= static_cast<unsigned short>(++runs_ % 2);
    return 0.25 * times;
  }

 private:
  int runs_ = 0;
  gpu::Machine machine_{{.arch = 90, .checks = false, .counts = false}};
};

int count() {
  if (said("FLASH_PRETENDED_GPUS", 1) < 0) throw std::runtime_error("no CUDA-capable device is detected");
  return static_cast<int>(said("FLASH_PRETENDED_GPUS", 1));
}
int driver() { return 13000; }
cuda::GpuFacts facts(int) { return {"pretended GPU", 90, 4, std::size_t(1) << 30, 1 << 20, 65536}; }
cuda::Device* open(int) { return new Pretended; }
double clock_mhz(cuda::Device&) { return 1500; }

struct Pretence final : cuda::Yardstick {
  double run(int times) override { return 0.125 * times; }
};

cuda::Yardstick* gemm(cuda::Device&, bool, int) {
  if (said("FLASH_PRETENDED_CUBLAS", 1) == 0) throw std::runtime_error("there is no libcublas.so.13 here; install it");
  return new Pretence;
}
cuda::Yardstick* copy(cuda::Device&, std::size_t) { return new Pretence; }
void run_for_profiler(cuda::Device& device, const cuda::Module& module, const cuda::Problem& problem) {
  device.run(module, problem, 1);
}

}  // namespace

extern "C" const flash::cuda::Cuda flash_cuda{"no nvcc", "nothing", count, driver, facts, open, clock_mhz,
                                              gemm, copy, run_for_profiler};

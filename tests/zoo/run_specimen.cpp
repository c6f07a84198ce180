// Runs a specimen on the virtual GPU: run_specimen FILE.so early|late|random SEED. Prints the reports, what is wrong with
// the numbers, and bank conflicts; exit status 1 where there was any report or a wrong number.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "sim/gpu/machine.hpp"
#include "tests/zoo/specimen.hpp"

namespace {

flash::gpu::Machine* machine = nullptr;

void* allocate(const char* name, std::size_t bytes, bool given) {
  using flash::gpu::Contents;
  return machine->allocate(name, bytes, given ? Contents::given : Contents::undefined);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "run_specimen FILE.so early|late|random SEED\n");
    return 2;
  }
  void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  const auto* specimen = library ? static_cast<const Specimen*>(dlsym(library, "flash_specimen")) : nullptr;
  if (!specimen) {
    std::fprintf(stderr, "%s\n", dlerror());
    return 2;
  }
  using flash::gpu::Completion;
  const std::string mode = argv[2];
  flash::gpu::Config config;
  config.arch = specimen->arch;
  config.completion = mode == "early" ? Completion::early : mode == "late" ? Completion::late : Completion::random;
  config.seed = std::strtoull(argv[3], nullptr, 10);
  flash::gpu::Machine gpu(config);
  machine = &gpu;
  std::string wrong = "the kernel did not end";
  gpu.run([&] { wrong = specimen->run(allocate); });
  for (const auto& report : gpu.reports()) std::printf("[%s] %s\n", report.kind.c_str(), report.text.c_str());
  if (!wrong.empty()) std::printf("[numbers] %s\n", wrong.c_str());
  for (const auto& [line, counts] : gpu.counts().lines)
    if (counts.wavefronts > counts.least_wavefronts)
      std::printf("[bank conflicts] %llu wavefronts instead of %llu at %s\n",
                  static_cast<unsigned long long>(counts.wavefronts),
                  static_cast<unsigned long long>(counts.least_wavefronts), line.c_str());
  return gpu.reports().empty() && wrong.empty() ? 0 : 1;
}

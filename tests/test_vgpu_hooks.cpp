// The hooks that the compiler puts into kernels stay in kernels: nothing of a kernel's shared object replaces code of the
// program.
#include <dlfcn.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "sim/gpu/machine.hpp"
#include "stages/common/draw.hpp"
#include "stages/common/run.hpp"
#include "tests/catch.hpp"

namespace {

namespace fs = std::filesystem;

std::vector<std::string> kernel_files() {
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(FLASH_BUILD_DIR "/kernels/vgpu"))
    if (entry.path().extension() == ".so") files.push_back(entry.path());
  return files;
}

std::vector<std::string> lines_of(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  std::vector<std::string> lines;
  char line[4096];
  while (pipe && fgets(line, sizeof line, pipe.get())) lines.emplace_back(line);
  return lines;
}

}  // namespace

TEST_CASE("no hook fires in a CPU stage, with every kernel loaded") {
  const auto files = kernel_files();
  REQUIRE(!files.empty());
  for (const std::string& file : files) {
    INFO(file);
    REQUIRE(dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL) != nullptr);
  }
  flash::Inputs in = flash::draw_inputs({1, 2, 1, 33, 40, 16, 16}, flash::Format::fp16, 0);
  flash::draw_dout(in, 0);
  flash::RunConfig config;
  for (const flash::Stage& stage : flash::stages_on(flash::Side::cpu)) {
    config.backward = stage.has_backward();
    const auto before = flash::gpu::hooks_outside_kernels();
    flash::run(stage, in, flash::Options{}, config);
    CHECK(flash::gpu::hooks_outside_kernels() == before);
  }
}

TEST_CASE("a kernel's shared object shows one symbol") {
  for (const std::string& file : kernel_files()) {
    INFO(file);
    const auto symbols = lines_of("nm -D --defined-only '" + file + "'");
    REQUIRE(symbols.size() == 1);
    CHECK(symbols[0].find(" flash_module\n") != std::string::npos);
  }
}

TEST_CASE("the program itself calls no hook") {
  for (const std::string& line : lines_of("nm '" FLASH_APP "'")) CHECK(line.find("__tsan_") == std::string::npos);
}

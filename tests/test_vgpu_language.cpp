// Ordinary CUDA C++ means on the virtual GPU what it means in CUDA: expressions, atomics, shuffles, vector types,
// copies by memcpy; and what is wrong with them is reported.
#include <string>

#include "tests/catch.hpp"
#include "tests/kernels/language.hpp"
#include "tests/support/kernel_cases.hpp"

using namespace flash;
using gpu::Config;
using gpu::Machine;

namespace {

const LanguageKernels& language() {
  static const KernelFile file = KernelFile::built("language");
  return *file.symbol<const LanguageKernels>("flash_language");
}

/// "@here" as the file and line that ends in "// @here".
std::string with_line(const std::string& words) {
  return words.starts_with('@') ? line_with("tests/kernels/language.cu", "// " + words) : words;
}

/// What is missing in the report of a wrong kernel, or nothing.
std::string check(const Wrong& kernel) {
  Config config;
  config.arch = kernel.arch;
  Machine machine(config);
  const Tensors tensors = allocate_tensors(machine);
  machine.run([&] { kernel.launch(tensors); });
  std::string why = "no report\n";
  for (const gpu::Report& report : machine.reports()) {
    if (report.kind != kernel.kind) return "another kind\n" + all_reports(machine);
    const std::string words = kernel.words;
    std::string missing;
    for (std::size_t from = 0, to; from < words.size(); from = to + 2) {
      to = std::min(words.find("; ", from), words.size());
      const std::string each = with_line(words.substr(from, to - from));
      if (report.text.find(each) == report.text.npos) missing = each;
    }
    if (missing.empty()) return "";
    why = "missing: " + missing + "\n";
  }
  return why + all_reports(machine);
}

}  // namespace

TEST_CASE("CUDA C++ means what it means in CUDA, and is silent", "[vgpu]") {
  for (const Right& kernel : language().right)
    for (const std::uint64_t seed : {0, 1, 2}) {
      INFO(kernel.name << ", seed " << seed);
      CHECK(in_child([&] {
              Config config;
              config.arch = kernel.arch;
              config.seed = seed;
              Machine machine(config);
              return run(machine, kernel);
            }) == "");
    }
}

TEST_CASE("Wrong copies, vectors, traps and newer instructions are reported", "[vgpu]") {
  for (const Wrong& kernel : language().wrong) {
    INFO(kernel.name);
    CHECK(in_child([&] { return check(kernel); }) == "");
  }
}

TEST_CASE("A vector is read by one access and written by one", "[vgpu]") {
  Machine machine;
  CHECK(run(machine, language().vectors) == "");
  const auto& line = machine.counts().lines.at(line_with("tests/kernels/language.cu", "// @one_access"));
  CHECK(line.accesses == 2u * static_cast<unsigned>(language().vector_types));
}

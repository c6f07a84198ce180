// The virtual GPU's machine: it is silent on right kernels and reports wrong ones with the words that a reader needs.
// test_vgpu_stepping.cpp has stepping, counting and launching.
#include <set>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/support/kernel_cases.hpp"

using namespace flash;
using gpu::Completion;
using gpu::Config;
using gpu::Machine;

namespace {

/// What is wrong with a run of a right kernel, or nothing.
std::string run(const Right& kernel, Completion completion, std::uint64_t seed) {
  Config config;
  config.arch = kernel.arch;
  config.completion = completion;
  config.seed = seed;
  Machine machine(config);
  return flash::run(machine, kernel);
}

void check_silence(const char* name, std::uint64_t seeds) {
  const KernelFile file = KernelFile::built(name);
  for (const Right& kernel : *file.symbol<const RightKernels>("flash_right")) {
    INFO(kernel.name);
    const std::string wrong = in_child([&] {
      for (std::uint64_t seed = 0; seed < seeds; ++seed)
        for (const Completion completion : {Completion::early, Completion::late, Completion::random})
          if (const std::string said = run(kernel, completion, seed); !said.empty())
            return "seed " + std::to_string(seed) + ": " + said;
      return std::string();
    });
    CHECK(wrong == "");
  }
}

std::vector<std::string> split(const std::string& text, const std::string& by) {
  std::vector<std::string> parts;
  for (std::size_t from = 0, to; from <= text.size(); from = to + by.size()) {
    to = std::min(text.find(by, from), text.size());
    parts.push_back(text.substr(from, to - from));
  }
  return parts;
}

/// "@here" becomes the file and line that has "// @here".
std::string with_lines(std::string words, const std::string& source) {
  for (std::size_t at; (at = words.find('@')) != words.npos;) {
    std::size_t end = at + 1;
    while (end < words.size() && (std::isalnum(static_cast<unsigned char>(words[end])) || words[end] == '_')) ++end;
    words.replace(at, end - at, line_with(source, "// " + words.substr(at, end - at)));
  }
  return words;
}

/// Whether `text` holds `words`; a file and line not followed by a digit.
bool holds(const std::string& text, const std::string& words) {
  for (std::size_t at = text.find(words); at != text.npos; at = text.find(words, at + 1)) {
    const bool number = std::isdigit(static_cast<unsigned char>(words.back()));
    const std::size_t end = at + words.size();
    if (!number || end == text.size() || !std::isdigit(static_cast<unsigned char>(text[end]))) return true;
  }
  return false;
}

/// What is missing in the report of a wrong kernel, or nothing.
std::string check(const Wrong& kernel, const char* name, std::uint64_t seed, Completion completion = Completion::late) {
  const std::string source = std::string("tests/kernels/") + name + ".cu";
  Config config;
  config.arch = kernel.arch;
  config.seed = seed;
  config.completion = completion;
  Machine machine(config);
  const Tensors tensors = allocate_tensors(machine);
  machine.run([&] { kernel.launch(tensors); });
  std::string why = "no report of this kind";
  for (const gpu::Report& report : machine.reports()) {
    if (*kernel.kind && report.kind != kernel.kind) continue;
    std::vector<std::string> missing;
    for (const std::string& words : split(with_lines(kernel.words, source), "; "))
      if (!holds(report.text, words)) missing.push_back(words);
    if (missing.empty()) return "";
    why = "missing: " + missing[0];
  }
  return why + "\n" + all_reports(machine);
}

}  // namespace

TEST_CASE("Right kernels are silent", "[vgpu]") {
  for (const char* name : {"right", "right_waiting"}) check_silence(name, 4);
}

TEST_CASE("Right kernels are silent with many seeds", "[vgpu][full]") {
  for (const char* name : {"right", "right_waiting"}) check_silence(name, 100);
}

TEST_CASE("Wrong kernels are reported, with the words that their tests name", "[vgpu]") {
  std::set<std::string> kinds;
  for (const char* name : {"wrong", "wrong_waiting"}) {
    const KernelFile file = KernelFile::built(name);
    for (const Wrong& kernel : *file.symbol<const WrongKernels>("flash_wrong")) {
      INFO(kernel.name);
      CHECK(in_child([&] { return check(kernel, name, 1); }) == "");
      kinds.insert(kernel.kind);
    }
  }
  for (const char* kind : {"alignment", "architecture", "barrier", "bounds", "cp.async", "deadlock", "divergence",
                           "race", "shuffle", "uninitialised"})
    CHECK(kinds.count(kind) == 1);
}

TEST_CASE("Races are found whatever the order of warps and the completion of copies", "[vgpu]") {
  for (const char* name : {"wrong", "wrong_waiting"}) {
    const KernelFile file = KernelFile::built(name);
    for (const Wrong& kernel : *file.symbol<const WrongKernels>("flash_wrong")) {
      if (kernel.kind != std::string("race")) continue;
      INFO(kernel.name);
      const std::string missed = in_child([&] {
        for (std::uint64_t seed = 0; seed < 12; ++seed)
          for (const Completion completion : {Completion::early, Completion::late, Completion::random}) {
            Wrong either = kernel;
            either.words = "not ordered after";
            if (const std::string said = check(either, name, seed, completion); !said.empty())
              return std::to_string(seed) + said;
          }
        return std::string();
      });
      CHECK(missed == "");
    }
  }
}

TEST_CASE("A report is made once for each place, and most_reports bounds them", "[vgpu]") {
  const KernelFile file = KernelFile::built("wrong");
  for (const std::size_t most : {0, 1, 8}) {
    Config config;
    config.most_reports = most;
    Machine machine(config);
    const Tensors tensors = allocate_tensors(machine);
    machine.run([&] {
      for (const Wrong& kernel : *file.symbol<const WrongKernels>("flash_wrong"))
        if (kernel.name == std::string("a tensor that nobody wrote") ||
            kernel.name == std::string("shared memory that nobody wrote")) {
          kernel.launch(tensors);
          kernel.launch(tensors);
        }
    });
    CHECK(machine.reports().size() == std::min<std::size_t>(most, 2));
  }
}

TEST_CASE("Without checks nothing but what a GPU would not survive is reported", "[vgpu]") {
  const KernelFile file = KernelFile::built("wrong");
  for (const Wrong& kernel : *file.symbol<const WrongKernels>("flash_wrong")) {
    const std::string kind = kernel.kind;
    const bool checked = kind == "race" || kind == "uninitialised";
    if (!checked && kind != "bounds") continue;
    INFO(kernel.name);
    Config config;
    config.arch = kernel.arch;
    config.checks = false;
    Machine machine(config);
    const Tensors tensors = allocate_tensors(machine);
    machine.run([&] { kernel.launch(tensors); });
    CHECK(machine.reports().empty() == checked);
  }
}

// Every wrapper of cuda/ptx and every CUDA spelling of sim/gpu: against scalar references that know nothing of the
// project's own maps (conformance/reference.hpp), on random operands; and what instructions do beside their results.
#include <algorithm>
#include <regex>
#include <set>
#include <vector>

#include "tests/catch.hpp"
#include "tests/conformance/reference.hpp"
#include "tests/support/vgpu.hpp"

using namespace flash;
using namespace flash::conformance;
using gpu::Completion;
using gpu::Config;
using gpu::Contents;
using gpu::Machine;
using Words = std::vector<Word>;

namespace {

constexpr Completion all_completions[] = {Completion::early, Completion::late, Completion::random};

/// What a case gives on the virtual GPU. @throws std::runtime_error for reports.
Words run(const Case& c, const Words& in, const Config& config) {
  Machine machine(config);
  auto* from = static_cast<Word*>(machine.allocate("in", in.size() * sizeof(Word), Contents::given));
  auto* to = static_cast<Word*>(machine.allocate("out", c.all_out() * sizeof(Word), Contents::given));
  std::copy(in.begin(), in.end(), from);
  machine.run([&] { c.launch(from, to); });
  if (!machine.reports().empty()) throw std::runtime_error(all_reports(machine));
  return Words(to, to + c.all_out());
}

/// Names of functions that `pattern` finds in a file.
std::set<std::string> names_in(const std::string& file, const std::string& pattern) {
  const std::string text = KernelFile::contents(std::string(FLASH_SOURCE_DIR "/") + file);
  const std::regex regex(pattern);
  std::set<std::string> names;
  for (std::sregex_iterator i(text.begin(), text.end(), regex), end; i != end; ++i) names.insert((*i)[1]);
  return names;
}

bool mentions(const std::string& text, const std::string& name) {
  return std::regex_search(text, std::regex("\\b" + name + "\\b"));
}

/// A machine with two tensors of 1024 words.
struct Run {
  Machine machine;
  Word *A, *B;

  explicit Run(const Config& config = {})
      : machine(config),
        A(static_cast<Word*>(machine.allocate("A", 4096, Contents::given))),
        B(static_cast<Word*>(machine.allocate("B", 4096, Contents::given))) {
    for (Word i = 0; i < 1024; ++i) A[i] = 100 + i;
  }
};

Config config_of(int arch, Completion completion = Completion::late, std::uint64_t seed = 1) {
  Config config;
  config.arch = arch;
  config.completion = completion;
  config.seed = seed;
  return config;
}

}  // namespace

TEST_CASE("Each instruction gives what a scalar reference says", "[vgpu]") {
  const KernelFile file = KernelFile::built("instructions");
  std::set<std::string> seen;
  for (const Case& c : *file.symbol<const Cases>("flash_cases")) {
    INFO(c.name);
    CHECK(seen.insert(c.name).second);
    CHECK(sizeof(Record::name) > std::string(c.name).size());
    for (std::uint64_t seed = 1; seed <= 8; ++seed) {
      Words in(c.all_in());
      c.draw(seed, in.data(), in.size());
      const Expected wanted = expected(c, in);
      for (const int arch : {75, 80, 90, 100}) {
        if (arch < c.arch) continue;
        const Words got = run(c, in, config_of(arch, all_completions[seed % 3], seed));
        CHECK(disagreement(c, got, wanted) == "");
      }
    }
  }
  for (const auto& [name, reference] : references()) CHECK(seen.count(name) == 1);
}

TEST_CASE("What a newer architecture has is refused on an older one", "[vgpu]") {
  const KernelFile file = KernelFile::built("instructions");
  for (const Case& c : *file.symbol<const Cases>("flash_cases")) {
    if (c.arch < 80) continue;
    INFO(c.name);
    const Words in(c.all_in());
    CHECK_THROWS_WITH(run(c, in, config_of(75)), Catch::Contains("needs sm_80"));
  }
}

TEST_CASE("No wrapper and no CUDA spelling is left out", "[vgpu]") {
  const std::string cases = KernelFile::contents(FLASH_SOURCE_DIR "/tests/conformance/instructions.cu"),
                    effects = KernelFile::contents(FLASH_SOURCE_DIR "/tests/kernels/effects.cu");
  std::size_t wrappers = 0;
  for (const auto& entry : std::filesystem::directory_iterator(FLASH_SOURCE_DIR "/cuda/ptx"))
    for (const std::string& name :
         names_in("cuda/ptx/" + entry.path().filename().string(), R"(\nFLASH_PTX [^\n]*?(\w+)\()")) {
      INFO("ptx::" << name);
      if (name == "shared_address") continue;  // an address is the machine's own; ldmatrix and cp.async use it
      CHECK((mentions(cases, name) || mentions(effects, name)));
      ++wrappers;
    }
  CHECK(wrappers >= 25);
  const std::string language = KernelFile::contents(FLASH_SOURCE_DIR "/tests/kernels/language.cu") +
                               KernelFile::contents(FLASH_SOURCE_DIR "/tests/kernels/language_cases.hpp");
  const std::set<std::string> not_cuda = {"bytes_as", "larger",  "smaller",  "saturated",
                                          "shuffled", "__float", "__double", "__half"};
  std::set<std::string> spellings;
  for (const auto& entry : std::filesystem::directory_iterator(FLASH_SOURCE_DIR "/sim/gpu")) {
    const std::string file = entry.path().filename().string();
    if (!file.starts_with("cuda_")) continue;
    spellings.merge(names_in("sim/gpu/" + file, R"(\nFLASH_CUDA [^\n]*?(?:flash_)?(\w+)\()"));
    spellings.merge(names_in("sim/gpu/" + file, R"(\n *FLASH_CUDA_[A-Z_]+\(((?:__|atomic|h)\w+),)"));
    spellings.merge(names_in("sim/gpu/" + file, R"(\nFLASH_CUDA_(?:LOAD|STORE)\((\w+))"));
  }
  CHECK(spellings.size() >= 180);
  for (const std::string& name : spellings) {
    INFO(name);
    CHECK((not_cuda.count(name) || mentions(cases, name) || mentions(language, name)));
  }
}

TEST_CASE("The comparison finds one wrong word", "[vgpu]") {
  const KernelFile file = KernelFile::built("instructions");
  for (const Case& c : *file.symbol<const Cases>("flash_cases")) {
    INFO(c.name);
    Words in(c.all_in());
    c.draw(golden_seed, in.data(), in.size());
    const Expected wanted = expected(c, in);
    Words got = wanted.words;
    CHECK(disagreement(c, got, wanted) == "");
    got[got.size() / 2] ^= c.agreement == Agreement::bits ? 1 : 0x00400000;
    CHECK(disagreement(c, got, wanted) != "");
    got.pop_back();
    CHECK(disagreement(c, got, wanted) != "");
  }
}

TEST_CASE("All halves unpack, and pack again", "[vgpu]") {
  std::size_t wrong = 0;
  for (Word h = 0; h < 65536; ++h) {
    const float2 pair = gpu::unpack_f16(h | (h ^ 0x8000) << 16);
    const double value = reference::from_f16(h);
    const bool is_nan = std::isnan(value);
    wrong += is_nan ? !std::isnan(pair.x) || !std::isnan(pair.y) : !(pair.x == value) || !(pair.y == -value);
    const Word again = is_nan ? 0x7fff7fff : h | (h ^ 0x8000) << 16;
    wrong += gpu::pack_f16(pair.x, pair.y) != again;
  }
  CHECK(wrong == 0);
}

TEST_CASE("Packing rounds to nearest even around every 16-bit number", "[vgpu]") {
  std::size_t wrong = 0;
  for (Word h = 0; h < 65536; ++h) {
    for (const Word base : {std::bit_cast<Word>(static_cast<float>(reference::from_f16(h))), h << 16})
      for (const Word near : {0u, 1u, 0xfffu, 0x1000u, 0x1001u, 0x7fffu, 0x8000u, 0x8001u}) {
        const float x = std::bit_cast<float>(base + near), y = -x;
        wrong += gpu::pack_f16(x, y) != (reference::to_f16(x) | reference::to_f16(y) << 16);
        wrong += gpu::pack_bf16(x, y) != (reference::to_bf16(x) | reference::to_bf16(y) << 16);
      }
  }
  CHECK(wrong == 0);
}

TEST_CASE("ex2 is within an ulp everywhere, and flushes", "[vgpu]") {
  std::int64_t largest = 0;
  for (double x = -126; x < 128; x += 0.00037) {
    const float given = static_cast<float>(x);
    const auto exact = static_cast<float>(std::exp2(static_cast<double>(given)));
    largest = std::max(largest, std::abs(ordinal(gpu::ex2(given)) - ordinal(exact)));
  }
  CHECK(largest <= 1);
  constexpr float infinity = std::numeric_limits<float>::infinity();
  CHECK(gpu::ex2(-infinity) == 0);
  CHECK(gpu::ex2(infinity) == infinity);
  CHECK(gpu::ex2(128) == infinity);
  CHECK(gpu::ex2(-126) == 0x1p-126f);
  CHECK(gpu::ex2(-126.5f) == 0);
  CHECK(gpu::ex2(-149) == 0);
  CHECK(gpu::ex2(1e-40f) == 1);
  CHECK(std::isnan(gpu::ex2(std::numeric_limits<float>::quiet_NaN())));
  for (int n = -126; n < 128; ++n) CHECK(gpu::ex2(static_cast<float>(n)) == std::ldexp(1.f, n));
}

TEST_CASE("A copy arrives early, late or at random, and is there once waited for", "[vgpu]") {
  const KernelFile file = KernelFile::built("effects");
  constexpr Word poison = 0xffffffff;
  std::set<Word> at_random;
  for (const Completion completion : all_completions)
    for (std::uint64_t seed = 1; seed <= 4; ++seed) {
      Config config = config_of(80, completion, seed);
      config.checks = false;  // it looks too early on purpose
      Run run(config);
      run.machine.run([&] { file.call("flash_peek", static_cast<const Word*>(run.A), run.B); });
      for (Word lane = 0; lane < 32; ++lane) {
        const Word early = run.B[lane], after = run.B[32 + lane], copied = 100 + lane;
        CHECK(after == copied);
        if (completion == Completion::early) CHECK(early == copied);
        if (completion == Completion::late) CHECK(early == poison);
        if (completion == Completion::random) {
          CHECK((early == copied || early == poison));
          at_random.insert(early == copied);
        }
      }
    }
  CHECK(at_random.size() == 2);
}

TEST_CASE("cp.async.wait_group leaves the youngest groups in flight", "[vgpu]") {
  const KernelFile file = KernelFile::built("effects");
  Config config = config_of(80);
  config.checks = false;
  Run run(config);
  run.machine.run([&] { file.call("flash_groups", static_cast<const Word*>(run.A), run.B); });
  for (Word i = 0; i < 64; ++i) CHECK(run.B[i] == 100 + i);
  for (Word i = 64; i < 96; ++i) CHECK(run.B[i] == 0xffffffff);
}

TEST_CASE("Asynchronous copies are counted whoever of the warp makes them", "[vgpu]") {
  const KernelFile file = KernelFile::compiled_text(R"(
    #include "cuda/ptx/ptx.hpp"
    namespace ptx = flash::ptx;
    struct Smem { int x[32]; };
    __global__ void upper(const int* A, int* B) {
      Smem& sm = ptx::dynamic_smem<Smem>();
      if (threadIdx.x >= 16) ptx::cp_async_4(sm.x + threadIdx.x, A + threadIdx.x);
      ptx::cp_async_commit_group();
      ptx::cp_async_wait_all();
      B[threadIdx.x] = threadIdx.x >= 16 ? sm.x[threadIdx.x] : 0;
    }
    extern "C" __attribute__((visibility("default"))) void flash_upper(const int* A, int* B) {
      ptx::launch("upper", upper, 1, 32, sizeof(Smem), nullptr, A, B);
    })");
  Run run(config_of(80));
  run.machine.run(
      [&] { file.call("flash_upper", reinterpret_cast<const int*>(run.A), reinterpret_cast<int*>(run.B)); });
  CHECK(all_reports(run.machine) == "");
  CHECK(run.B[16] == 116);
  const auto& executed = run.machine.counts().instructions;
  REQUIRE(executed.count("cp.async") == 1);
  CHECK(executed.at("cp.async") == 1);
}

TEST_CASE("A mark is an event of its warp once, also when lanes have exited", "[vgpu]") {
  const KernelFile file = KernelFile::built("effects");
  Run run;
  run.machine.start([&] { file.call("flash_marks", run.B); });
  std::multiset<std::string> marks;
  while (const auto event = run.machine.step(gpu::at_mark))
    marks.insert(event->name + " " + std::to_string(event->value) + " of warp " + std::to_string(event->warp));
  CHECK(marks == std::multiset<std::string>{"left 1 of warp 0", "lowest 2 of warp 0", "another 3 of warp 0",
                                            "left 1 of warp 1"});
}

// The virtual GPU against silicon: golden files hold what a real GPU answered to the cases of
// conformance/instructions.cu (golden/README.md says how they are made). Equal bits where arithmetic is exact, a stated
// bound elsewhere.
#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "tests/catch.hpp"
#include "tests/conformance/reference.hpp"
#include "tests/support/vgpu.hpp"

namespace fs = std::filesystem;
using namespace flash;
using namespace flash::conformance;
using gpu::Config;
using gpu::Contents;
using gpu::Machine;
using Words = std::vector<Word>;

namespace {

const fs::path golden_folder = fs::path(FLASH_SOURCE_DIR) / "tests/golden";

struct Answer {
  std::uint64_t input_hash;
  Words words;
};

/// What a GPU answered, by the case's name.
std::map<std::string, Answer> read_answers(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::map<std::string, Answer> answers;
  for (Record record; in.read(reinterpret_cast<char*>(&record), sizeof record);) {
    Answer answer{record.input_hash, Words(record.bytes / sizeof(Word))};
    if (!in.read(reinterpret_cast<char*>(answer.words.data()), static_cast<std::streamsize>(record.bytes)))
      throw std::runtime_error(file.string() + " ends within " + record.name);
    answers.emplace(record.name, std::move(answer));
  }
  return answers;
}

Words golden_inputs(const Case& c) {
  Words in(c.all_in());
  c.draw(golden_seed, in.data(), in.size());
  return in;
}

Words run(const Case& c, int arch) {
  const Words in = golden_inputs(c);
  Config config;
  config.arch = arch;
  Machine machine(config);
  auto* from = static_cast<Word*>(machine.allocate("in", in.size() * sizeof(Word), Contents::given));
  auto* to = static_cast<Word*>(machine.allocate("out", c.all_out() * sizeof(Word), Contents::given));
  std::copy(in.begin(), in.end(), from);
  machine.run([&] { c.launch(from, to); });
  CHECK(all_reports(machine) == "");
  return Words(to, to + c.all_out());
}

const Cases& cases() {
  static const KernelFile file = KernelFile::built("instructions");
  return *file.symbol<const Cases>("flash_cases");
}

/// sm_90 and so on.
std::vector<fs::path> golden_archs() {
  std::vector<fs::path> folders;
  if (fs::exists(golden_folder))
    for (const auto& entry : fs::directory_iterator(golden_folder))
      if (fs::exists(entry.path() / "instructions.bin")) folders.push_back(entry.path());
  return folders;
}

/// Silicon's answer compared with the virtual GPU's, and the terms that its bound is relative to.
std::string compare(const Case& c, const Words& silicon, int arch) {
  Expected virtual_gpu = expected(c, golden_inputs(c));
  virtual_gpu.words = run(c, arch);
  return disagreement(c, silicon, virtual_gpu);
}

/// None: there is no such case, or not any more.
const Case* case_named(const std::string& name) {
  const Case* found = std::find_if(cases().begin(), cases().end(), [&](const Case& c) { return c.name == name; });
  return found == cases().end() ? nullptr : found;
}

}  // namespace

TEST_CASE("The virtual GPU gives what silicon gave", "[vgpu]") {
  const std::vector<fs::path> folders = golden_archs();
  if (folders.empty()) {
    WARN("SKIPPED: tests/golden holds no answers of a real GPU; tests/golden/README.md says how to make them");
    SUCCEED();
  }
  for (const fs::path& folder : folders) {
    const auto about = nlohmann::json::parse(KernelFile::contents(folder / "instructions.json"));
    const int arch = about.at("arch");
    INFO(folder << ", " << about.at("card") << ", " << about.at("date"));
    CHECK(folder.filename() == "sm_" + std::to_string(arch));
    CHECK(about.at("seed") == golden_seed);
    for (const char* key : {"card", "driver", "date", "command"}) CHECK(about.at(key).get<std::string>() != "");
    CHECK(fs::file_size(folder / "instructions.bin") <= 200 * 1024);
    const auto answers = read_answers(folder / "instructions.bin");
    CHECK(answers.size() == about.at("cases"));
    for (const Case& c : cases()) {
      if (c.arch > arch) continue;
      INFO(c.name << ": " << c.reason);
      REQUIRE(answers.count(c.name) == 1);
      const Answer& silicon = answers.at(c.name);
      const Words in = golden_inputs(c);
      const bool of_these_inputs = silicon.input_hash == hash(in.data(), in.size());
      CHECK(of_these_inputs);  // else the golden files have to be made again
      if (!of_these_inputs) continue;
      CHECK(compare(c, silicon.words, arch) == "");
      if (c.arch != arch) CHECK(compare(c, silicon.words, c.arch) == "");
    }
    for (const auto& [name, answer] : answers) CHECK(case_named(name));
  }
}

// A wrong element in any map must not fit any answer: two of a lane's or two lanes' elements are swapped, as a wrong
// map would, and the bound of the case has to refuse the result.

TEST_CASE("Swapped elements of A, B or C are outside of the bounds of mma", "[vgpu]") {
  for (const int k : {8, 16})
    for (const std::string type : {"_f16", "_bf16"})
      for (const char* operands : {"", ".integers"}) {
        const Case& c = *case_named("mma_m16n8k" + std::to_string(k) + type + operands);
        INFO(c.name);
        const Words in = golden_inputs(c);
        const std::size_t words = in.size() / c.ctas;
        const auto refuses = [&](auto&& mistake) {
          for (unsigned cta = 0; cta < c.ctas; ++cta) {
            reference::MmaOperands o = reference::mma_operands(in.data() + words * cta, k, type == "_f16");
            Expected right = reference::mma_result(o);
            mistake(o);
            Case one = c;
            one.ctas = 1;
            if (disagreement(one, reference::mma_result(o).words, right) != "") return true;
          }
          return false;
        };
        std::size_t accepted = 0;
        for (std::size_t row = 0; row < 16; ++row)
          for (std::size_t column = 0; column < static_cast<std::size_t>(k); ++column) {
            accepted += !refuses([&](auto& o) { std::swap(o.a[row][column], o.a[row][column ^ 1]); });
            accepted += !refuses([&](auto& o) { std::swap(o.a[row][column], o.a[(row + 8) % 16][column]); });
            if (row < 8) accepted += !refuses([&](auto& o) { std::swap(o.b[column][row], o.b[column ^ 1][row]); });
            if (row < 8) accepted += !refuses([&](auto& o) { std::swap(o.b[column][row], o.b[column][row ^ 1]); });
            if (column < 8) accepted += !refuses([&](auto& o) { std::swap(o.c[row][column], o.c[row][column ^ 1]); });
            if (column < 8)
              accepted += !refuses([&](auto& o) { std::swap(o.c[row][column], o.c[(row + 8) % 16][column]); });
          }
        CHECK(accepted == 0);
      }
}

TEST_CASE("A wrong element of ldmatrix is another element", "[vgpu]") {
  // Its inputs hold no 16-bit element twice within a CTA's matrices but by accident: enough of them differ.
  for (const char* name : {"ldmatrix_x1", "ldmatrix_x2", "ldmatrix_x4", "ldmatrix_x4_trans"}) {
    const Case& c = *case_named(name);
    const Words in = golden_inputs(c);
    for (unsigned cta = 0; cta < c.ctas; ++cta) {
      std::set<Word> elements;
      for (int i = 0; i < 128; ++i) {
        elements.insert(in[cta * c.in + static_cast<unsigned>(i)] & 0xffff);
        elements.insert(in[cta * c.in + static_cast<unsigned>(i)] >> 16);
      }
      CHECK(elements.size() >= 254);
    }
  }
}

// The diff is the lesson: what a stage changes in the program it extends stays small and where stage.json says, on the
// CPU and in CUDA; and the two files of a pair have the same banners.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "stages/common/registry.hpp"
#include "tests/catch.hpp"

using namespace flash;

namespace {

const std::filesystem::path kRoot = FLASH_SOURCE_DIR;
const std::filesystem::path kStages = kRoot / "stages";

using Lines = std::vector<std::string>;

Lines lines_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  Lines lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

/// One source file of a lesson, "03_online_softmax/forward", and what stage.json says of it. A base is the first on a
/// new architecture, which is written anew.
struct Lesson {
  const Stage& stage;
  std::string name;
  bool backward;
  ProgramFacts facts;
  bool cuda = false, is_base = false;

  std::filesystem::path file() const { return file_of(name); }
  std::filesystem::path file_of(const std::string& other) const {
    return cuda ? kRoot / "cuda" / (other + ".cu") : kStages / (other + ".hpp");
  }
  std::string title() const { return name + (cuda ? ".cu" : ".hpp"); }
};

Lesson lesson_of(const Stage& stage, Side side, Direction direction) {
  std::ifstream file(kStages / stage.folder() / "stage.json");
  nlohmann::json json = nlohmann::json::parse(file);
  if (!stage.letter().empty()) json = json.at("steps").at(std::string(stage.letter()));
  if (side == Side::cuda) json = json.at("cuda");
  json = json.at(std::string(name(direction)));
  const bool is_base = json.value("base", false);
  return {stage,
          stage.source(side, direction),
          direction == Direction::backward,
          {json.value("extends", ""), json.at("sections"), is_base ? 0 : json.at("budget").get<int>(), ""},
          side == Side::cuda,
          is_base};
}

std::vector<Lesson> named_lessons(Side side) {
  std::vector<Lesson> all;
  for (const Stage& stage : stages())
    for (const Direction direction : {Direction::forward, Direction::backward})
      if (stage.has(side, direction)) all.push_back(lesson_of(stage, side, direction));
  return all;
}

/// Those that have a file; that all have one is a case of its own.
std::vector<Lesson> lessons_of(Side side) {
  std::vector<Lesson> all;
  for (const Lesson& lesson : named_lessons(side))
    if (std::filesystem::exists(lesson.file())) all.push_back(lesson);
  return all;
}

std::vector<Lesson> lessons() {
  std::vector<Lesson> all = lessons_of(Side::cpu);
  for (const Lesson& lesson : lessons_of(Side::cuda)) all.push_back(lesson);
  return all;
}

std::vector<Lesson> extending() {
  std::vector<Lesson> all;
  for (const Lesson& lesson : lessons())
    if (!lesson.facts.extends.empty() && !lesson.is_base &&
        std::filesystem::exists(lesson.file_of(lesson.facts.extends)))
      all.push_back(lesson);
  return all;
}

// ---- banners and sections

/// "load" of "  // ---- load", "pass: softmax" of "// == pass: softmax"; empty for any other line.
std::string banner(const std::string& line) {
  static const std::regex pattern(R"(\s*// (?:----|==) (.*\S)\s*)");
  std::smatch match;
  return std::regex_match(line, match, pattern) ? match[1].str() : "";
}

/// For each line the section it belongs to. Above the first banner of a function that is "grid"; what stands outside
/// functions (head comment, includes, namespace, the SRAM inequality) belongs to none.
Lines sections_of(const Lines& lines) {
  Lines sections;
  std::string section;
  bool inside = false;
  for (std::size_t n = 0; n < lines.size(); ++n) {
    const std::string& line = lines[n];
    const bool after_template = n > 0 && lines[n - 1].starts_with("template ");
    const bool opens = line.starts_with("template ") || (line.starts_with("__global__ ") && !after_template);
    if (opens && (n == 0 || !lines[n - 1].starts_with("// =="))) section = "grid";
    if (opens) inside = true;
    const std::string own = banner(line);
    if (!own.empty()) section = own;
    sections.push_back(inside || !own.empty() ? section : "");
    if (line == "}") inside = false;
  }
  return sections;
}

// ---- differences

struct Change {
  std::string section, text;
  char sign;
};

/// Added and removed non-blank lines, with the section that each has in its own file. Indentation is ignored, and the
/// numbers of an algorithm's lines in the margin: another paper has others.
std::vector<Change> changes(const Lesson& lesson) {
  const std::filesystem::path from = lesson.file_of(lesson.facts.extends), to = lesson.file();
  const std::string without_numbers = "sed -E 's/(Alg\\. [0-9], )?line [0-9]+//; s/[ ,]*$//; s:[ ]*//$::'";
  const std::string command = fmt::format("bash -c \"diff -U0 -w <({} '{}') <({} '{}')\"", without_numbers,
                                          from.string(), without_numbers, to.string());
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  const Lines old_sections = sections_of(lines_of(from)), new_sections = sections_of(lines_of(to));
  static const std::regex hunk(R"(@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@.*)");
  std::vector<Change> all;
  std::size_t old_line = 0, new_line = 0;
  std::array<char, 4096> buffer{};
  for (int header = 2; std::fgets(buffer.data(), buffer.size(), pipe.get());) {
    std::string line(buffer.data());
    line.erase(line.find_last_not_of('\n') + 1);
    std::smatch match;
    if (header-- > 0) continue;  // names of the files
    if (std::regex_match(line, match, hunk)) {
      old_line = std::stoul(match[1]), new_line = std::stoul(match[2]);
      continue;
    }
    const bool removed = line[0] == '-';
    const std::string& section = removed ? old_sections.at(old_line++ - 1) : new_sections.at(new_line++ - 1);
    if (line.find_first_not_of(" \t", 1) != std::string::npos) all.push_back({section, line.substr(1), line[0]});
  }
  return all;
}

std::size_t columns(const std::string& line) {  // of UTF-8
  return static_cast<std::size_t>(std::ranges::count_if(line, [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string without_comments(const std::string& line) { return line.substr(0, line.find("//")); }

}  // namespace

TEST_CASE("a program extends an earlier one of its direction", "[lesson]") {
  for (const Side side : {Side::cpu, Side::cuda}) {
    std::set<std::string> forward{""}, backward{""};
    for (const Lesson& lesson : lessons_of(side)) {
      std::set<std::string>& earlier = lesson.backward ? backward : forward;
      INFO(lesson.title() << " extends " << lesson.facts.extends);
      CHECK(earlier.contains(lesson.facts.extends));
      CHECK(lesson.facts.extends.empty() == (earlier.size() == 1));  // the first one alone extends nothing
      earlier.insert(lesson.name);
    }
  }
}

TEST_CASE("changed lines stay within the lesson's budget", "[lesson]") {
  for (const Lesson& lesson : extending()) {
    const auto count = static_cast<int>(changes(lesson).size());
    fmt::print("{} changes {} lines of {} (budget {})\n", lesson.title(), count, lesson.facts.extends,
               lesson.facts.budget);
    INFO(lesson.title());
    CHECK(count > 0);
    CHECK(count <= lesson.facts.budget);
    const bool other_loop_nest = std::ranges::count(lesson.facts.sections, "grid") == 1;
    CHECK(lesson.facts.budget <= (lesson.cuda ? (other_loop_nest ? 250 : 150) : other_loop_nest ? 110 : 60));
  }
}

TEST_CASE("a lesson changes only the sections it names", "[lesson]") {
  for (const Lesson& lesson : extending()) {
    std::set<std::string> touched;
    for (const Change& change : changes(lesson)) {
      if (change.section.empty()) continue;
      INFO(lesson.title() << ", section " << change.section << ": " << change.sign << change.text);
      CHECK(std::ranges::count(lesson.facts.sections, change.section) == 1);
      touched.insert(change.section);
    }
    for (const std::string& named : lesson.facts.sections) {
      INFO(lesson.title() << " names section " << named << " and leaves it as it was");
      CHECK(touched.contains(named));
    }
  }
}

TEST_CASE("banners are the vocabulary", "[lesson]") {
  const std::set<std::string> forward{"load", "scores", "mask", "softmax", "accumulate", "store", "quantise"};
  const std::set<std::string> backward{"load", "scores", "mask", "probabilities", "dV",      "dP",
                                       "dS",   "dQ",     "dK",   "store",         "quantise"};
  static const std::regex of_a_tile(R"((\S+) \(\w+[+-]?\d*\))"), of_a_function(R"((pass|role): .+)");
  for (const Lesson& lesson : lessons()) {
    int banners = 0;
    for (const std::string& line : lines_of(lesson.file())) {
      std::string word = banner(line);
      if (word.empty()) continue;
      ++banners;
      std::smatch match;
      if (std::regex_match(word, match, of_a_tile)) word = match[1].str();
      INFO(lesson.title() << ": " << line);
      const bool known = (lesson.backward ? backward : forward).contains(word);
      CHECK((line.find("// ==") == std::string::npos ? known : std::regex_match(word, of_a_function)));
    }
    INFO(lesson.title());
    CHECK(banners >= 4);
  }
}

TEST_CASE("the two files of a pair have the same banners", "[lesson]") {
  const std::vector<Lesson> on_cpu = lessons_of(Side::cpu);
  for (const Lesson& cuda : lessons_of(Side::cuda)) {
    const auto cpu = std::ranges::find(on_cpu, cuda.name, &Lesson::name);
    if (cpu == on_cpu.end()) continue;  // of kernels alone
    // What a pipeline does for another tile, "load (j+1)", is beside the order.
    const auto banners_of = [](const Lesson& lesson) {
      Lines all;
      for (const std::string& line : lines_of(lesson.file()))
        if (const std::string word = banner(line); !word.empty() && !word.starts_with("pass: ") && !word.ends_with(")"))
          all.push_back(word);
      return all;
    };
    // Where a pass has nothing but dropout under a banner, the kernel, which takes none, has not the banner.
    Lines missing, here = banners_of(cuda);
    std::size_t met = 0;
    for (const std::string& word : banners_of(*cpu))
      met < here.size() && here[met] == word ? static_cast<void>(++met) : missing.push_back(word);
    INFO(cuda.title());
    CHECK(met == here.size());
    CHECK(missing ==
          (cpu->name == "01_materialized/forward" || cpu->name == "02_tiling/forward" ? Lines{"softmax"} : Lines{}));
  }
}

TEST_CASE("a head comment of at most eight lines says what the lesson is", "[lesson]") {
  for (const Lesson& lesson : lessons()) {
    const Lines lines = lines_of(lesson.file());
    std::size_t head = 0;
    std::string text;
    while (head < lines.size() && lines[head].starts_with("//")) text += lines[head++] + "\n";
    INFO(lesson.title() << "\n" << text);
    CHECK(head >= 1);
    CHECK(head <= 8);
    for (const char* part : {"Extends", "What it costs: ", "The ledger must"})
      CHECK(text.find(part) != std::string::npos);
    CHECK(lines[head] == (lesson.cuda ? "#include \"cuda/common/kernel.hpp\"" : "#pragma once"));
  }
}

TEST_CASE("lessons stand by themselves", "[lesson]") {
  static const std::regex condition(R"(\s*#\s*(if|ifdef|ifndef|elif|else|define)\b.*)"),
      include(R"re(#include "(stages|cuda)/(?!common/).*)re"),
      numbered(R"(\b\w*(stage|step)_?\d\w*|\b\w*_0?[1-9]\b|\b[A-Za-z]+0[1-9]\w*)");
  for (const Lesson& lesson : lessons()) {
    const Lines lines = lines_of(lesson.file());
    for (const std::string& line : lines) {
      INFO(lesson.title() << ": " << line);
      CHECK(!std::regex_match(line, condition));
      CHECK(!std::regex_match(line, include));
      static const std::regex instruction(R"(ptx::\w+)");  // "cp_async_4" is one
      CHECK(!std::regex_search(std::regex_replace(without_comments(line), instruction, ""), numbered));
    }
    std::string space =
        fmt::format("namespace flash::{}{}", lesson.cuda ? "cuda::" : "", lesson.stage.folder().substr(3));
    if (const std::string letter(lesson.stage.letter()); !letter.empty() && !lesson.cuda) space += "::" + letter;
    space += " {";
    CHECK(std::ranges::count(lines, space) == 1);
  }
}

TEST_CASE("a stage has its files, of lines that fit a screen", "[lesson]") {
  for (const Side side : {Side::cpu, Side::cuda})
    for (const Lesson& lesson : named_lessons(side)) {
      INFO(lesson.title());
      CHECK(std::filesystem::exists(lesson.file()));
    }
  for (const Stage& stage : main_stages()) {
    const std::filesystem::path folder = kStages / stage.id;
    for (const char* file : {"lesson.md", "stage.json"}) {
      INFO(stage.id << " " << file);
      CHECK(std::filesystem::exists(folder / file));
    }
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (entry.path().extension() == ".md") continue;  // prose
      std::size_t number = 0;
      for (const std::string& line : lines_of(entry.path())) {
        INFO(entry.path().string() << ":" << ++number);
        CHECK(columns(line) <= 120);
      }
    }
  }
}

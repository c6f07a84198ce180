#include "notebooks-cling/library/kernel_cells.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>
#include <sstream>
#include <vector>

#include "app/child.hpp"
#include "app/lesson.hpp"
#include "app/stage_name.hpp"
#include "cuda/common/library.hpp"
#include "notebooks-cling/library/kernels.hpp"
// Last: it brings CUDA's words.
#include "cuda/common/module.hpp"

namespace flash::notebook {

namespace {

namespace fs = std::filesystem;

std::map<std::string, const cuda::Module*>& compiled() {
  static std::map<std::string, const cuda::Module*> all;
  return all;
}

/// Where kernels of cells are compiled; reports look lines up there. Removed at the end.
fs::path new_file(const std::string& name) {
  struct Folder {
    std::string path = (fs::temp_directory_path() / "flash_cells_XXXXXX").string();
    int files = 0;
    Folder() {
      if (!mkdtemp(path.data()))
        throw Refused("a kernel was to be compiled, but no temporary folder can be made; make room");
    }
    ~Folder() {
      std::error_code ignored;
      fs::remove_all(path, ignored);
    }
  };
  static Folder folder;
  return fs::path(folder.path) / fmt::format("{}_{}", name, folder.files++);
}

std::string trimmed(const std::string& line) {
  const std::size_t first = line.find_first_not_of(" \t"), last = line.find_last_not_of(" \t\r");
  return first == std::string::npos ? "" : line.substr(first, last - first + 1);
}

/// Without blanks at its ends, and with one in place of several.
std::string squeezed(const std::string& line) {
  std::istringstream words(line);
  std::string text, word;
  while (words >> word) text += (text.empty() ? "" : " ") + word;
  return text;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// "03/forward" is 03_online_softmax/forward. @throws Refused.
std::string source_named(const std::string& kernel) {
  const std::size_t slash = kernel.find('/');
  if (slash == std::string::npos)
    throw Refused(
        fmt::format("kernel \"{}\" was asked for, but no cell has compiled one of that name; run that cell, or "
                    "take a stage's kernel: \"03/forward\"",
                    kernel));
  const Stage& stage = app::stage_named(kernel.substr(0, slash));
  const std::string program = kernel.substr(slash + 1);
  std::vector<std::string> there;
  const fs::path folder = fs::path(FLASH_SOURCE_DIR "/cuda") / stage.folder();
  std::error_code ignored;
  for (const auto& file : fs::directory_iterator(folder, ignored))
    if (file.path().extension() == ".cu")
      there.push_back(fmt::format("{}/{}", stage.number(), file.path().stem().string()));
  std::ranges::sort(there);
  if (!fs::exists(folder / (program + ".cu")))
    throw Refused(fmt::format("kernel \"{}\" was asked for, but stage {} has {}; take one of them", kernel, stage.id,
                              fmt::join(there, ", ")));
  return fmt::format("{}/{}", stage.folder(), program);
}

std::string file_of(const std::string& kernel) { return "cuda/" + source_named(kernel) + ".cu"; }

/// One edit: what stands in the file, and what comes in its place.
struct Edit {
  std::string before;
  std::vector<std::string> after;
};

std::vector<Edit> edits_of(const std::string& text) {
  std::vector<Edit> edits;
  for (const std::string& line : lines_of(text)) {
    const std::string words = trimmed(line);
    if (words.empty()) continue;
    if (words[0] == '-')
      edits.push_back({trimmed(words.substr(1)), {}});
    else if (words[0] == '+' && !edits.empty())
      edits.back().after.push_back(trimmed(words.substr(1)));
    else
      throw Refused(
          fmt::format("the edit \"{}\" was asked for, but a line of an edit begins with - (what stands in the "
                      "file) or, behind it, + (what comes in its place); write it so",
                      words));
  }
  return edits;
}

/// How many characters must be changed, left out or put in to make one text the other.
std::size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j)
      diagonal = std::exchange(row[j + 1], std::min({row[j] + 1, row[j + 1] + 1, diagonal + (a[i] != b[j])}));
  }
  return row.back();
}

/// What would do in place of a line that the file doesn't have: the one that it is most like, if it is.
std::string cure_of(const std::string& line, const std::vector<std::string>& lines) {
  const std::string asked = squeezed(line);
  const auto near =
      std::ranges::min_element(lines, {}, [&](const std::string& l) { return distance(squeezed(l), asked); });
  if (near == lines.end() || 2 * distance(squeezed(*near), asked) > asked.size()) return "copy one line of the file";
  return fmt::format("its line {} is \"{}\"", near - lines.begin() + 1, trimmed(*near));
}

/// Makes the edit and says so.
std::string make(const Edit& edit, std::vector<std::string>& lines, const std::string& file) {
  const auto is_it = [&](const std::string& line) { return squeezed(line) == squeezed(edit.before); };
  if (const auto times = std::ranges::count_if(lines, is_it); times != 1)
    throw Refused(times == 0
                      ? fmt::format("\"{}\" was to be edited, but {} has no such line; {}", edit.before, file,
                                    cure_of(edit.before, lines))
                      : fmt::format("\"{}\" was to be edited, but {} has {} such lines; edit one that is there once",
                                    edit.before, file, times));
  const auto at = std::ranges::find_if(lines, is_it);
  const std::string indent(at->find_first_not_of(' '), ' ');
  std::string said = fmt::format("  line {}: - {}\n", at - lines.begin() + 1, edit.before), replaced;
  for (const std::string& line : edit.after) {
    replaced += (replaced.empty() ? "" : " ") + line;
    said += fmt::format("  {}       + {}\n", std::string(std::to_string(at - lines.begin() + 1).size(), ' '), line);
  }
  *at = replaced.empty() ? "" : indent + replaced;  // one line stays one line: the others keep their numbers
  return said;
}

void build(const std::string& name, const std::string& text) {
  const fs::path file = new_file(name), source = file.string() + ".cu", module = file.string() + ".so";
  std::ofstream(source) << "#line 1 \"" << name << ".cu\"\n" << text;
  const app::Child child =
      app::run_child({"env", "CXX=" FLASH_KERNEL_CXX, "FLASH_GPU_LIBRARY=" FLASH_BUILD_DIR "/libflash_gpu.so",
                      FLASH_SOURCE_DIR "/cuda/compile_kernel.sh", "vgpu", source, module});
  if (child.status != 0) throw Refused(fmt::format("{}.cu was not compiled; mend it:\n{}", name, child.complaints));
  void* library = dlopen(module.c_str(), RTLD_NOW | RTLD_LOCAL);
  const void* found = library ? dlsym(library, "flash_module") : nullptr;
  if (!found)
    throw Refused(fmt::format("{}.cu was compiled, but it has no FLASH_MODULE; end it as a stage's file ends", name));
  compiled()[name] = static_cast<const cuda::Module*>(found);
}

bool is_name(const std::string& text) {
  return !text.empty() &&
         std::ranges::all_of(text, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; });
}

}  // namespace

std::string compile_kernel(const std::string& words, const std::string& text) {
  const std::size_t equals = words.find('=');
  const std::string name = trimmed(words.substr(0, equals));
  if (name.empty())
    throw Refused(
        "a kernel was to be compiled, but it has no name; write %%kernel NAME, or %%kernel NAME = 03/forward");
  if (!is_name(name))
    throw Refused(fmt::format(
        "a kernel named \"{}\" was to be compiled, but a name is letters, digits and _; take another", name));
  if (equals == std::string::npos) {
    build(name, text);
    return fmt::format("{}.cu is compiled\n", name);
  }
  const std::string file = file_of(trimmed(words.substr(equals + 1)));
  std::vector<std::string> lines = lines_of(app::read_source(file));
  std::string edited, said;
  for (const Edit& edit : edits_of(text)) said += make(edit, lines, file);
  for (const std::string& line : lines) edited += line + "\n";
  build(name, edited);
  return fmt::format("{}.cu is compiled: {}{}\n{}", name, file, said.empty() ? ", as it stands" : ", edited", said);
}

std::string cell_of_kernel(const std::string& kernel, const std::string& name) {
  return fmt::format("%%kernel {}\n{}", name, app::read_source(file_of(kernel)));
}

const cuda::Module& kernel_named(const std::string& name) {
  if (const auto found = compiled().find(name); found != compiled().end()) return *found->second;
  const std::string source = source_named(name);
  const cuda::Module* module = cuda::find_module(cuda::Backend::vgpu, source);
  if (!module)
    throw Refused(
        fmt::format("the kernel {} was asked for, but this build has none; take another stage or direction", source));
  return *module;
}

}  // namespace flash::notebook

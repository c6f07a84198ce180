#include "sim/gpu/source_line.hpp"

#include <dlfcn.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>

namespace flash::gpu {
namespace {

std::mutex lock;
std::map<Pc, std::string> known;

/// One command's standard output.
std::string output_of(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  std::string all;
  std::array<char, 4096> buffer;
  while (pipe) {
    const std::size_t n = fread(buffer.data(), 1, buffer.size(), pipe.get());
    if (n == 0) break;
    all.append(buffer.data(), n);
  }
  return all;
}

bool is_machinery(const std::string& line) {
  return line.find("cuda/ptx/") != std::string::npos || line.find("sim/gpu/") != std::string::npos ||
         line.find("include/c++/") != std::string::npos || line.find("??") != std::string::npos;
}

/// addr2line's frames, the innermost first, as one place.
std::string place(const std::vector<std::string>& frames) {
  std::vector<std::string> kept;
  for (const std::string& frame : frames)
    if (!is_machinery(frame)) kept.push_back(frame);
  if (kept.empty()) return frames.empty() ? "an unknown place" : frames.front();
  return kept.size() == 1 ? kept[0] : kept.back() + " (" + kept.front() + ")";
}

/// "./x.cu:77 (discriminator 2)" as "x.cu:77".
std::string tidy(std::string line) {
  line = line.substr(0, line.find(" ("));
  while (line.starts_with("./")) line.erase(0, 2);
  return line;
}

void look_up_in(const std::string& file, const std::map<std::uintptr_t, Pc>& offsets) {
  std::ostringstream command;
  command << "addr2line -a -i -e '" << file << "'" << std::hex;
  for (const auto& [offset, pc] : offsets) command << " 0x" << offset;
  command << " 2>/dev/null";
  std::istringstream answer(output_of(command.str()));
  std::vector<std::string> frames;
  Pc pc = nullptr;
  const auto finish = [&] {
    if (pc) known[pc] = place(frames);
    frames.clear();
  };
  for (std::string line; std::getline(answer, line);) {
    if (!line.starts_with("0x")) {
      frames.push_back(tidy(line));
      continue;
    }
    finish();
    const auto found = offsets.find(std::stoull(line, nullptr, 16));
    pc = found == offsets.end() ? nullptr : found->second;
  }
  finish();
  for (const auto& [offset, missing] : offsets) known.try_emplace(missing, "an unknown place");
}

}  // namespace

void look_up(const std::vector<Pc>& places) {
  const std::lock_guard guard(lock);
  std::map<std::string, std::map<std::uintptr_t, Pc>> by_file;
  for (Pc pc : places) {
    Dl_info info;
    if (known.contains(pc)) continue;
    if (!pc || !dladdr(pc, &info) || !info.dli_fname) {
      known[pc] = "an unknown place";
      continue;
    }
    // A return address is that of the next instruction.
    const auto offset = reinterpret_cast<std::uintptr_t>(pc) - reinterpret_cast<std::uintptr_t>(info.dli_fbase) - 1;
    by_file[info.dli_fname][offset] = pc;
  }
  for (const auto& [file, offsets] : by_file) look_up_in(file, offsets);
}

std::string where(Pc pc) {
  look_up({pc});
  const std::lock_guard guard(lock);
  return known[pc];
}

}  // namespace flash::gpu

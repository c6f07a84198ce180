// Is everything here that the notebooks need? Plain C++, so that it can say what is missing when nothing else works.
#pragma once

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>

namespace flash::notebook {

/// The first line that a command prints.
inline std::string first_line_of(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen((command + " 2>/dev/null").c_str(), "r"), pclose);
  char line[256] = "";
  if (!pipe || !std::fgets(line, sizeof line, pipe.get())) return "";
  return line;
}

/// Where the build is; empty where there is none.
inline std::filesystem::path build_folder() {
  const char* given = std::getenv("FLASH_BUILD_DIR");
  for (const std::filesystem::path folder : {given ? given : "", "../build/cuda", "../build/cpu"})
    if (std::filesystem::exists(folder / "libflash_notebooks.so")) return folder;
  return "";
}

/// Prints one line for each need: ok, or what would do. Are all met?
inline bool check_environment() {
  namespace fs = std::filesystem;
  bool all = true;
  const auto need = [&](bool met, const std::string& what, const std::string& cure) {
    std::cout << (met ? "ok       " + what : "MISSING  " + what + ": " + cure) << "\n";
    all = all && met;
  };
  need(fs::exists("flash.hpp"), "the folder notebooks-cling",
       "open this notebook where it lies, in the project's folder notebooks-cling");
  const fs::path build = build_folder();
  need(!build.empty(), "the library of stages",
       "say ./flashsteps notebooks in the project's folder, then restart the kernel");
  need(fs::exists(build / "kernels/vgpu/03_online_softmax_forward.so"), "the virtual GPU's kernels",
       "they need Linux on x86-64 and g++; say ./flashsteps notebooks there");
  need(std::atoi(first_line_of("${CXX:-g++} -dumpversion").c_str()) >= 12, "g++ 12 or newer, for kernels of yours",
       "install the package g++");
  need(!first_line_of("addr2line --version").empty(), "addr2line, for the lines in reports",
       "install the package binutils");
  need(sysconf(_SC_PHYS_PAGES) * (sysconf(_SC_PAGESIZE) / 1024.) > 1.5e6, "2 GB of memory", "close other programs");
  need(access(fs::temp_directory_path().c_str(), W_OK) == 0, "a folder for temporary files",
       "set TMPDIR to one that you can write to");
  return all;
}

}  // namespace flash::notebook

// Kernel files for tests of the virtual GPU: those that the build compiled, or any text compiled on the spot.
#pragma once

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <stdexcept>
#include <string>

#include "sim/gpu/machine.hpp"

namespace flash {

/// A kernel file's shared object. It stays loaded for good: the virtual GPU remembers source lines by address.
class KernelFile {
 public:
  explicit KernelFile(const std::filesystem::path& file) : library_(dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (!library_) throw std::runtime_error(dlerror());
  }

  /// tests/kernels/NAME.cu or tests/conformance/NAME.cu, which the build compiled.
  static KernelFile built(const std::string& name) {
    return KernelFile(std::filesystem::path(FLASH_BUILD_DIR) / "kernels/test" / (name + ".so"));
  }

  /// Compiles a kernel file. @throws std::runtime_error with what the compiler said.
  static KernelFile compiled(const std::filesystem::path& source, const std::string& flags = "") {
    const std::filesystem::path folder = new_folder(), out = folder / "kernel.so", said = folder / "said";
    const std::string command =
        "FLASH_GPU_LIBRARY='" FLASH_BUILD_DIR "/libflash_gpu.so' '" FLASH_SOURCE_DIR "/cuda/compile_kernel.sh' vgpu '" +
        source.string() + "' '" + out.string() + "' " + flags + " >'" + said.string() + "' 2>&1";
    if (std::system(command.c_str()) != 0) throw std::runtime_error(contents(said));
    return KernelFile(out);
  }

  /// Compiles the text of a kernel file.
  static KernelFile compiled_text(const std::string& text, const std::string& flags = "") {
    const std::filesystem::path source = new_folder() / "kernel.cu";
    std::ofstream(source) << text;
    return compiled(source, flags);
  }

  /// An exported function or object.
  template <class T>
  T* symbol(const char* name) const {
    void* const found = dlsym(library_, name);
    if (!found) throw std::runtime_error(dlerror());
    return reinterpret_cast<T*>(found);
  }

  /// Calls an exported function; the arguments have exactly its parameters' types.
  template <class... Arguments>
  void call(const char* name, Arguments... arguments) const {
    symbol<void(Arguments...)>(name)(arguments...);
  }

  static std::string contents(const std::filesystem::path& file) {
    std::ostringstream text;
    text << std::ifstream(file).rdbuf();
    return text.str();
  }

 private:
  /// Inside of one that is removed when the process ends: until then reports look lines up in the files.
  static std::filesystem::path new_folder() {
    struct Folder {
      std::string path = (std::filesystem::temp_directory_path() / "flash_kernels_XXXXXX").string();
      int inside = 0;
      Folder() {
        if (!mkdtemp(path.data())) throw std::runtime_error(path + " can't be made: " + std::strerror(errno));
      }
      ~Folder() {
        std::error_code ignored;
        std::filesystem::remove_all(path, ignored);
      }
    };
    static Folder folder;
    const std::filesystem::path path = folder.path / std::filesystem::path(std::to_string(folder.inside++));
    std::filesystem::create_directory(path);
    return path;
  }

  void* library_;
};

/// "tests/kernels/wrong.cu:17": the only line of a source file that ends in `text`.
inline std::string line_with(const std::string& file, const std::string& text) {
  std::ifstream source(std::filesystem::path(FLASH_SOURCE_DIR) / file);
  std::string found, line;
  for (int n = 1; std::getline(source, line); ++n) {
    if (!line.ends_with(text)) continue;
    if (!found.empty()) throw std::runtime_error(file + " has more than one line that ends in " + text);
    found = file + ":" + std::to_string(n);
  }
  if (found.empty()) throw std::runtime_error(file + " has no line that ends in " + text);
  return found;
}

/// All reports of a machine, one below the other.
inline std::string all_reports(const gpu::Machine& machine) {
  std::string text;
  for (const gpu::Report& report : machine.reports()) text += "[" + report.kind + "] " + report.text + "\n";
  return text;
}

/// Runs a test in a process of its own, since it may crash or hang; what it returns, or what became of it.
inline std::string in_child(const std::function<std::string()>& test, unsigned seconds = FLASH_SANITIZED ? 600 : 60) {
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("no pipe");
  const pid_t child = fork();
  if (child == 0) {
    for (const int signal : {SIGABRT, SIGSEGV, SIGFPE, SIGILL, SIGBUS}) std::signal(signal, SIG_DFL);
    alarm(seconds);
    std::string said;
    try {
      said = test();
    } catch (const std::exception& error) {
      said = std::string("threw: ") + error.what();
    }
    const bool written = write(ends[1], said.data(), said.size()) == static_cast<ssize_t>(said.size());
    _exit(written ? 0 : 1);
  }
  close(ends[1]);
  std::string said;
  char buffer[4096];
  for (ssize_t n; (n = read(ends[0], buffer, sizeof buffer)) > 0;) said.append(buffer, static_cast<std::size_t>(n));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFEXITED(status))
    return WEXITSTATUS(status) == 0 ? said : "ends with status " + std::to_string(WEXITSTATUS(status));
  return WTERMSIG(status) == SIGALRM ? "hangs" : std::string("crashes: ") + strsignal(WTERMSIG(status));
}

}  // namespace flash

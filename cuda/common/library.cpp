#include "cuda/common/library.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "stages/common/options.hpp"
// Last: it brings CUDA's words.
#include "cuda/common/module.hpp"

namespace flash::cuda {
namespace {

namespace fs = std::filesystem;

fs::path folder() {
  if (const char* given = std::getenv("FLASH_KERNELS"); given && *given) return given;
  std::error_code ignored;
  fs::path at = fs::read_symlink("/proc/self/exe", ignored);
  while (at.has_relative_path()) {
    at = at.parent_path();
    if (fs::exists(at / "kernels", ignored)) return at / "kernels";
  }
  return "kernels";
}

/// The symbol of kernels/`file`; null where there is no such file. It stays loaded to the program's end.
const void* find_symbol(const fs::path& file, const char* symbol) {
  const fs::path path = folder() / file;
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return nullptr;
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  const void* found = library ? dlsym(library, symbol) : nullptr;
  if (!found)
    throw Refused(fmt::format("kernels/{} was asked for, but it can't be loaded ({}); build again", file.string(),
                              library ? fmt::format("it has no {}", symbol) : dlerror()));
  return found;
}

}  // namespace

std::string why_no_virtual_gpu() {
  if (const char* given = std::getenv("FLASH_KERNELS"); given && *given)
    return fmt::format("FLASH_KERNELS names {}, where there is no folder vgpu with kernels", given);
  return "this build has no kernels for the virtual GPU, which takes Linux on x86-64 and g++ 12 or newer";
}

bool has_kernels(Backend backend) {
  std::error_code ignored;
  return fs::exists(folder() / name(backend), ignored);
}

const Module* find_module(Backend backend, std::string_view source) {
  std::string object(source);
  std::ranges::replace(object, '/', '_');
  const fs::path file = fs::path(name(backend)) / (object + ".so");
  const auto* module = static_cast<const Module*>(find_symbol(file, "flash_module"));
  if (module && module->name != source)
    throw Refused(fmt::format("kernels/{} was asked for, but it holds the kernels of {}; build again", file.string(),
                              module->name));
  return module;
}

const Cuda* find_cuda() { return static_cast<const Cuda*>(find_symbol("gpu/device.so", "flash_cuda")); }

}  // namespace flash::cuda

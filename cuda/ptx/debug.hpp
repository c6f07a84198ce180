// What a kernel tells the stepper. On a GPU these are nothing: not an instruction is added.
#pragma once

#include "cuda/ptx/target.hpp"

namespace flash::ptx {

/// A named place to stop at, such as a tile's number; one event a warp.
FLASH_PTX void mark([[maybe_unused]] const char* name, [[maybe_unused]] int value) {
#ifndef __CUDACC__
  gpu::mark(name, value);
#endif
}

/// Makes a thread's local array readable by name while the kernel is stopped.
template <class T>
FLASH_PTX void watch([[maybe_unused]] const char* name, [[maybe_unused]] T& local) {
#ifndef __CUDACC__
  gpu::watch(name, &local, sizeof(T));
#endif
}

/// Names a piece of shared memory in reports.
template <class T>
FLASH_PTX void name([[maybe_unused]] const char* text, [[maybe_unused]] const T& shared) {
#ifndef __CUDACC__
  gpu::name(text, &shared, sizeof(T));
#endif
}

}  // namespace flash::ptx

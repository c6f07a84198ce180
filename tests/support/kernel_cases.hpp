// Runs the kernels of tests/kernels/{right,wrong}.hpp on a machine.
#pragma once

#include <string>

#include "tests/kernels/right.hpp"
#include "tests/kernels/wrong.hpp"
#include "tests/support/vgpu.hpp"

namespace flash {

template <class T>
T* allocate(gpu::Machine& machine, const char* name, std::size_t count, gpu::Contents contents = gpu::Contents::given) {
  return static_cast<T*>(machine.allocate(name, count * sizeof(T), contents));
}

/// What is wrong with a run of a right kernel, or nothing.
inline std::string run(gpu::Machine& machine, const Right& kernel) {
  const Memory memory{allocate<float>(machine, "x", Memory::size),
                      allocate<float>(machine, "y", Memory::size, gpu::Contents::undefined),
                      allocate<unsigned>(machine, "words", Memory::size)};
  for (int i = 0; i < Memory::size; ++i) memory.x[i] = static_cast<float>(i % 13);
  bool right = false;
  machine.run([&] { right = kernel.run(memory); });
  return all_reports(machine) + (right ? "" : "wrong numbers");
}

/// Of a wrong kernel.
inline Tensors allocate_tensors(gpu::Machine& machine) {
  return {allocate<int>(machine, "A", 1024), allocate<int>(machine, "B", 1024),
          allocate<int>(machine, "U", 1024, gpu::Contents::undefined)};
}

}  // namespace flash

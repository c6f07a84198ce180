// What the kernels of tests are launched with.
#pragma once

#include "cuda/ptx/ptx.hpp"

namespace ptx = flash::ptx;

namespace {

template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t smem, Arguments... arguments) {
  ptx::launch("a kernel of the tests", kernel, grid, block, smem, nullptr, arguments...);
}

}  // namespace

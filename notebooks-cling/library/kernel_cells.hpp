// Kernels that cells compile.
#pragma once

#include <string>

namespace flash::cuda {
struct Module;
}

namespace flash::notebook {

/// A kernel by the name under which compile_kernel made it, or of the build: "03/forward". @throws Refused.
const cuda::Module& kernel_named(const std::string& name);

}  // namespace flash::notebook

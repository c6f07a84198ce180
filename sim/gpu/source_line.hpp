// The source line of an instruction of a kernel.
#pragma once

#include <string>
#include <vector>

#include "sim/gpu/instructions.hpp"
#include "sim/gpu/shadow.hpp"

namespace flash::gpu {

/// "cuda/03_online_softmax/forward.cu:77"; for code inlined there from a helper of the project
/// "cuda/03_online_softmax/forward.cu:77 (cuda/common/tile.hpp:31)". The wrappers of cuda/ptx are left out.
/// Asks binutils' addr2line, once for each instruction.
FLASH_GPU_API std::string where(Pc pc);

/// Looks many up at once, for where() to know.
FLASH_GPU_API void look_up(const std::vector<Pc>& places);

}  // namespace flash::gpu

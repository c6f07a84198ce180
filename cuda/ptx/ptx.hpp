// One function per PTX instruction, named after it, a file for each family. On a GPU it is that instruction; for the
// host compiler it is a call into the virtual GPU (sim/gpu), which executes and checks it.
#pragma once

#include "cuda/ptx/barrier.hpp"
#include "cuda/ptx/cp_async.hpp"
#include "cuda/ptx/debug.hpp"
#include "cuda/ptx/layout.hpp"
#include "cuda/ptx/launch.hpp"
#include "cuda/ptx/ldmatrix.hpp"
#include "cuda/ptx/math.hpp"
#include "cuda/ptx/mma.hpp"
#include "cuda/ptx/reduce.hpp"
#include "cuda/ptx/shared_memory.hpp"

// What a kernel file offers to the host: the one symbol of its shared object, whichever compiler made it.
#pragma once

#include "cuda/common/problem.hpp"
#include "cuda/ptx/launch.hpp"

namespace flash::cuda {

/// Rows and columns of a tile of S; 0 × 0: the kernels have no tiles.
struct TileShape {
  int Br, Bc;
};

/// One kernel file's shared object: what it names itself, takes and launches.
struct Module {
  const char* name;                ///< "03_online_softmax/forward"
  int arch;                        ///< that it is written for: 75 is sm_75
  const char* dtypes;              ///< of Q, K, V and O that it takes: "fp16 bf16"
  const char* tensors;             ///< of Problem that it reads and writes: "Q K V O O_acc l m"
  const char* options;             ///< that it takes, by their names on the command line
  /// For a problem that it takes, {0, 0} for others; where a CTA can have `smem` bytes of shared memory.
  TileShape (*tiles)(const Problem&, std::size_t smem);
  void (*launch)(const Problem&, ptx::Stream);  ///< queues its kernels. @throws std::runtime_error when it can't
};

}  // namespace flash::cuda

/// Defines the exported symbol.
#define FLASH_MODULE extern "C" __attribute__((visibility("default"))) const flash::cuda::Module flash_module

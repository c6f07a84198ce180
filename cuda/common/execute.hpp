// Runs a stage's kernels on given inputs: what stages/common/run.hpp does with its CPU programs.
#pragma once

#include <memory>
#include <vector>

#include "cuda/common/device.hpp"
#include "cuda/common/library.hpp"
#include "stages/common/run.hpp"

namespace flash::cuda {

class VirtualDevice;

/// A stage's kernels, and the device that runs them.
struct Kernels {
  const Stage* stage = nullptr;
  const Module* forward = nullptr;
  const Module* backward = nullptr;  ///< null: a forward run
  std::shared_ptr<Device> device;
  VirtualDevice* virtual_device = nullptr;  ///< the device, where it is the virtual GPU
};

/// The modules of a run. @throws Refused where the stage has no such program or this build no kernels for it.
Kernels find_kernels(const Stage& stage, Backend backend, bool backward);

/// Forward, and backward where it is asked.
std::vector<const Module*> modules(const Kernels& kernels);

/// That kernels are written for: 75 is sm_75.
int arch(const Module& module);
int arch(const Kernels& kernels);

/// Of Q, K, V and O that the module's kernels take.
std::vector<Format> dtypes(const Module& module);

/// d that the module's kernels take.
std::vector<int> head_sizes(const Module& module);

/// Options that the module's kernels take, by their names on the command line.
std::vector<std::string> options_taken(const Module& module);

/// Tiles of S; nothing where the kernels have none. With tiles they move what the CPU program moves with the same
/// tiles; without, each thread fetches its operands by itself.
std::optional<Blocks> tiles(const Module& module, const Device& device, const Inputs& inputs, const Options& options);

/// Throws Refused for a dtype, head sizes, options or tiles that the kernels don't take; looks at no array.
void require_taken(const Kernels& kernels, const Inputs& inputs, const Options& options);

/// Throws Refused where the tensors don't fit in the device's memory, with the bytes needed and free.
void require_room(const Kernels& kernels, const Shape& shape, Index splits, bool alibi);

/// Throws Refused for all that execute() refuses before it runs anything, but for values that are not finite.
void require_runnable(const Kernels& kernels, const Inputs& inputs, const Options& options);

/// Outputs, and for each pass its tiles and, by the virtual GPU, a ledger without source lines. `seconds`: in the
/// kernels. Where the virtual GPU reports something the run ends with that pass and there are no outputs.
/// @throws Refused as stages/common/run.hpp does and as above; std::runtime_error where the kernels can't be launched.
RunResult execute(const Kernels& kernels, const Inputs& inputs, const Options& options, bool allow_nonfinite);

}  // namespace flash::cuda

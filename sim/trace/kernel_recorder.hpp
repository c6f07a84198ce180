// Records kernels on the virtual GPU, slice by slice of its timeline, with what changes in shared memory, in registers
// and in global memory.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "sim/gpu/machine.hpp"
#include "sim/trace/trace.hpp"

namespace flash::trace {

/// A tensor in the machine's global memory.
struct DeviceTensor {
  sim::TensorInfo info;
  const void* memory = nullptr;
};

class KernelRecorder {
 public:
  /// The machine needs Config::timeline. `tensors` stay where they are until record() is back.
  KernelRecorder(gpu::Machine& machine, std::vector<DeviceTensor> tensors, Contents inputs);
  /// Runs what the machine was given to start, to its end.
  void record();
  void finish(Json& document) { recording_.finish(document); }

 private:
  /// An array that was seen in shared memory or in a warp's registers: a tile of the trace.
  struct Seen {
    int tile;
    gpu::Matrix last;
  };
  using Key = std::pair<std::uint32_t, std::string>;  ///< CTA, and its array (warp and name for registers)

  void look(const gpu::Event& event);
  void look_at_shared(std::uint32_t cta, Json& slice);
  void look_at_registers(std::uint32_t cta, int warp, Json& slice);
  void look_at_tensors(Json& slice);
  void see(const Key& key, const gpu::Matrix& now, const Json& take, Json& slice);
  void keep(Json& changes, Json& slice);
  Json& last_slice_of(const char* name, std::size_t from);
  Json step(std::size_t slice);
  Json lane(std::uint32_t cta, int warp);
  void add_steps();
  void launched(const std::string& kernel);

  gpu::Machine& machine_;
  std::vector<DeviceTensor> tensors_;
  Recording recording_;
  std::vector<Json> found_;                                    ///< what changed, for each slice of the timeline
  std::vector<std::pair<std::size_t, std::string>> launches_;  ///< first slice, kernel
  std::vector<std::vector<std::byte>> contents_;               ///< of each tensor at the last look
  std::map<std::uint32_t, std::vector<std::byte>> shared_;     ///< of each CTA at the last look
  std::map<std::uint32_t, std::size_t> names_;                 ///< how many arrays it had named
  std::map<Key, Seen> seen_;
  std::map<std::string, gpu::TensorBytes> bytes_;
  std::vector<int> gone_;  ///< tiles of the kernel before
  int next_tile_ = 0;
  std::size_t numbers_ = 0;  ///< that all changes hold
};

}  // namespace flash::trace

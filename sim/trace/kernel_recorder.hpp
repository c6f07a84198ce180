// Records kernels on the virtual GPU, slice by slice of its timeline, with what changes in shared memory, in registers
// and in global memory.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "sim/gpu/machine.hpp"
#include "sim/gpu/timeline.hpp"
#include "sim/trace/trace.hpp"

namespace flash::trace {

/// A tensor in the machine's global memory.
struct DeviceTensor {
  sim::TensorInfo info;
  const std::byte* memory = nullptr;
  std::size_t bytes() const { return static_cast<std::size_t>(info.elements() * bytes_per_element(info.format)); }
  bool holds(const std::byte* address) const { return address >= memory && address < memory + bytes(); }
};

class KernelRecorder {
 public:
  /// The machine needs Config::timeline and Config::accesses. `tensors` stay where they are until record() is back.
  KernelRecorder(gpu::Machine& machine, std::vector<DeviceTensor> tensors, const Contents& inputs);
  /// Runs what the machine was given to start, to its end.
  void record();
  void finish(Json& document) { recording_.finish(document); }

 private:
  /// An array that was seen in shared memory or in a warp's registers: a tile of the trace.
  struct Array {
    int tile = 0;
    gpu::Matrix last;  ///< as the trace has it
  };
  using Key = std::pair<std::uint32_t, std::string>;  ///< CTA, and its array (warp and name for registers)
  /// Is the byte at this offset of shared memory, or of a tensor, to be looked at? None: all are.
  using Bytes = std::function<bool(std::size_t)>;

  void launched(const std::string& kernel);
  void look(const gpu::Event& event);
  void look_at_accesses();
  void look_at_shared(std::uint32_t cta, const Bytes& looked_at, Json& slice);
  void look_at_registers(std::uint32_t cta, int warp);
  void look_at_tensor(std::size_t tensor, const Bytes& looked_at, Json& slice);
  Array& array(const Key& key, const gpu::Matrix& now, Json take, Json& slice);
  void see(Array& array, const gpu::Matrix& now, const Bytes& looked_at, Json& slice);
  void keep(Json changes, Json& slice);
  void count(const gpu::LaneAccess& access, Json& slice);
  Json lane(std::uint32_t cta, int warp);
  Json step(std::size_t slice);
  void add_steps();

  gpu::Machine& machine_;
  std::vector<DeviceTensor> tensors_;
  Recording recording_;
  std::vector<Json> found_;                                    ///< what changed in each slice of the timeline
  std::vector<std::pair<std::size_t, std::string>> launches_;  ///< first slice, kernel
  std::vector<std::vector<std::byte>> contents_;               ///< of each tensor, as the trace has it
  std::map<std::uint32_t, std::vector<std::byte>> shared_;     ///< of each CTA, likewise
  std::map<std::uint32_t, std::size_t> names_;                 ///< how many arrays each CTA had named
  std::map<Key, Array> arrays_;
  std::vector<int> gone_;     ///< tiles of the kernel before
  std::size_t accesses_ = 0;  ///< of the timeline that were looked at
  int next_tile_ = 0;
  std::size_t numbers_ = 0;  ///< that all changes hold
};

}  // namespace flash::trace

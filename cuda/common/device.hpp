// Where kernels run: a GPU (cuda_device.cu) or the virtual one (virtual_device.hpp).
#pragma once

#include <cstddef>
#include <string>

namespace flash::cuda {

struct Module;
struct Problem;

/// Where kernels run and their arrays lie: a GPU or the virtual one.
class Device {
 public:
  virtual ~Device() = default;

  virtual std::string name() const = 0;        ///< "NVIDIA H200 (sm_90)"
  virtual std::size_t free_bytes() const = 0;  ///< that allocate() may still give
  virtual std::size_t smem_per_cta() const = 0;  ///< shared memory that one CTA can have [bytes]

  /// Memory until free_all(). It holds a copy of `contents`; where that is null, bytes 0xFF, so that reading what
  /// nobody wrote shows. @throws std::runtime_error where there is not as much.
  virtual void* allocate(const std::string& tensor, std::size_t bytes, const void* contents) = 0;
  virtual void copy_out(void* to, const void* from, std::size_t bytes) = 0;
  /// An output is about to be read: a device that can tell reports what nobody wrote.
  virtual void require_written(const void* /*memory*/, std::size_t /*bytes*/) {}
  virtual void free_all() = 0;

  /// Launches the module's kernels `times` times, one after the other, and waits for their end. @return seconds of them
  /// all: on a GPU between two events in its stream. @throws std::runtime_error where they can't be launched, or
  /// failed.
  virtual double run(const Module& module, const Problem& problem, int times) = 0;
};

}  // namespace flash::cuda

// One problem in a device's memory.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "cuda/common/device.hpp"
#include "stages/common/inputs.hpp"

namespace flash::cuda {

/// Sizes and options as kernels take them; of the tensors only `slopes` points anywhere: to the inputs'.
Problem problem_of(const Inputs& inputs, const Options& options);

/// fp16 or bf16. Releases what it allocated when it goes.
class OnDevice {
 public:
  /// Q, K, V, dO and slopes hold the inputs, everything else is undefined. `names`: the tensors that are wanted.
  OnDevice(Device& device, const Inputs& inputs, const Options& options, const std::set<std::string>& names);
  ~OnDevice();
  OnDevice(const OnDevice&) = delete;

  const Problem& problem() const { return *problem_; }

  /// Where a tensor lies in the device's memory; null where it was not asked for.
  const void* find(const std::string& name) const;

  /// A tensor's values on the host, in its own format: Eigen::half, Eigen::bfloat16 or float.
  template <class Element>
  std::vector<Element> read(const std::string& name) const;

 private:
  struct Placed {
    std::string name;
    const void* memory;
    std::size_t bytes;
  };
  Device& device_;
  std::unique_ptr<Problem> problem_;
  std::vector<Placed> placed_;
};

}  // namespace flash::cuda

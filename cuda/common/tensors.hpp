// The tensors of a problem in global memory: what the host allocates for Problem's pointers.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "sim/memory/hbm.hpp"
#include "stages/common/inputs.hpp"

namespace flash::cuda {

struct Module;
struct Problem;

/// One of Problem's pointers: its format, shape and role, as the CPU's ledger knows the tensor of this name.
struct Tensor {
  sim::TensorInfo info;
  void (*point)(Problem&, void*);
  std::size_t bytes() const;
};

/// All that a problem of this shape may have.
std::vector<Tensor> tensors(const Shape& shape);

/// Names of those that the modules read and write; slopes only where they are given.
std::set<std::string> tensors_of(const std::vector<const Module*>& modules, bool alibi);

/// Memory that these take [bytes].
double device_bytes(const Shape& shape, const std::set<std::string>& names);

}  // namespace flash::cuda

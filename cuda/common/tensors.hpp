// The tensors of a problem in global memory: what the host allocates for Problem's pointers.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "sim/memory/hbm.hpp"
#include "sim/memory/range.hpp"
#include "stages/common/inputs.hpp"

namespace flash::cuda {

struct Module;
struct Problem;

/// One of Problem's pointers: its format, shape and role, as the CPU's ledger knows the tensor of this name.
struct Tensor {
  sim::TensorInfo info;
  void (*point)(Problem&, void*);
  Index padded_rows = info.rows;  ///< that memory is taken for
  std::size_t bytes() const;
};

/// All that a problem of this shape may have. `dtype`: fp16 or bf16.
std::vector<Tensor> tensors(const Shape& shape, Format dtype = Format::fp16, Index splits = 1);

/// Names of those that the modules read and write; slopes only where they are given.
std::set<std::string> tensors_of(const std::vector<const Module*>& modules, bool alibi);

/// Memory that these take [bytes].
double device_bytes(const Shape& shape, const std::set<std::string>& names, Index splits = 1);

}  // namespace flash::cuda

// Is a problem countable in 64 bits, and does it fit in this machine's memory? Asked before anything is allocated.
#pragma once

#include "stages/common/registry.hpp"

namespace flash::app {

/// What a run keeps, beside its shape.
struct MemoryUse {
  Format dtype = Format::fp32;
  bool backward = false, count_only = false, check = false;
  bool from_files = false;  ///< arrays exist even in count-only mode
  Index mask_elements = 0;
  Index Br = 0, Bc = 0;  ///< tiles; 0: whole matrices
  bool kernels = false;  ///< they run on a device, whose memory is looked at elsewhere
};

/// Memory that the kernel and the control group leave to a new process [bytes]; 0 where neither says.
double available_bytes();

/// Throws Refused where a size is negative or so large that operations and bytes leave 64 bits, for heads = 0 or d = 0,
/// and for query heads that don't share the KV heads evenly.
void require_shape(const Shape& shape);

/// Throws Refused with the bytes needed and there.
void require_memory(const Stage& stage, const Shape& shape, const MemoryUse& use);

}  // namespace flash::app

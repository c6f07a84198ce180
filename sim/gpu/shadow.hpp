// Shadow memory: for each four bytes of shared or global memory, who touched them last.
#pragma once

#include <cstddef>
#include <vector>

#include "sim/gpu/happens_before.hpp"

namespace flash::gpu {

/// An instruction of a kernel, by its address in memory.
using Pc = const void*;

/// An access as the shadow is asked about it. Bytes are counted from the shadow's begin.
struct Touch {
  std::size_t begin, bytes;
  Epoch epoch;  ///< without its `bytes`, which each cell has of its own
};

class Shadow {
 public:
  /// Covers `bytes` bytes. Large ones take memory only where they are touched. `initialised`: they hold something.
  void cover(std::size_t bytes, bool initialised);
  ~Shadow();
  Shadow() = default;
  Shadow(const Shadow&) = delete;

  /// An earlier access that conflicts with this one and that `knows` does not know of; otherwise none, and the access
  /// is recorded. Accesses of CTAs before `first_cta` belong to earlier launches and conflict with nothing.
  Epoch conflict(const Touch& touch, const Clock& knows, std::uint32_t first_cta);

  /// Were all these bytes written? `padding`: all but a struct's padding, as far as can be told: some of any eight.
  bool initialised(std::size_t begin, std::size_t bytes, bool padding = false) const;
  /// The host writes them.
  void set_initialised(std::size_t begin, std::size_t bytes);

 private:
  template <class Function>
  void for_cells(std::size_t begin, std::size_t bytes, Function&& function) const;
  Epoch conflict_in(const Cell& cell, const Epoch& now, std::uint32_t bytes, const Clock& knows,
                    std::uint32_t first_cta) const;
  void record(Cell& cell, const Epoch& now, std::uint32_t bytes, const Clock& knows, std::uint32_t first_cta);
  void keep(Cell& cell, const Epoch& epoch);

  Cell* cells_ = nullptr;
  std::size_t count_ = 0;
  bool all_initialised_ = false;
  std::vector<std::vector<Epoch>> lists_{1};  ///< 0 is no list
  std::vector<std::uint32_t> unused_lists_;
};

}  // namespace flash::gpu

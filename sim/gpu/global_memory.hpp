// Global memory: tensors far apart in one reserved range of addresses, so that a wrong index is seen wherever it leads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim/gpu/shadow.hpp"

namespace flash::gpu {

struct Allocation {
  std::string name;
  std::byte* data = nullptr;
  std::size_t bytes = 0;
  Shadow shadow;
  std::uint64_t read = 0, written = 0, rmw = 0;  ///< [bytes]
};

class GlobalMemory {
 public:
  GlobalMemory() = default;
  ~GlobalMemory();
  GlobalMemory(const GlobalMemory&) = delete;

  /// 4096-byte aligned; `initialised`: zeros that may be read, else 0xFF that may not be before they are written.
  /// @throws std::runtime_error where there is no room.
  std::byte* allocate(const std::string& name, std::size_t bytes, bool initialised);
  void free_all();

  /// Is the address in the reserved range, allocated or not?
  bool contains(const void* p) const {
    return range_ && static_cast<std::size_t>(static_cast<const std::byte*>(p) - range_) < reserved;
  }
  /// The allocation that holds the address, or none.
  Allocation* find(const void* p);
  /// The allocation nearest to an address that is in none, with the distance behind its end (or, negative, before its
  /// begin) [bytes].
  const Allocation* nearest(const void* p, std::ptrdiff_t& distance) const;

  const std::vector<std::unique_ptr<Allocation>>& allocations() const { return allocations_; }

 private:
  static constexpr std::size_t reserved = std::size_t(1) << 41;  // of addresses, not of memory
  static constexpr std::size_t guard = std::size_t(20) << 30;    // a 32-bit index that overflowed stays within it

  void reserve();

  std::byte* range_ = nullptr;
  std::size_t used_ = 0;
  std::vector<std::unique_ptr<Allocation>> allocations_;
  Allocation* last_ = nullptr;
};

}  // namespace flash::gpu

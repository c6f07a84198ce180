#include "sim/gpu/global_memory.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>

namespace flash::gpu {

GlobalMemory::~GlobalMemory() { free_all(); }

void GlobalMemory::reserve() {
  void* range = mmap(nullptr, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) throw std::bad_alloc();
  range_ = static_cast<std::byte*>(range);
  used_ = guard;
}

std::byte* GlobalMemory::allocate(const std::string& name, std::size_t bytes, bool initialised) {
  if (!range_) reserve();
  constexpr std::size_t page = 4096;
  const std::size_t pages = (bytes + page - 1) / page * page + page;
  std::byte* data = range_ + used_;
  if (bytes > reserved || used_ + pages + guard > reserved || mprotect(data, pages, PROT_READ | PROT_WRITE) != 0)
    throw std::runtime_error(
        fmt::format("{} bytes were asked for {}, but the virtual GPU's {} tensors leave no room for "
                    "them; take a smaller problem",
                    bytes, name, allocations_.size()));
  if (!initialised) std::memset(data, 0xff, bytes);
  used_ += pages + guard;

  auto& allocation = allocations_.emplace_back(std::make_unique<Allocation>());
  allocation->name = name;
  allocation->data = data;
  allocation->bytes = bytes;
  allocation->shadow.cover(bytes, initialised);
  return data;
}

void GlobalMemory::free_all() {
  if (range_) munmap(range_, reserved);
  range_ = nullptr;
  last_ = nullptr;
  allocations_.clear();
}

Allocation* GlobalMemory::find(const void* p) {
  const auto inside = [&](const Allocation& a) {
    return static_cast<std::size_t>(static_cast<const std::byte*>(p) - a.data) < a.bytes;
  };
  if (last_ && inside(*last_)) return last_;
  for (const auto& allocation : allocations_)
    if (inside(*allocation)) return last_ = allocation.get();
  return nullptr;
}

const Allocation* GlobalMemory::nearest(const void* p, std::ptrdiff_t& distance) const {
  const Allocation* best = nullptr;
  const auto* at = static_cast<const std::byte*>(p);
  for (const auto& a : allocations_) {
    const std::ptrdiff_t d = at < a->data ? at - a->data : at - (a->data + a->bytes);
    if (!best || std::abs(d) < std::abs(distance)) {
      best = a.get();
      distance = d;
    }
  }
  return best;
}

}  // namespace flash::gpu

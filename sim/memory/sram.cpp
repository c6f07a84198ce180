#include "sim/memory/sram.hpp"

#include <fmt/format.h>

#include <new>

namespace flash::sim {

namespace {

constexpr std::align_val_t alignment{EIGEN_MAX_ALIGN_BYTES};

std::string map_of(const std::vector<Holder>& holders) {
  std::string text;
  for (const Holder& h : holders)
    text += fmt::format("{}{} [{} x {}] {} bytes", text.empty() ? "" : ", ", h.name, h.rows, h.cols, h.bytes);
  return text.empty() ? "nothing" : text;
}

}  // namespace

void Sram::Free::operator()(void* p) const { ::operator delete(p, alignment); }

int Sram::take(const char* name, Index rows, Index cols, Format format) {
  const Index bytes = rows * cols * bytes_per_element(format);
  if (budget_ == Budget::strict && used_ + bytes > capacity_) {
    throw CapacityError(fmt::format("tile {} [{} x {}] of {} bytes was asked of an SRAM of {} bytes that already holds "
                                    "{}; take smaller tiles or a larger SRAM, or the paper budget",
                                    name, rows, cols, bytes, capacity_, map_of(holders())));
  }
  if (free_.empty()) {
    free_.push_back(static_cast<int>(slots_.size()));
    slots_.emplace_back();
  }
  const int slot = free_.back();
  free_.pop_back();
  Slot& s = slots_[slot];
  s.name = name;
  s.rows = rows;
  s.cols = cols;
  s.bytes = bytes;
  used_ += bytes;
  if (used_ > peak.bytes) {
    peak.bytes = used_;
    peak.worker = worker;
    peak.holders = holders();
  }
  return slot;
}

void* Sram::memory(int slot, std::size_t bytes) {
  if (!with_storage_) return nullptr;
  Slot& s = slots_[slot];
  if (s.memory_bytes < bytes) {
    s.memory.reset(::operator new(bytes, alignment));
    s.memory_bytes = bytes;
  }
  return s.memory.get();
}

std::vector<Holder> Sram::holders() const {
  std::vector<Holder> held;
  for (const Slot& s : slots_)
    if (s.name) held.push_back({s.name, s.rows, s.cols, s.bytes});
  return held;
}

}  // namespace flash::sim

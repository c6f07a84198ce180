// The SRAM of one worker: who holds how much of it, and the capacity check.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "sim/memory/ledger.hpp"

namespace flash::sim {

/// `paper` takes Algorithm 1's block sizes, which for M < 8d² overflow M once S and the statistics count: it never
/// throws, and the peak is reported. `strict` counts every tile and throws CapacityError.
enum class Budget { paper, strict };

/// A tile did not fit under the strict budget; the message lists who holds what.
struct CapacityError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The room of one worker: tiles take it and give it back.
class Sram {
 public:
  Sram(Index capacity_bytes, Budget budget, bool with_storage)
      : capacity_(capacity_bytes), budget_(budget), with_storage_(with_storage) {}

  /// A slot for rows × cols elements. @throws CapacityError under Budget::strict.
  int take(const char* name, Index rows, Index cols, Format format);
  void give_back(int slot) {
    used_ -= slots_[slot].bytes;
    slots_[slot].name = nullptr;
    free_.push_back(slot);
  }

  Index held_bytes() const { return used_; }

  /// 64-byte aligned memory of the slot for `bytes` bytes of host values; null in count-only mode.
  void* memory(int slot, std::size_t bytes);

  SramPeak peak;
  Index worker = 0;  ///< whose tiles these are at the moment

 private:
  struct Free {
    void operator()(void* p) const;
  };
  struct Slot {
    const char* name = nullptr;  // null: free
    Index rows = 0, cols = 0, bytes = 0;
    std::unique_ptr<void, Free> memory;
    std::size_t memory_bytes = 0;
  };
  std::vector<Holder> holders() const;

  Index capacity_;
  Budget budget_;
  bool with_storage_;
  Index used_ = 0;
  std::vector<Slot> slots_;
  std::vector<int> free_;
};

}  // namespace flash::sim

#include "sim/gpu/shadow.hpp"

#include <sys/mman.h>

#include <new>

namespace flash::gpu {
namespace {

bool knows_of(const Clock& knows, std::uint32_t cta, const Epoch& then) {
  if (then.cta == cta) return knows.own.of(then.agent) >= then.tick;
  const auto other = knows.others.find(then.cta);
  return other != knows.others.end() && other->second.of(then.agent) >= then.tick;
}

bool conflicts(const Epoch& now, std::uint32_t bytes, const Epoch& then) {
  return (bytes & then.bytes) != 0 && (now.write || then.write) && !(now.atomic && then.atomic);
}

}  // namespace

void Shadow::cover(std::size_t bytes, bool initialised) {
  count_ = bytes / 4 + 1;
  void* memory =
      mmap(nullptr, count_ * sizeof(Cell), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  cells_ = static_cast<Cell*>(memory);
  all_initialised_ = initialised;
}

Shadow::~Shadow() {
  if (cells_) munmap(cells_, count_ * sizeof(Cell));
}

/// function(cell, which of its four bytes) for each cell of [begin, begin + bytes).
template <class Function>
void Shadow::for_cells(std::size_t begin, std::size_t bytes, Function&& function) const {
  const std::size_t end = begin + bytes;
  for (std::size_t at = begin / 4 * 4; at < end; at += 4) {
    const std::uint32_t before = at < begin ? begin - at : 0, behind = at + 4 > end ? at + 4 - end : 0;
    function(cells_[at / 4], (15u >> behind) & (15u << before));
  }
}

Epoch Shadow::conflict(const Touch& touch, const Clock& knows, std::uint32_t first_cta) {
  Epoch found;
  for_cells(touch.begin, touch.bytes, [&](Cell& cell, std::uint32_t bytes) {
    if (!found) found = conflict_in(cell, touch.epoch, bytes, knows, first_cta);
    if (!found) record(cell, touch.epoch, bytes, knows, first_cta);
  });
  return found;
}

Epoch Shadow::conflict_in(const Cell& cell, const Epoch& now, std::uint32_t bytes, const Clock& knows,
                          std::uint32_t first_cta) const {
  const auto bad = [&](const Epoch& then) {
    return then && conflicts(now, bytes, then) && then.cta >= first_cta && !knows_of(knows, now.cta, then);
  };
  if (bad(cell.write)) return cell.write;
  if (bad(cell.read)) return cell.read;
  if (cell.more)
    for (const Epoch& then : lists_[cell.more])
      if (bad(then)) return then;
  return {};
}

/// An epoch that the new one is ordered after, on the same bytes, need not be kept: what comes after the new one comes
/// after both. A read does not stand in for a write, though.
void Shadow::record(Cell& cell, const Epoch& now, std::uint32_t bytes, const Clock& knows, std::uint32_t first_cta) {
  const auto overtaken = [&](const Epoch& then) {
    if (!then || then.cta < first_cta) return true;
    // An atomic stands in for other atomics alone: it does not conflict with those that come later.
    const bool stands_in = (then.bytes & ~bytes) == 0 && (now.write || !then.write) && (!now.atomic || then.atomic);
    return stands_in && knows_of(knows, now.cta, then);
  };
  if (now.write) cell.written |= bytes;
  Epoch& slot = now.write ? cell.write : cell.read;
  Epoch& other = now.write ? cell.read : cell.write;
  const Epoch left = overtaken(slot) ? Epoch{} : slot;
  slot = now;
  slot.bytes = bytes;
  if (overtaken(other)) other = {};
  if (cell.more) {
    auto& list = lists_[cell.more];
    std::erase_if(list, overtaken);
    if (list.empty()) {
      unused_lists_.push_back(cell.more);
      cell.more = 0;
    }
  }
  if (left) keep(cell, left);
}

/// Of readers and atomics in other CTAs a few are kept: who writes without knowing of one rarely knows of the others.
void Shadow::keep(Cell& cell, const Epoch& epoch) {
  constexpr std::ptrdiff_t most_of_other_ctas = 4;
  if (!cell.more) {
    if (unused_lists_.empty()) {
      unused_lists_.push_back(static_cast<std::uint32_t>(lists_.size()));
      lists_.emplace_back();
    }
    cell.more = unused_lists_.back();
    unused_lists_.pop_back();
  }
  auto& list = lists_[cell.more];
  const auto far_away = [&](const Epoch& e) { return (!e.write || e.atomic) && e.cta != epoch.cta; };
  if (std::ranges::count_if(list, far_away) > most_of_other_ctas) list.erase(std::ranges::find_if(list, far_away));
  list.push_back(epoch);
}

bool Shadow::initialised(std::size_t begin, std::size_t bytes, bool padding) const {
  if (all_initialised_) return true;
  bool all = true;
  if (!padding) {
    for_cells(begin, bytes, [&](const Cell& cell, std::uint32_t of) { all = all && (of & ~cell.written) == 0; });
    return all;
  }
  for (std::size_t at = begin; at < begin + bytes; at = at / 8 * 8 + 8) {
    bool some = false;
    for_cells(at, std::min(at / 8 * 8 + 8, begin + bytes) - at,
              [&](const Cell& cell, std::uint32_t of) { some = some || (of & cell.written) != 0; });
    all = all && some;
  }
  return all;
}

void Shadow::set_initialised(std::size_t begin, std::size_t bytes) {
  for_cells(begin, bytes, [](Cell& cell, std::uint32_t of) { cell.written |= of; });
}

}  // namespace flash::gpu

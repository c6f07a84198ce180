#include "sim/gpu/shadow.hpp"

#include <sys/mman.h>

#include <new>

namespace flash::gpu {
namespace {

bool knows_of(const Clock& knows, const Epoch& now, const Epoch& then) {
  if (then.cta == now.cta) return knows.own.of(then.agent) >= then.tick;
  const auto other = knows.others.find(then.cta);
  return other != knows.others.end() && other->second.of(then.agent) >= then.tick;
}

bool is_before(const Clock& knows, const Epoch& now, const Epoch& then, std::uint32_t first_cta) {
  return !then || then.cta < first_cta || knows_of(knows, now, then);
}

bool conflicts(const Epoch& now, const Epoch& then) {
  return (now.bytes & then.bytes) != 0 && (now.write || then.write) && !(now.atomic && then.atomic);
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

Epoch Shadow::conflict(const Touch& touch, const Clock& knows, std::uint32_t first_cta) {
  const std::size_t end = touch.begin + touch.bytes;
  Epoch now = touch.epoch;
  for (std::size_t cell = touch.begin / 4; cell * 4 < end; ++cell) {
    const std::size_t from = std::max(touch.begin, cell * 4) - cell * 4, to = std::min(end, cell * 4 + 4) - cell * 4;
    now.bytes = (1u << to) - (1u << from);
    if (const Epoch then = conflict_in(cells_[cell], now, knows, first_cta)) return then;
    record(cells_[cell], now, knows, first_cta);
  }
  return {};
}

Epoch Shadow::conflict_in(const Cell& cell, const Epoch& now, const Clock& knows, std::uint32_t first_cta) const {
  const auto bad = [&](const Epoch& then) {
    return then && conflicts(now, then) && !is_before(knows, now, then, first_cta);
  };
  if (bad(cell.write)) return cell.write;
  if (bad(cell.read)) return cell.read;
  for (const Epoch& then : lists_[cell.more])
    if (bad(then)) return then;
  return {};
}

/// An epoch that the new one is ordered after, on the same bytes, need not be kept: what comes after the new one comes
/// after both. A read does not stand in for a write, though. Atomics on one location are ordered among themselves.
void Shadow::record(Cell& cell, const Epoch& now, const Clock& knows, std::uint32_t first_cta) {
  const auto overtaken = [&](const Epoch& then) {
    if (!then || then.cta < first_cta) return true;
    const bool stands_in = (then.bytes & ~now.bytes) == 0 && (now.write || !then.write);
    // An atomic stands in for other atomics alone: it does not conflict with those that come later.
    return stands_in && (now.atomic ? then.atomic != 0 : knows_of(knows, now, then));
  };
  if (now.write) cell.written |= now.bytes;
  Epoch& slot = now.write ? cell.write : cell.read;
  Epoch& other = now.write ? cell.read : cell.write;
  const Epoch left = overtaken(slot) ? Epoch{} : slot;
  slot = now;
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

/// Of readers in other CTAs a few are kept: who writes without knowing of one rarely knows of the others.
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
  const auto far_reader = [&](const Epoch& e) { return !e.write && e.cta != epoch.cta; };
  if (std::ranges::count_if(list, far_reader) > most_of_other_ctas) list.erase(std::ranges::find_if(list, far_reader));
  list.push_back(epoch);
}

bool Shadow::initialised(std::size_t begin, std::size_t bytes) const {
  if (all_initialised_) return true;
  for (std::size_t at = begin; at < begin + bytes; ++at)
    if (!(cells_[at / 4].written >> at % 4 & 1)) return false;
  return true;
}

void Shadow::set_initialised(std::size_t begin, std::size_t bytes) {
  for (std::size_t at = begin; at < begin + bytes; ++at) cells_[at / 4].written |= 1u << at % 4;
}

}  // namespace flash::gpu

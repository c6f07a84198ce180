// Warp-wide calls that compare or add up values, and what a warp says about itself.
#include <bit>
#include <ctime>

#include "sim/gpu/parts.hpp"

namespace flash::gpu {
namespace {

struct Operand64 {
  std::uint64_t value;
  std::uint32_t result;
};

Operand64& operand_of(const Thread& t) { return *static_cast<Operand64*>(t.operands); }

std::uint32_t combined(Reduction kind, std::uint32_t x, std::uint32_t y, bool is_signed) {
  const auto a = static_cast<std::int32_t>(x), b = static_cast<std::int32_t>(y);
  switch (kind) {
    case Reduction::add: return x + y;
    case Reduction::min: return is_signed ? static_cast<std::uint32_t>(std::min(a, b)) : std::min(x, y);
    case Reduction::max: return is_signed ? static_cast<std::uint32_t>(std::max(a, b)) : std::max(x, y);
    case Reduction::bit_and: return x & y;
    case Reduction::bit_or: return x | y;
    case Reduction::bit_xor: return x ^ y;
  }
  return x;
}

/// result(warp, those that take part) is made by one lane, for all that come here together.
template <class Result>
std::uint64_t together(const char* name, Pc pc, Result&& result) {
  Operand64 mine{};
  current->operands = &mine;
  if (let_mates_run(name, pc)) {
    Warp& warp = *current->warp;
    std::uint32_t lanes = 1u << current->lane;
    for (const Thread* lane : warp.lanes)
      if (lane && lane->wait == Wait::mates && lane->pc == pc) lanes |= 1u << lane->lane;
    const std::uint64_t value = result(warp, lanes);
    for_lanes(warp, lanes, [&](Thread& t) { operand_of(t).value = value; });
    wake_mates(pc);
  }
  return mine.value;
}

}  // namespace

std::uint32_t match(Match kind, std::uint32_t mask, std::uint64_t value, std::size_t bytes) {
  const Pc pc = __builtin_return_address(0);
  constexpr const char* names[2][2] = {{"match.any.sync.b32", "match.any.sync.b64"},
                                       {"match.all.sync.b32", "match.all.sync.b64"}};
  const char* name = names[static_cast<int>(kind)][bytes == 8];
  Operand64 mine{value, 0};
  if (meet(name, mask, &mine, pc)) {
    Warp& warp = *current->warp;
    const std::uint32_t taking_part = mask & warp.present;
    look_at_log(warp);
    for_lanes(warp, taking_part, [&](Thread& t) {
      std::uint32_t equal = 0;
      for_lanes(warp, taking_part, [&](const Thread& other) {
        equal |= static_cast<std::uint32_t>(operand_of(other).value == operand_of(t).value) << other.lane;
      });
      operand_of(t).result = kind == Match::any || equal == taking_part ? equal : 0;
    });
    count_instruction("match.sync");
    meeting_done(mask);
    event(at_instruction, name, pc, 0, cost::vote);
  }
  return mine.result;
}

std::uint32_t reduce(Reduction kind, std::uint32_t mask, std::uint32_t value, bool is_signed) {
  const Pc pc = __builtin_return_address(0);
  constexpr const char* names[] = {"redux.sync.add", "redux.sync.min", "redux.sync.max",
                                   "redux.sync.and", "redux.sync.or",  "redux.sync.xor"};
  const char* name = names[static_cast<int>(kind)];
  require_arch(80, name, pc);
  Operand64 mine{value, 0};
  if (meet(name, mask, &mine, pc)) {
    Warp& warp = *current->warp;
    const std::uint32_t taking_part = mask & warp.present, first = taking_part & -taking_part;
    look_at_log(warp);
    auto all = static_cast<std::uint32_t>(operand_of(*warp.lanes[std::countr_zero(first)]).value);
    for_lanes(warp, taking_part & ~first, [&](const Thread& t) {
      all = combined(kind, all, static_cast<std::uint32_t>(operand_of(t).value), is_signed);
    });
    for_lanes(warp, taking_part, [&](Thread& t) { operand_of(t).result = all; });
    count_instruction("redux.sync");
    meeting_done(mask);
    event(at_instruction, name, pc, 0, cost::vote);
  }
  return mine.result;
}

std::uint32_t active_mask() {
  return static_cast<std::uint32_t>(
      together("activemask", __builtin_return_address(0), [](Warp&, std::uint32_t lanes) { return lanes; }));
}

std::int64_t clock_cycles() {
  if (!current) return std::clock();
  const Pc pc = __builtin_return_address(0);
  // Each look takes its time, so that a loop may wait for the clock.
  return static_cast<std::int64_t>(together("clock", pc, [pc](Warp& warp, std::uint32_t) {
    look_at_log(warp);
    memory_event(warp, "clock", pc, cost::special);
    return warp.time;
  }));
}

}  // namespace flash::gpu

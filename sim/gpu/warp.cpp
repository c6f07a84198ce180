// Warp-wide calls: the lanes meet, the last to come executes for all. Meeting orders no memory accesses, __syncwarp()
// does.
#include <fmt/format.h>

#include <bit>
#include <string_view>
#include <utility>

#include "sim/gpu/parts.hpp"
#include "sim/gpu/source_line.hpp"

namespace flash::gpu {
namespace {

void report_divergence(const Thread& t, const Meeting& other, const char* name, Pc pc) {
  report(
      "divergence",
      fmt::format("{} by {}\n      meets lanes {} of its warp, which are at {} at {}\n      all lanes of the mask must "
                  "reach the same call: move it out of the branch",
                  name, here(t, pc), lanes_text(other.arrived), other.name, where(other.pc)),
      where(pc), true);
}

/// ldmatrix and mma: a warp with exited lanes can't do it.
bool needs_all_lanes(std::string_view name) { return name.find(".aligned") != name.npos; }

/// These, and barriers of the CTA, need all lanes at one instruction of the program; for the others one kind of
/// instruction is enough. Copies of a call that the compiler made are one.
bool meets_here(const Meeting& meeting, std::string_view name, Pc pc) {
  if (meeting.pc == pc) return true;
  if (meeting.name != name) return false;
  const bool anywhere = !needs_all_lanes(name) && !name.starts_with("bar.sync") && !name.starts_with("bar.arrive") &&
                        !name.starts_with("bar.red");
  return anywhere || where(meeting.pc) == where(pc);
}

Meeting& meeting_of(Warp& warp, const char* name, std::uint32_t mask, Pc pc) {
  for (Meeting& m : warp.meetings)
    if (m.mask == mask) {
      if (!meets_here(m, name, pc)) report_divergence(*current, m, name, pc);
      return m;
    }
  return warp.meetings.emplace_back(Meeting{name, pc, mask, 0});
}

void remove_meeting(Warp& warp, std::uint32_t mask) {
  std::erase_if(warp.meetings, [&](const Meeting& m) { return m.mask == mask; });
}

/// Operands of a shuffle or vote.
struct Exchange {
  std::uint32_t value, operand;
  int width;
  std::uint32_t result;
};

Exchange& exchange_of(const Thread& t) { return *static_cast<Exchange*>(t.operands); }

/// Lane whose value a shuffle takes; its own where that is beyond its segment of `width` lanes (PTX ISA, shfl.sync).
unsigned source_lane(Shuffle kind, unsigned lane, const Exchange& e) {
  const auto width = static_cast<unsigned>(e.width);
  const unsigned first = lane & ~(width - 1), last = first + width - 1, operand = e.operand & 31;
  switch (kind) {
    case Shuffle::from_lane: return first | (operand & (width - 1));
    case Shuffle::up: return lane >= first + operand ? lane - operand : lane;
    case Shuffle::down: return lane + operand <= last ? lane + operand : lane;
    case Shuffle::exclusive_or: return (lane ^ operand) <= last ? lane ^ operand : lane;
  }
  return lane;
}

const char* name_of(Shuffle kind) {
  constexpr const char* names[] = {"shfl.sync.idx", "shfl.sync.up", "shfl.sync.down", "shfl.sync.bfly"};
  return names[static_cast<int>(kind)];
}

}  // namespace

bool meet(const char* name, std::uint32_t mask, void* operands, Pc pc) {
  Thread& t = *current;
  Warp& warp = *t.warp;
  t.operands = operands;
  if (!(mask >> t.lane & 1))
    report("divergence",
           fmt::format("{} calls {} with a mask that leaves it out: lanes {}", here(t, pc), name, lanes_text(mask)),
           where(pc), true);
  if (warp.present != whole_warp && needs_all_lanes(name))
    report("divergence",
           fmt::format("{} calls {}, which needs the whole warp, but lanes {} have exited or were never there",
                       here(t, pc), name, lanes_text(~warp.present)),
           where(pc), true);
  Meeting& meeting = meeting_of(warp, name, mask, pc);
  meeting.arrived |= 1u << t.lane;
  if (meeting.arrived == (mask & warp.present)) return true;
  block(Wait::warp, name, pc);
  return std::exchange(t.leads, false);
}

void exited_from_meetings(const Thread& gone) {
  for (const Meeting& m : gone.warp->meetings) {
    if (!m.arrived) continue;
    Thread& waiting = *gone.warp->lanes[std::countr_zero(m.arrived)];
    if (needs_all_lanes(m.name))
      report("divergence",
             fmt::format("{} is at {}, which needs the whole warp, but lane {} has exited", here(waiting, m.pc), m.name,
                         gone.lane),
             where(m.pc), true);
    if (m.arrived != (m.mask & gone.warp->present)) continue;
    waiting.leads = true;
    wake(waiting);
  }
}

void meeting_done(std::uint32_t mask) {
  Warp& warp = *current->warp;
  const std::uint32_t present = mask & warp.present;
  remove_meeting(warp, mask);
  for_lanes(warp, present, [](Thread& t) {
    if (&t != current) wake(t);
  });
}

std::uint32_t shuffle(Shuffle kind, std::uint32_t mask, std::uint32_t value, unsigned operand, int width) {
  const Pc pc = __builtin_return_address(0);
  Exchange mine{value, operand, width, 0};
  if (meet(name_of(kind), mask, &mine, pc)) {
    Warp& warp = *current->warp;
    const std::uint32_t taking_part = mask & warp.present;
    look_at_log(warp);
    for_lanes(warp, taking_part, [&](Thread& t) {
      const unsigned source = source_lane(kind, t.lane, exchange_of(t));
      if (!(taking_part >> source & 1))
        report(
            "shuffle",
            fmt::format("{} takes the value of lane {}, which takes no part in the shuffle: what it gets is undefined; "
                        "name it in the mask, or give a width",
                        here(t, pc), source),
            where(pc));
      else
        exchange_of(t).result = exchange_of(*warp.lanes[source]).value;
    });
    count_instruction("shfl.sync");
    meeting_done(mask);
    event(at_instruction, name_of(kind), pc, 0, cost::shuffle);
  }
  return mine.result;
}

std::uint32_t vote(Vote kind, std::uint32_t mask, bool predicate) {
  const Pc pc = __builtin_return_address(0);
  constexpr const char* names[] = {"vote.sync.any", "vote.sync.all", "vote.sync.ballot"};
  const char* name = names[static_cast<int>(kind)];
  Exchange mine{predicate, 0, 32, 0};
  if (meet(name, mask, &mine, pc)) {
    Warp& warp = *current->warp;
    const std::uint32_t taking_part = mask & warp.present;
    look_at_log(warp);
    std::uint32_t ballot = 0;
    for_lanes(warp, taking_part, [&](Thread& t) { ballot |= exchange_of(t).value << t.lane; });
    const std::uint32_t result = kind == Vote::ballot ? ballot
                                 : kind == Vote::any  ? ballot != 0
                                                      : ballot == taking_part;
    for_lanes(warp, taking_part, [&](Thread& t) { exchange_of(t).result = result; });
    count_instruction("vote.sync");
    meeting_done(mask);
    event(at_instruction, name, pc, 0, cost::vote);
  }
  return mine.result;
}

void sync_warp(std::uint32_t mask) {
  const Pc pc = __builtin_return_address(0);
  if (!meet("bar.warp.sync", mask, nullptr, pc)) return;
  Warp& warp = *current->warp;
  look_at_log(warp);
  if (machine->config.checks) {
    Clock all;
    for_lanes(warp, mask & warp.present, [&](Thread& t) { all.join(t.clock); });
    for_lanes(warp, mask & warp.present, [&](Thread& t) {
      t.clock.join(all);
      t.clock.own.raise(t.index, t.tick() + 1);
    });
  }
  meeting_done(mask);
  event(at_barrier, "bar.warp.sync", pc, 0, cost::vote);
}

}  // namespace flash::gpu

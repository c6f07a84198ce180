// The sixteen barriers of a CTA. A warp arrives as a whole, once its lanes that have not exited are at the same call,
// and counts as 32 threads (PTX ISA, bar.sync).
#include <fmt/format.h>

#include "sim/gpu/parts.hpp"
#include "sim/gpu/source_line.hpp"

namespace flash::gpu {
namespace {

unsigned threads_of_all(const Cta& cta) {
  unsigned threads = 0;
  for (const Warp& warp : cta.warps) threads += warp.present ? 32 : 0;
  return threads;
}

void require_sane(unsigned id, std::uint32_t threads, unsigned need, const Barrier& b, Pc pc) {
  const auto bad = [&](const std::string& what) {
    report("barrier", fmt::format("{} is at barrier {} {}", here(*current, pc), id, what), where(pc), true);
  };
  if (id > 15) bad("but there are 0 to 15");
  if (threads % 32 != 0) bad(fmt::format("for {} threads, but they must be a multiple of 32", threads));
  if (b.arrived > 0 && b.need != need)
    bad(fmt::format("for {} threads, but those that wait there said {}", need, b.need));
}

/// All that wait go on and know what all that arrived did.
void open(Barrier& b) {
  for (Thread* leader : b.waiting) {
    look_at_log(*leader->warp);
    if (machine->config.checks)
      for_lanes(*leader->warp, leader->warp->present, [&](Thread& t) { t.clock.join(b.clock); });
    waited(*leader->warp, leader->pc, b.time);
    leader->counted = b.counted;
    if (leader != current) wake(*leader);
  }
  b = Barrier{};
  ++machine->counts.barriers;
}

/// The warp of the current thread arrives; the thread waits for the others where `wait` says so.
void arrive(unsigned id, std::uint32_t threads, bool wait, unsigned predicates, const char* name, Pc pc) {
  Thread& t = *current;
  Cta& cta = *t.cta;
  const unsigned need = threads ? threads : threads_of_all(cta);
  Barrier& b = cta.barriers[id % 16];
  require_sane(id, threads, need, b, pc);
  if (b.arrived == 0) b.pc = pc, b.of_all = !threads;
  if (!threads && pc != b.pc && where(pc) != where(b.pc))
    report("barrier",
           fmt::format(
               "{} is at a barrier of all threads, but others of its CTA are at the one at {}\n      all must come to "
               "the same one: take it out of the branch, or give each part a barrier of its own",
               here(t, pc), where(b.pc)),
           where(pc) + where(b.pc));
  look_at_log(*t.warp);
  b.need = need;
  b.arrived += 32;
  b.counted += predicates;
  b.time = std::max(b.time, t.warp->time);
  if (machine->config.checks)
    for_lanes(*t.warp, t.warp->present, [&](Thread& lane) {
      b.clock.join(lane.clock);
      lane.clock.own.raise(lane.index, lane.tick() + 1);
    });
  ++machine->changes;
  if (wait) b.waiting.push_back(&t);
  t.barrier = id;
  if (b.arrived >= need)
    open(b);
  else if (wait)
    block(Wait::barrier, name, pc);
}

/// Number of true predicates at the barrier.
unsigned barrier(unsigned id, std::uint32_t threads, bool wait, bool predicate, const char* name, Pc pc) {
  unsigned mine = predicate;
  if (!meet(name, whole_warp, &mine, pc)) return mine;
  unsigned predicates = 0;
  for_lanes(*current->warp, current->warp->present,
            [&](Thread& t) { predicates += *static_cast<unsigned*>(t.operands); });
  arrive(id, threads, wait, predicates, name, pc);
  for_lanes(*current->warp, current->warp->present,
            [&](Thread& t) { *static_cast<unsigned*>(t.operands) = current->counted; });
  meeting_done(whole_warp);
  event(at_barrier, name, pc, id, cost::barrier);
  return mine;
}

}  // namespace

void bar_sync(std::uint32_t id, std::uint32_t threads) {
  barrier(id, threads, true, false, "bar.sync", __builtin_return_address(0));
}

void bar_arrive(std::uint32_t id, std::uint32_t threads) {
  barrier(id, threads, false, false, "bar.arrive", __builtin_return_address(0));
}

int bar_count(bool predicate) {
  return static_cast<int>(barrier(0, 0, true, predicate, "bar.red", __builtin_return_address(0)));
}

void exited(Thread& t) {
  exited_from_meetings(t);
  // A barrier of all threads is one of those that have not exited.
  Barrier& b = t.cta->barriers[0];
  const unsigned all = threads_of_all(*t.cta);
  if (t.warp->present || b.arrived == 0 || !b.of_all) return;
  b.need = all;
  if (b.arrived >= all) open(b);
}

}  // namespace flash::gpu

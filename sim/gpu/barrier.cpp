// The sixteen barriers of a CTA, and what the exit of a thread means to those that wait.
#include <fmt/format.h>

#include "sim/gpu/parts.hpp"
#include "sim/gpu/source_line.hpp"

namespace flash::gpu {
namespace {

void require_same_line(const Thread& t, unsigned id, Pc pc) {
  for (Thread* lane : t.warp->lanes)
    if (lane && lane->wait == Wait::barrier && lane->barrier == id && lane->pc != pc && where(lane->pc) != where(pc))
      report(
          "divergence",
          fmt::format("{} is at barrier {}\n      while {} of the same warp is at it at {}\n      all lanes of a warp "
                      "must reach the same barrier call: move it out of the branch",
                      here(t, pc), id, thread_name(*lane->cta, lane->index), where(lane->pc)),
          where(pc), true);
}

void complete(Barrier& b, unsigned id, Cta& cta) {
  const bool checks = machine->config.checks;
  b.last_counted = b.counted;
  for (Warp& warp : cta.warps) look_at_log(warp);
  for (Thread& t : cta.threads) {
    if (t.wait != Wait::barrier || t.barrier != id) continue;
    if (checks) t.clock.join(b.clock);
    waited(*t.warp, b.time);
    wake(t);
  }
  ++machine->counts.barriers;
}

void start_over(Barrier& b) {
  const unsigned counted = b.last_counted;
  b = Barrier{};
  b.last_counted = counted;
}

/// The current thread arrives; where it is the last, the barrier opens.
void arrive(unsigned id, std::uint32_t threads, bool wait, bool predicate, const char* name, Pc pc) {
  Thread& t = *current;
  Cta& cta = *t.cta;
  if (id > 15)
    report("barrier", fmt::format("{} is at barrier {}, but there are 0 to 15", here(t, pc), id), where(pc), true);
  if (threads % 32 != 0)
    report(
        "barrier",
        fmt::format("{} is at barrier {} for {} threads, but they must be a multiple of 32", here(t, pc), id, threads),
        where(pc), true);
  Barrier& b = cta.barriers[id];
  const unsigned need = threads ? threads : cta.present;
  if (b.arrived > 0 && b.need != need)
    report("barrier",
           fmt::format("{} is at barrier {} for {} threads, but those that wait there said {}", here(t, pc), id, need,
                       b.need),
           where(pc), true);
  require_same_line(t, id, pc);
  b.need = need;
  b.counted += predicate;
  if (machine->config.checks) {
    b.clock.join(t.clock);
    t.clock.own.raise(t.index, t.tick() + 1);
  }
  look_at_log(*t.warp);
  b.time = std::max(b.time, t.warp->time);
  ++machine->progress;
  t.barrier = id;
  if (++b.arrived < need) {
    if (wait) block(Wait::barrier, name, pc);
    return;
  }
  if (wait && machine->config.checks) t.clock.join(b.clock);
  if (wait) waited(*t.warp, b.time);
  complete(b, id, cta);
  start_over(b);
  event(at_barrier, name, pc, id, cost::barrier);
}

}  // namespace

void bar_sync(std::uint32_t id, std::uint32_t threads) {
  arrive(id, threads, true, false, "bar.sync", __builtin_return_address(0));
}

void bar_arrive(std::uint32_t id, std::uint32_t threads) {
  arrive(id, threads, false, false, "bar.arrive", __builtin_return_address(0));
}

int bar_count(bool predicate) {
  arrive(0, 0, true, predicate, "bar.red", __builtin_return_address(0));
  return static_cast<int>(current->cta->barriers[0].last_counted);
}

void exited(Thread& t) {
  exited_from_meetings(*t.warp);
  // A barrier of all threads is one of those that have not exited.
  Barrier& b = t.cta->barriers[0];
  if (b.arrived > 0 && b.need == t.cta->present + 1) {
    b.need = t.cta->present;
    if (b.arrived == b.need) {
      complete(b, 0, *t.cta);
      start_over(b);
    }
  }
}

}  // namespace flash::gpu

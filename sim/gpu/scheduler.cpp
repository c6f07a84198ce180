// Which thread runs next. A warp's lanes run one after the other until each waits; then another warp.
#include <fmt/format.h>

#include <bit>
#include <utility>

#include "sim/gpu/parts.hpp"
#include "sim/gpu/source_line.hpp"

namespace flash::gpu {

thread_local Thread* current = nullptr;
thread_local Machine::Parts* machine = nullptr;

unsigned Machine::Parts::random_below(unsigned n) {
  random ^= random << 13;
  random ^= random >> 7;
  random ^= random << 17;
  return static_cast<unsigned>((random >> 16) % n);
}

bool Machine::Parts::completes_now() {
  return config.completion == Completion::early || (config.completion == Completion::random && random_below(2) == 0);
}

namespace {

thread_local Thread* running = nullptr;  // whose fiber this is; `current` may act for another lane for a while

void switch_from(Thread& self, Thread* next) {
  current = running = next;
  if (next == &self) return;
  self.fiber.switch_to(next ? next->fiber : machine->caller);
}

/// The next lane of the warp that can run; where there is none, one of those that waited for just that; or none.
Thread* next_lane(const Thread& t) {
  const std::uint32_t ready = t.warp->ready, behind = t.lane == 31 ? 0 : ready & ~0u << (t.lane + 1);
  const std::uint32_t choice = behind ? behind : ready;
  if (choice) return t.warp->lanes[std::countr_zero(choice)];
  for (Thread* lane : t.warp->lanes)
    if (lane && lane->wait == Wait::mates) {
      lane->leads = true;
      wake(*lane);
      return lane;
    }
  return nullptr;
}

/// Threads that wait for lanes or threads that have exited need not wait for them any longer.
void let_go(Thread& t) {
  t.wait = Wait::done;
  t.warp->ready &= ~(1u << t.lane);
  t.warp->present &= ~(1u << t.lane);
  --t.cta->present;
  ++machine->changes;
  exited(t);
  if (!t.copies.empty() && machine->config.checks)
    report("cp.async", fmt::format("{} exits with copies in flight; wait for them first", here(t, t.copies.front().pc)),
           "exit");
  if (t.warp->present == 0) look_at_log(*t.warp);
  if (t.cta->present == 0) ++machine->launch->finished;
}

void start_thread(Thread& t) {
  t.fiber.begin(machine->config.stack_bytes, [&t]() -> Fiber* {
    ++machine->meetings;
    run_kernel(*machine->launch);
    let_go(t);
    current = running = next_lane(t);
    return current ? &current->fiber : &machine->caller;
  });
}

void add_thread(Cta& cta, unsigned index, dim3 block) {
  Thread& t = cta.threads.emplace_back();
  t.thread_index = {index % block.x, index / block.x % block.y, index / block.x / block.y};
  t.index = index;
  t.lane = index % 32;
  t.cta = &cta;
  if (t.lane == 0) {
    Warp& warp = cta.warps.emplace_back();
    warp.index = index / 32;
    warp.cta = &cta;
  }
  t.warp = &cta.warps.back();
  t.warp->lanes[t.lane] = &t;
  t.warp->present |= 1u << t.lane;
  t.warp->ready |= 1u << t.lane;
  t.clock.own.raise(index, 1);
  start_thread(t);
}

void start_cta(Launch& launch) {
  auto& cta = *launch.resident.emplace_back(std::make_unique<Cta>());
  const std::uint64_t i = launch.started++;
  const dim3 grid = launch.grid;
  cta.index = {static_cast<unsigned>(i % grid.x), static_cast<unsigned>(i / grid.x % grid.y),
               static_cast<unsigned>(i / grid.x / grid.y)};
  cta.serial = machine->next_cta++;
  constexpr std::size_t alignment = 1024;
  cta.smem_bytes = launch.smem_bytes;
  cta.storage = std::make_unique<std::byte[]>(launch.smem_bytes + alignment);
  cta.smem = cta.storage.get() + alignment - reinterpret_cast<std::uintptr_t>(cta.storage.get()) % alignment;
  std::fill_n(cta.smem, launch.smem_bytes, std::byte{0xff});
  cta.shadow.cover(launch.smem_bytes, !machine->config.checks);
  const unsigned threads = launch.block.x * launch.block.y * launch.block.z;
  for (unsigned t = 0; t < threads; ++t) add_thread(cta, t, launch.block);
  cta.present = threads;
  begin_track(cta, launch);
}

void remove_finished(Launch& launch) {
  std::erase_if(launch.resident, [&](const std::unique_ptr<Cta>& cta) {
    if (cta->present > 0) return false;
    end_track(*cta);
    // Its shared memory may become another CTA's.
    machine->atomics.erase(machine->atomics.lower_bound(cta->smem),
                           machine->atomics.upper_bound(cta->smem + cta->smem_bytes));
    return true;
  });
}

bool room_for_cta(const Launch& launch) {
  return launch.started < launch.ctas && launch.resident.size() < launch.resident_limit;
}

/// Before it has to? Then CTAs run side by side, and overtake each other.
bool starts_one_more(const Launch& launch) {
  return machine->config.completion == Completion::random && room_for_cta(launch) && machine->random_below(4) == 0;
}

/// A warp of a resident CTA that can run, or none.
Warp* pick(const Launch& launch) {
  static thread_local std::vector<Warp*> ready;
  ready.clear();
  for (const auto& cta : launch.resident)
    for (Warp& warp : cta->warps)
      if (warp.ready) ready.push_back(&warp);
  if (ready.empty()) return nullptr;
  const auto n = static_cast<unsigned>(ready.size());
  return ready[machine->config.seed ? machine->random_below(n) : static_cast<unsigned>(machine->round++ % n)];
}

/// Threads that poll may look again. Where nobody has changed anything since they last did, they may for some rounds: a
/// loop that looks often is not yet one that waits.
bool let_pollers_on(const Launch& launch) {
  constexpr unsigned rounds = 100;
  if (machine->changes != machine->changes_at_round) machine->idle_rounds = 0;
  machine->changes_at_round = machine->changes;
  if (++machine->idle_rounds > rounds) return false;
  bool any = false;
  for (const auto& cta : launch.resident)
    for (Thread& t : cta->threads)
      if (t.wait == Wait::change) {
        wake(t);
        any = true;
      }
  return any;
}

void report_deadlock(const Launch& launch) {
  std::string text = "no thread can run and nothing is in flight:\n" + waiting_threads();
  if (launch.started < launch.ctas)
    text += fmt::format(
        "      {} of {} CTAs have not started: only {} are resident at once on {} SMs; a CTA may not wait for one that "
        "is not resident\n",
        launch.ctas - launch.started, launch.ctas, launch.resident_limit, machine->config.sms);
  report(deadlock_kind(), text, "deadlock", true);
}

void run_warp(Warp& warp) {
  Thread* last = machine->last_run;
  const bool again = last && last->warp == &warp && (warp.ready >> last->lane & 1);
  Thread* next = again ? last : warp.lanes[std::countr_zero(warp.ready)];
  machine->last_run = nullptr;
  ++machine->meetings;
  current = running = next;
  machine->caller.switch_to(next->fiber);
  current = running = nullptr;
}

}  // namespace

/// Runs one warp of the kernel for a while, or starts a CTA. The launch is gone once the kernel has ended.
void run_some() {
  Launch& launch = *machine->launch;
  if (launch.finished == launch.ctas) {
    remove_finished(launch);
    machine->counts.cycles += launch.longest_cta;
    machine->launch.reset();
    machine->last_run = nullptr;
    return;
  }
  Warp* warp = starts_one_more(launch) ? nullptr : pick(launch);
  if (warp) return run_warp(*warp);
  remove_finished(launch);
  if (room_for_cta(launch)) {
    ++machine->changes;
    return start_cta(launch);
  }
  if (!let_pollers_on(launch)) report_deadlock(launch);
}

void block(Wait why, const char* doing, Pc pc) {
  Thread& t = *current;
  if (why != Wait::mates) ++machine->meetings;
  t.wait = why;
  t.doing = doing;
  t.pc = pc;
  t.warp->ready &= ~(1u << t.lane);
  switch_from(t, next_lane(t));
}

void wake(Thread& t) {
  t.wait = Wait::nothing;
  t.warp->ready |= 1u << t.lane;
}

bool let_mates_run(const char* doing, Pc pc) {
  block(Wait::mates, doing, pc);
  return std::exchange(current->leads, false);
}

void wake_mates(Pc pc) {
  for (Thread* lane : current->warp->lanes)
    if (lane && lane->wait == Wait::mates && lane->pc == pc) wake(*lane);
}

void give_way() { switch_from(*current, nullptr); }

void to_caller() {
  machine->last_run = running;
  switch_from(*running, nullptr);
}

}  // namespace flash::gpu

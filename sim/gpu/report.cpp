// What is said when a kernel does something wrong.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>

#include "sim/gpu/parts.hpp"
#include "sim/gpu/source_line.hpp"

namespace flash::gpu {

void report(const std::string& kind, const std::string& text, const std::string& place, bool fatal) {
  Machine::Parts& m = *machine;
  if (m.reported.insert(kind + " " + place).second && m.reports.size() < m.config.most_reports)
    m.reports.push_back({kind, text});
  if (!fatal) return;
  m.fatal = true;
  while (current) to_caller();  // a thread that did what a GPU would not survive goes no further
}

std::string thread_name(const Cta& cta, unsigned agent) {
  const auto threads = static_cast<unsigned>(cta.threads.size());
  const unsigned thread = agent % threads;
  return fmt::format("{}thread {} (warp {}, lane {})", agent / threads == 1 ? "cp.async of " : "", thread, thread / 32,
                     thread % 32);
}

std::string cta_name(const uint3& i) { return fmt::format("CTA ({},{},{})", i.x, i.y, i.z); }

std::string smem_name(const Cta& cta, std::size_t at) {
  for (const Named& n : cta.names)
    if (at >= n.begin && at < n.end) return fmt::format("shared memory, byte {} ({} + {})", at, n.text, at - n.begin);
  return fmt::format("shared memory, byte {}", at);
}

namespace {

/// "0-3, 8"
std::string ranges_text(const std::vector<unsigned>& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", numbers[i]);
    if (last > i) text += fmt::format("-{}", numbers[last]);
    i = last;
  }
  return text.empty() ? "none" : text;
}

}  // namespace

std::string lanes_text(std::uint32_t lanes) {
  std::vector<unsigned> numbers;
  for (unsigned l = 0; l < 32; ++l)
    if (lanes >> l & 1) numbers.push_back(l);
  return ranges_text(numbers);
}

std::string here(const Thread& t, Pc pc) {
  std::string text = fmt::format("{} of {} at {}", thread_name(*t.cta, t.index), cta_name(t.cta->index), where(pc));
  for (const Mark& mark : t.warp->marks) text += fmt::format(", {} {}", mark.name, mark.value);
  return text;
}

void report_race(const Thread& t, const char* doing, Pc pc, const std::string& what, const Epoch& then,
                 const std::string& hint) {
  const Pc then_pc = reinterpret_cast<Pc>(static_cast<std::uintptr_t>(then.pc));
  std::string who = "another CTA";
  for (const auto& cta : machine->launch->resident)
    if (cta->serial == then.cta) who = fmt::format("{} of {}", thread_name(*cta, then.agent), cta_name(cta->index));
  const char* before = then.async    ? then.write ? "asynchronous write" : "asynchronous read"
                       : then.atomic ? "atomic access"
                       : then.write  ? "write"
                                     : "read";
  report("race",
         fmt::format("{} of {}\n      by {}\n      is not ordered after the {} by {} at {}\n      {}", doing, what,
                     here(t, pc), before, who, where(then_pc), hint),
         where(pc) + where(then_pc));
}

namespace {

/// The lane that waits at a barrier for its warp, or none.
const Thread* barrier_leader(const Thread& t) {
  for (const Thread* lane : t.warp->lanes)
    if (lane && lane->wait == Wait::barrier && lane->pc == t.pc) return lane;
  return nullptr;
}

std::string doing_of(const Thread& t) {
  if (t.wait == Wait::nothing) return "ready to run";
  std::string text = fmt::format("{} at {}", t.doing, where(t.pc));
  if (const Thread* leader = barrier_leader(t)) {
    const Barrier& b = t.cta->barriers[leader->barrier];
    text += fmt::format(", barrier {} [{} of {} threads are there]", leader->barrier, b.arrived, b.need);
  }
  if (t.wait == Wait::change) text += ", waiting for another thread to change what it reads";
  return text;
}

}  // namespace

std::string waiting_threads() {
  std::string text;
  for (const auto& cta : machine->launch->resident) {
    std::map<std::string, std::vector<unsigned>> groups;
    for (const Thread& t : cta->threads)
      if (t.wait != Wait::done) groups[doing_of(t)].push_back(t.index);
    for (const auto& [doing, threads] : groups)
      text += fmt::format("      {} threads {}: {}\n", cta_name(cta->index), ranges_text(threads), doing);
    if (cta->present > 0 && cta->present < cta->threads.size())
      text +=
          fmt::format("      {}: {} threads have exited\n", cta_name(cta->index), cta->threads.size() - cta->present);
  }
  return text;
}

std::string deadlock_kind() {
  const auto meets = [](const Thread* t) { return t && (t->wait == Wait::warp || t->wait == Wait::barrier); };
  for (const auto& cta : machine->launch->resident)
    for (const Warp& warp : cta->warps) {
      const Thread* first = nullptr;
      for (const Thread* lane : warp.lanes) {
        if (!meets(lane)) continue;
        if (first && where(first->pc) != where(lane->pc)) return "divergence";
        first = lane;
      }
    }
  return "deadlock";
}

void require_arch(int arch, const char* instruction, Pc pc) {
  if (machine->arch.number >= arch) return;
  report("architecture",
         fmt::format("{} at {} needs sm_{}, but the kernel runs on sm_{} ({})", instruction, where(pc), arch,
                     machine->arch.number, machine->arch.name),
         where(pc), true);
}

void trap() {
  const Pc pc = __builtin_return_address(0);
  report("trap", fmt::format("__trap() by {}", here(*current, pc)), where(pc), true);
}

}  // namespace flash::gpu

void flash_assert_fail(const char* what, const char* file, unsigned line, const char* function) noexcept {
  using namespace flash::gpu;
  if (current) {
    const Pc pc = __builtin_return_address(0);
    report("trap", fmt::format("assert({}) by {}\n      does not hold", what, here(*current, pc)), where(pc), true);
  }
  fmt::print(stderr, "{}:{}: {}: assert({}) does not hold\n", file, line, function, what);
  std::abort();
}

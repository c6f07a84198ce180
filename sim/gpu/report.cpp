// What is said when a kernel does something wrong.
#include <bit>
#include <sstream>

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
  if (agent >= threads) return "cp.async of " + thread_name(cta, agent - threads);
  return "thread " + std::to_string(agent) + " (warp " + std::to_string(agent / 32) + ", lane " +
         std::to_string(agent % 32) + ")";
}

std::string cta_name(const uint3& i) {
  return "CTA (" + std::to_string(i.x) + "," + std::to_string(i.y) + "," + std::to_string(i.z) + ")";
}

std::string smem_name(const Cta& cta, std::size_t at) {
  std::string text = "shared memory, byte " + std::to_string(at);
  for (const Named& n : cta.names)
    if (at >= n.begin && at < n.end) return text + " (" + n.text + " + " + std::to_string(at - n.begin) + ")";
  return text;
}

std::string lanes_text(std::uint32_t lanes) {
  std::string text;
  for (unsigned l = 0; l < 32; ++l) {
    if (!(lanes >> l & 1)) continue;
    unsigned last = l;
    while (last < 31 && (lanes >> (last + 1) & 1)) ++last;
    text += (text.empty() ? "" : ", ") + std::to_string(l) + (last > l ? "-" + std::to_string(last) : "");
    l = last;
  }
  return text.empty() ? "none" : text;
}

std::string here(const Thread& t, Pc pc) {
  std::string text = thread_name(*t.cta, t.index) + " of " + cta_name(t.cta->index) + " at " + where(pc);
  if (t.warp->mark) text += ", " + std::string(t.warp->mark) + " " + std::to_string(t.warp->mark_value);
  return text;
}

void report_race(const Thread& t, const char* doing, Pc pc, const std::string& what, const Epoch& then,
                 const std::string& hint) {
  const Pc then_pc = reinterpret_cast<Pc>(static_cast<std::uintptr_t>(then.pc));
  std::string who = "another CTA";
  for (const auto& cta : machine->launch->resident)
    if (cta->serial == then.cta) who = thread_name(*cta, then.agent) + " of " + cta_name(cta->index);
  const char* before = then.async ? "asynchronous write" : then.atomic ? "atomic access" : then.write ? "write" : "read";
  report("race",
         std::string(doing) + " of " + what + "\n      by " + here(t, pc) + "\n      is not ordered after the " + before +
             " by " + who + " at " + where(then_pc) + "\n      " + hint,
         where(pc) + where(then_pc));
}

namespace {

std::string doing_of(const Thread& t) {
  if (t.wait == Wait::nothing) return "ready to run";
  std::string text = std::string(t.doing) + " at " + where(t.pc);
  if (t.wait == Wait::barrier) {
    const Barrier& b = t.cta->barriers[t.barrier];
    text += ", barrier " + std::to_string(t.barrier) + " [" + std::to_string(b.arrived) + " of " +
            std::to_string(b.need) + " threads are there]";
  }
  if (t.wait == Wait::change) text += ", waiting for another thread to change what it reads";
  return text;
}

std::string ranges_text(const std::vector<unsigned>& threads) {
  std::string text;
  for (std::size_t i = 0; i < threads.size(); ++i) {
    std::size_t last = i;
    while (last + 1 < threads.size() && threads[last + 1] == threads[last] + 1) ++last;
    text += (text.empty() ? "" : ", ") + std::to_string(threads[i]) +
            (last > i ? "-" + std::to_string(threads[last]) : "");
    i = last;
  }
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
      text += "      " + cta_name(cta->index) + " threads " + ranges_text(threads) + ": " + doing + "\n";
    if (cta->present > 0 && cta->present < cta->threads.size())
      text += "      " + cta_name(cta->index) + ": " + std::to_string(cta->threads.size() - cta->present) +
              " threads have exited\n";
  }
  return text;
}

std::string deadlock_kind() {
  for (const auto& cta : machine->launch->resident)
    for (const Warp& warp : cta->warps) {
      const Thread* first = nullptr;
      for (const Thread* lane : warp.lanes) {
        if (!lane || lane->wait == Wait::done) continue;
        if (first && (first->wait != lane->wait || where(first->pc) != where(lane->pc))) return "divergence";
        first = first ? first : lane;
      }
      if (first && first->wait != Wait::change && warp.present != ~0u &&
          warp.present != (warp.lanes[31] ? ~0u : warp.present))
        return "divergence";
    }
  return "deadlock";
}

void require_arch(int arch, const char* instruction, Pc pc) {
  if (machine->arch.number >= arch) return;
  report("architecture",
         std::string(instruction) + " at " + where(pc) + " needs sm_" + std::to_string(arch) +
             ", but the kernel runs on sm_" + std::to_string(machine->arch.number) + " (" + machine->arch.name + ")",
         where(pc), true);
}

}  // namespace flash::gpu

// Accesses by a kernel's threads: where they go, whether they may, and what they count.
#include <fmt/format.h>
#include <link.h>

#include "sim/gpu/parts.hpp"
#include "sim/gpu/source_line.hpp"

namespace flash::gpu {
namespace {

bool writes(Way way) { return way == Way::write || way == Way::atomic || way == Way::strong_write; }
bool reads(Way way) { return !writes(way) || way == Way::atomic; }

Epoch epoch_of(Thread& t, Way way, Pc pc) {
  Epoch e;
  e.pc = reinterpret_cast<std::uintptr_t>(pc);
  e.agent = static_cast<std::uint16_t>(t.index);
  e.tick = t.tick();
  e.cta = t.cta->serial;
  e.write = writes(way);
  e.atomic = way == Way::atomic || way == Way::strong_read || way == Way::strong_write;
  if (e.atomic) {
    e.agent = static_cast<std::uint16_t>(t.atomic_agent());
    e.tick = t.clock.own.of(t.atomic_agent()) + 1;
    t.clock.own.raise(t.atomic_agent(), e.tick);
  }
  return e;
}

Epoch async_epoch(Thread& t, Way way, std::uint32_t group, Pc pc) {
  Epoch e = epoch_of(t, way, pc);
  e.agent = static_cast<std::uint16_t>(t.copy_agent());
  e.tick = group;
  e.async = true;
  return e;
}

constexpr const char* after_copy =
    "cp.async.wait_group by the thread that copies, then a barrier, must lie between the two";

std::string sized(const char* doing, std::size_t bytes) {
  return fmt::format("{} of {} byte{}", doing, bytes, bytes == 1 ? "" : "s");
}

/// "O, byte 4096 of 8192"
std::string place_in(const Allocation& a, std::size_t at) {
  return fmt::format("{}, byte {} of {}", a.name, at, a.bytes);
}

// ---- global memory

/// "8 bytes behind the end of A (4096 bytes)"
std::string place_outside(const void* p, std::size_t bytes) {
  const auto* at = static_cast<const std::byte*>(p);
  if (const Allocation* a = machine->global.find(p))
    return fmt::format("reaches {} bytes behind the end of {} ({} bytes)", at + bytes - (a->data + a->bytes), a->name,
                       a->bytes);
  std::ptrdiff_t distance = 0;
  const Allocation* nearest = machine->global.nearest(p, distance);
  if (!nearest) return "is outside every tensor";
  return fmt::format("is outside every tensor: {} bytes {} of {} ({} bytes)", std::abs(distance),
                     distance < 0 ? "before the begin" : "behind the end", nearest->name, nearest->bytes);
}

void report_outside(const Thread& t, const void* p, std::size_t bytes, Pc pc, const char* doing) {
  report(
      "bounds",
      fmt::format("{} by {}\n      {}\n      check the index, its type (64 bits for global memory) and the last tile's "
                  "guard",
                  sized(doing, bytes), here(t, pc), place_outside(p, bytes)),
      where(pc), true);
}

void access_global(Thread& t, const void* p, std::size_t bytes, Way way, Pc pc, const char* doing) {
  Allocation* a = machine->global.find(p);
  const std::size_t at = a ? static_cast<std::size_t>(static_cast<const std::byte*>(p) - a->data) : 0;
  if (!a || at + bytes > a->bytes) return report_outside(t, p, bytes, pc, doing);
  (way == Way::atomic ? a->rmw : writes(way) ? a->written : a->read) += bytes;
  if (!machine->config.checks) return;
  if (reads(way) && !a->shadow.initialised(at, bytes, way == Way::read_struct))
    report("uninitialised",
           fmt::format("{} from {} by {}\n      reads what nobody has written", sized(doing, bytes), place_in(*a, at),
                       here(t, pc)),
           where(pc));
  const Epoch now = epoch_of(t, way, pc);
  if (const Epoch then = a->shadow.conflict({at, bytes, now}, t.clock, machine->launch->first_cta))
    report_race(t, doing, pc, place_in(*a, at), then,
                then.async ? after_copy
                : then.cta != now.cta
                    ? "two CTAs share it: give each its own part, add atomically, or launch a second kernel"
                    : "a barrier between the two is missing, such as __syncthreads()");
}

// ---- other memory

/// Memory of the shared object that holds the kernel: its constants.
bool in_module(const void* p, Pc pc) {
  struct Search {
    std::uintptr_t address, pc;
    bool found;
  } search{reinterpret_cast<std::uintptr_t>(p), reinterpret_cast<std::uintptr_t>(pc), false};
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        auto& s = *static_cast<Search*>(data);
        bool has_p = false, has_pc = false;
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const std::uintptr_t begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
          if (info->dlpi_phdr[i].p_type != PT_LOAD) continue;
          has_p = has_p || s.address - begin < info->dlpi_phdr[i].p_memsz;
          has_pc = has_pc || s.pc - begin < info->dlpi_phdr[i].p_memsz;
        }
        s.found = has_p && has_pc;
        return has_pc ? 1 : 0;
      },
      &search);
  return search.found;
}

void access_elsewhere(const Thread& t, const void* p, std::size_t bytes, Way way, Pc pc, const char* doing) {
  const Launch& l = *machine->launch;
  const auto* at = static_cast<const std::byte*>(p);
  const auto* closure = static_cast<const std::byte*>(l.closure);
  const bool of_module = in_module(p, pc);
  if (static_cast<std::size_t>(at - closure) < l.closure_bytes || (of_module && !writes(way))) return;
  std::string what = of_module ? "is a variable of the kernel's file, which nobody watches: keep it in a tensor"
                               : "is no tensor, shared memory or variable of the thread";
  if (reinterpret_cast<std::uintptr_t>(p) < 65536)
    what = "goes through a null pointer: a tensor that this kernel was not given";
  constexpr std::ptrdiff_t near = 1 << 20;
  const std::ptrdiff_t behind = at - (t.cta->smem + t.cta->smem_bytes);
  if (behind >= -near - static_cast<std::ptrdiff_t>(t.cta->smem_bytes) && behind < near)
    what = fmt::format("is outside the {} bytes of shared memory of its CTA", t.cta->smem_bytes);
  for (const Thread& other : t.cta->threads)
    if (static_cast<std::size_t>(at - other.fiber.stack()) < other.fiber.stack_bytes())
      what = fmt::format("is a local variable of thread {}", other.index);
  if (static_cast<std::size_t>(t.fiber.stack() - at) <= Fiber::guard_bytes)
    what = fmt::format("is just below the thread's {} KiB of local memory: an index into a local array is negative",
                       t.fiber.stack_bytes() / 1024);
  report("bounds", fmt::format("{} by {}\n      {}", sized(doing, bytes), here(t, pc), what), where(pc), true);
}

}  // namespace

// ---- shared memory

std::size_t smem_offset(const void* p, std::size_t bytes, std::size_t alignment, Pc pc, const char* doing) {
  const Thread& t = *current;
  const auto at = static_cast<std::size_t>(static_cast<const std::byte*>(p) - t.cta->smem);
  if (at >= t.cta->smem_bytes || at + bytes > t.cta->smem_bytes)
    report("bounds",
           fmt::format("{} by {}\n      is outside the {} bytes of shared memory of its CTA", sized(doing, bytes),
                       here(t, pc), t.cta->smem_bytes),
           where(pc), true);
  if (at % alignment != 0)
    report("alignment",
           fmt::format("{} by {}\n      is at {}, but it must be {}-byte aligned", doing, here(t, pc),
                       smem_name(*t.cta, at), alignment),
           where(pc), true);
  return at;
}

void touch_smem(std::size_t at, std::size_t bytes, Way way, Pc pc, const char* doing) {
  Thread& t = *current;
  if (reads(way)) machine->counts.smem_read += bytes;
  if (writes(way)) machine->counts.smem_written += bytes;
  if (!machine->config.checks) return;
  Shadow& shadow = t.cta->shadow;
  if (reads(way) && !shadow.initialised(at, bytes, way == Way::read_struct))
    report("uninitialised",
           fmt::format("{} from {} by {}\n      reads what nobody has written", sized(doing, bytes),
                       smem_name(*t.cta, at), here(t, pc)),
           where(pc));
  if (const Epoch then = shadow.conflict({at, bytes, epoch_of(t, way, pc)}, t.clock, 0))
    report_race(t, doing, pc, smem_name(*t.cta, at), then,
                then.async ? after_copy
                           : "a barrier between the two is missing: __syncthreads(), or __syncwarp() within a warp");
}

void touch_smem_async(std::size_t at, std::size_t bytes, std::uint32_t group, Pc pc) {
  Thread& t = *current;
  machine->counts.smem_written += bytes;
  if (!machine->config.checks) return;
  if (const Epoch then = t.cta->shadow.conflict({at, bytes, async_epoch(t, Way::write, group, pc)}, t.clock, 0))
    report_race(t, "cp.async", pc, smem_name(*t.cta, at), then,
                "the copy may arrive at once: a barrier after the last use of what was there must come before it");
}

void touch_source_async(const void* from, std::size_t bytes, std::uint32_t group, Pc pc) {
  Thread& t = *current;
  if (static_cast<std::size_t>(static_cast<const std::byte*>(from) - t.cta->smem) < t.cta->smem_bytes)
    report("bounds",
           fmt::format("cp.async by {}\n      reads shared memory: it copies from global memory alone", here(t, pc)),
           where(pc), true);
  access(from, bytes, Way::read, pc, "cp.async", 1);
  Allocation* a = machine->global.find(from);
  if (!a || !machine->config.checks) return;
  const auto at = static_cast<std::size_t>(static_cast<const std::byte*>(from) - a->data);
  const Epoch e = async_epoch(t, Way::read, group, pc);
  if (const Epoch then = a->shadow.conflict({at, bytes, e}, t.clock, machine->launch->first_cta))
    report_race(t, "cp.async", pc, place_in(*a, at), then, "what it copies must have been written before");
}

// ---- any memory

namespace {

constexpr std::size_t longest_log = 4096;

/// A warp that meets nowhere is looked at now and then, once its other lanes have come as far.
void shorten_log() {
  const Pc place = &longest_log;  // none of the program's
  if (!let_mates_run("access", place)) return;
  look_at_log(*current->warp);
  wake_mates(place);
}

}  // namespace

void access(const void* p, std::size_t bytes, Way way, Pc pc, const char* doing, std::size_t alignment) {
  Thread& t = *current;
  if (writes(way)) ++machine->changes;
  if (way == Way::read || way == Way::read_struct) t.polled = nullptr;
  const auto at = static_cast<std::size_t>(static_cast<const std::byte*>(p) - t.cta->smem);
  const bool shared = at < t.cta->smem_bytes, global = machine->global.contains(p);
  if ((shared || global) && reinterpret_cast<std::uintptr_t>(p) % alignment != 0)
    report("alignment",
           fmt::format("{} by {}\n      is at an address that is no multiple of {}: a GPU stops at it",
                       sized(doing, bytes), here(t, pc), alignment),
           where(pc), true);
  if (shared) {
    smem_offset(p, bytes, 1, pc, doing);
    touch_smem(at, bytes, way, pc, doing);
  } else if (global) {
    access_global(t, p, bytes, way, pc, doing);
  } else {
    return access_elsewhere(t, p, bytes, way, pc, doing);
  }
  if (machine->config.counts) {
    t.log.push_back({pc, static_cast<const std::byte*>(p), static_cast<std::uint32_t>(bytes), shared,
                     way == Way::atomic ? Moves::both
                     : writes(way)      ? Moves::write
                                        : Moves::read});
    if (t.log.size() >= longest_log) shorten_log();
  }
}

/// Who looks at one location again and again, and at nothing else, waits. Others are only slow.
void poll(const void* location, Pc pc, const char* doing) {
  constexpr unsigned patience = 100;
  Thread& t = *current;
  if (t.changes_seen != machine->changes) t.polls = t.same = 0;
  t.changes_seen = machine->changes;
  t.same = location == std::exchange(t.polled, location) ? t.same + 1 : 0;
  if (++t.polls < 2) return;
  if (t.same < patience) return give_way();
  t.polls = t.same = 0;
  block(Wait::change, doing, pc);
}

}  // namespace flash::gpu

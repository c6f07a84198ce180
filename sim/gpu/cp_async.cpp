// cp.async: copies from global to shared memory that arrive early, late or at random. Until they are waited for, what
// they will overwrite is poison.
#include <fmt/format.h>

#include <cstring>

#include "sim/gpu/parts.hpp"
#include "sim/gpu/source_line.hpp"

namespace flash::gpu {
namespace {

constexpr std::byte poison{0xff};  // NaN in every format

void arrive(AsyncCopy& copy) {
  if (copy.done) return;
  std::memcpy(copy.to, copy.from, copy.bytes_read);
  std::memset(copy.to + copy.bytes_read, 0, copy.size - copy.bytes_read);
  copy.done = true;
}

/// Groups up to `group` are there, and the thread knows it.
void complete(Thread& t, std::uint32_t group) {
  std::size_t there = 0;
  while (there < t.copies.size() && t.copies[there].group <= group) arrive(t.copies[there++]);
  t.copies.erase(t.copies.begin(), t.copies.begin() + static_cast<std::ptrdiff_t>(there));
  if (machine->config.checks) t.clock.own.raise(t.copy_agent(), group);
}

}  // namespace

void cp_async(void* to, const void* from, std::uint32_t size, std::uint32_t bytes_read) {
  const Pc pc = __builtin_return_address(0);
  require_arch(80, "cp.async", pc);
  Thread& t = *current;
  if (bytes_read > size)
    report("cp.async", fmt::format("{} copies {} bytes into {}", here(t, pc), bytes_read, size), where(pc), true);
  const std::size_t at = smem_offset(to, size, size, pc, "cp.async");
  if (reinterpret_cast<std::uintptr_t>(from) % size != 0)
    report("alignment",
           fmt::format("cp.async by {}\n      reads at an address that is no multiple of {}", here(t, pc), size),
           where(pc), true);
  const std::uint32_t group = t.groups_committed + 1;
  if (bytes_read > 0) touch_source_async(from, bytes_read, group, pc);
  touch_smem_async(at, size, group, pc);
  t.copies.push_back({t.cta->smem + at, static_cast<const std::byte*>(from), size, bytes_read, group, pc});
  if (machine->completes_now())
    arrive(t.copies.back());
  else
    std::memset(t.cta->smem + at, static_cast<int>(poison), size);
  async_event("cp.async", pc, 0, cost::async_issue);
}

void cp_async_commit() {
  const Pc pc = __builtin_return_address(0);
  require_arch(80, "cp.async.commit_group", pc);
  ++current->groups_committed;
  async_event("cp.async.commit_group", pc, current->groups_committed, cost::async_issue);
}

void cp_async_wait(std::uint32_t groups_in_flight) {
  const Pc pc = __builtin_return_address(0);
  require_arch(80, "cp.async.wait_group", pc);
  Thread& t = *current;
  complete(t, t.groups_committed > groups_in_flight ? t.groups_committed - groups_in_flight : 0);
  async_event("cp.async.wait_group", pc, groups_in_flight, cost::global_latency);
}

void cp_async_wait_all() {
  const Pc pc = __builtin_return_address(0);
  require_arch(80, "cp.async.wait_all", pc);
  Thread& t = *current;
  complete(t, ++t.groups_committed);
  async_event("cp.async.wait_all", pc, 0, cost::global_latency);
}

}  // namespace flash::gpu

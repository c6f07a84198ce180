// Atomic operations, relaxed, and the fence that makes them carry knowledge from one thread to another: what a thread
// did before a fence is known to whoever meets a later atomic of its on the same location and then makes a fence
// itself.
#include <cstring>
#include <type_traits>

#include "sim/gpu/numbers.hpp"
#include "sim/gpu/parts.hpp"

namespace flash::gpu {
namespace {

/// Checks, counts and passes knowledge on; the operation itself follows.
void begin(void* to, std::size_t bytes, Pc pc, const char* name) {
  --machine->changes;  // the access counts as one, the operation may change nothing
  access(to, bytes, Way::atomic, pc, name, bytes);
  pass_knowledge(to, true, true);
  count_instruction("atomic");
}

template <class Value>
Value load(const void* p) {
  Value value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

/// An atomic that changes nothing may be a loop that waits.
void changed_or_polled(const void* location, bool changed, Pc pc) {
  if (changed)
    ++machine->changes;
  else
    poll(location, pc, "atomic");
}

float add_f32(float* to, float x, Pc pc, const char* name) {
  begin(to, sizeof(float), pc, name);
  const float old = *to;
  // In global memory subnormal numbers are zeros (PTX ISA, atom).
  *to = machine->global.contains(to) ? flushed(flushed(old) + flushed(x)) : old + x;
  changed_or_polled(to, *to != old, pc);
  return old;
}

template <class Word>
Word result(Atomic kind, Word old, Word x, bool is_signed) {
  using Signed = std::make_signed_t<Word>;
  const auto before = static_cast<Signed>(old), given = static_cast<Signed>(x);
  switch (kind) {
    case Atomic::add: return old + x;
    case Atomic::max: return is_signed ? static_cast<Word>(std::max(before, given)) : std::max(old, x);
    case Atomic::min: return is_signed ? static_cast<Word>(std::min(before, given)) : std::min(old, x);
    case Atomic::exchange: return x;
    case Atomic::bit_or: return old | x;
    case Atomic::bit_and: return old & x;
    case Atomic::bit_xor: return old ^ x;
    case Atomic::increment: return old >= x ? 0 : old + 1;
    case Atomic::decrement: return old == 0 || old > x ? x : old - 1;
  }
  return old;
}

template <class Word>
Word store(Word* to, Word old, Word now, Pc pc) {
  *to = now;
  changed_or_polled(to, now != old, pc);
  return old;
}

template <class Word>
Word atomic(Atomic kind, Word* to, Word x, bool is_signed, Pc pc) {
  begin(to, sizeof x, pc, "atomic");
  const Word old = *to;
  return store(to, old, result(kind, old, x, is_signed), pc);
}

template <class Word>
Word atomic_cas(Word* to, Word expected, Word desired, Pc pc) {
  begin(to, sizeof expected, pc, "atom.cas");
  const Word old = *to;
  return store(to, old, old == expected ? desired : old, pc);
}

}  // namespace

float atomic_add(float* to, float x) { return add_f32(to, x, __builtin_return_address(0), "atom.add.f32"); }

double atomic_add(double* to, double x) {
  const Pc pc = __builtin_return_address(0);
  begin(to, sizeof x, pc, "atom.add.f64");
  const double old = *to;
  *to = old + x;
  changed_or_polled(to, *to != old, pc);
  return old;
}

void red_add_f32(float* to, float x) { add_f32(to, x, __builtin_return_address(0), "red.add.f32"); }

void red_add_f16x2(void* to, std::uint32_t pair) {
  begin(to, 4, __builtin_return_address(0), "red.add.f16x2");
  ++machine->changes;
  const auto old = load<std::uint32_t>(to);
  std::uint32_t sum = 0;
  for (int i = 0; i < 2; ++i) {
    const float both =
        from_f16(static_cast<std::uint16_t>(old >> 16 * i)) + from_f16(static_cast<std::uint16_t>(pair >> 16 * i));
    sum |= static_cast<std::uint32_t>(to_f16(both)) << 16 * i;
  }
  std::memcpy(to, &sum, sizeof sum);
}

std::uint32_t atomic(Atomic kind, std::uint32_t* to, std::uint32_t x, bool is_signed) {
  return atomic(kind, to, x, is_signed, __builtin_return_address(0));
}

std::uint64_t atomic(Atomic kind, std::uint64_t* to, std::uint64_t x, bool is_signed) {
  return atomic(kind, to, x, is_signed, __builtin_return_address(0));
}

std::uint32_t atomic_cas(std::uint32_t* to, std::uint32_t expected, std::uint32_t desired) {
  return atomic_cas(to, expected, desired, __builtin_return_address(0));
}

std::uint64_t atomic_cas(std::uint64_t* to, std::uint64_t expected, std::uint64_t desired) {
  return atomic_cas(to, expected, desired, __builtin_return_address(0));
}

void pass_knowledge(const void* location, bool writes, bool reads) {
  if (!machine->config.checks) return;
  Knowledge& there = machine->atomics[location];
  Thread& t = *current;
  if (reads) join(t.clock.seen, there);
  if (!writes) return;
  join(there, t.clock.released);
  there[t.cta->serial].raise(t.atomic_agent(), t.clock.own.of(t.atomic_agent()));
}

void thread_fence() {
  Thread& t = *current;
  Clock& knows = t.clock;
  if (!machine->config.checks) return;
  for (const auto& [cta, clock] : std::exchange(knows.seen, {}))
    (cta == t.cta->serial ? knows.own : knows.others[cta]).join(clock);
  knows.released = knows.others;
  knows.released[t.cta->serial].join(knows.own);
  knows.own.raise(t.index, t.tick() + 1);
}

void pause() { give_way(); }

}  // namespace flash::gpu

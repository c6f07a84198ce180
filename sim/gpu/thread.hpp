// CTAs, warps and threads of a running kernel.
#pragma once

#include <bit>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sim/gpu/fiber.hpp"
#include "sim/gpu/instructions.hpp"
#include "sim/gpu/shadow.hpp"
#include "sim/gpu/timeline.hpp"

namespace flash::gpu {

struct Cta;
struct Warp;

/// Why a thread does not run.
/// warp: for lanes that it meets; mates: until no other lane of its warp can run; change: for somebody to change
/// memory.
enum class Wait : std::uint8_t { nothing, warp, mates, barrier, change, done };

/// One access by a thread, kept until its warp's lanes can be looked at together.
struct Access {
  Pc pc;
  const std::byte* address;
  std::uint32_t bytes;
  bool shared;
  Moves moves;
};

/// A thread's local array that can be looked at by name.
struct Watched {
  const char* name;
  const void* local;
  std::size_t bytes;
  RegisterLayout layout;
};

/// A copy by cp.async whose data has not arrived, or not for sure.
struct AsyncCopy {
  std::byte* to;
  const std::byte* from;
  std::uint32_t size, bytes_read;
  std::uint32_t group;
  Pc pc;
  bool done = false;
};

struct Thread {
  Fiber fiber;
  uint3 thread_index{};
  unsigned index = 0;  ///< in its CTA: also its agent in clocks
  unsigned lane = 0;
  Warp* warp = nullptr;
  Cta* cta = nullptr;

  Wait wait = Wait::nothing;
  const char* doing = "";  ///< the call that it is in, or was in last
  Pc pc = nullptr;         ///< of that call
  void* operands = nullptr;
  bool leads = false;                 ///< acts for the lanes that wait with it
  unsigned barrier = 0, counted = 0;  ///< the one it waits at; what bar_count found there
  unsigned polls = 0;                 ///< looks at what others may change, since anybody changed anything
  unsigned same = 0;  ///< of them the last ones that were at one place and location, with nothing between
  const void* polled = nullptr;
  std::uint64_t changes_seen = 0;
  std::map<Pc, unsigned> passes;  ///< how often it was at a mark or an asynchronous instruction

  Clock clock;
  std::vector<AsyncCopy> copies;
  std::uint32_t groups_committed = 0;

  std::vector<Access> log;
  std::vector<Watched> watched;
  float cycles = 0;  ///< arithmetic since the warp's last event

  Tick tick() const { return clock.own.of(index); }
  unsigned copy_agent() const;    ///< of its cp.async
  unsigned atomic_agent() const;  ///< of its atomics: who meets them need not know what else the thread did
};

/// Lanes that meet at one warp-wide instruction.
struct Meeting {
  const char* name;
  Pc pc;
  std::uint32_t mask = 0, arrived = 0;
};

/// ptx::mark(name, value).
struct Mark {
  std::string_view name;
  int value;
};

struct Warp {
  unsigned index = 0;
  Cta* cta = nullptr;
  Thread* lanes[32] = {};
  std::uint32_t present = 0;  ///< lanes that have not exited
  std::uint32_t ready = 0;    ///< lanes that can run
  std::vector<Meeting> meetings;
  std::uint64_t time = 0;         ///< nominal cycles
  Pc in_flight = nullptr;         ///< the last access of global memory that it has not waited for
  std::map<Pc, unsigned> passes;  ///< the most of any lane
  std::vector<Mark> marks;        ///< the last of each name; one of an outer loop ends those within
};

constexpr std::uint32_t whole_warp = ~0u;

/// function(thread) for each lane of the mask.
template <class Function>
void for_lanes(const Warp& warp, std::uint32_t mask, Function&& function) {
  for (; mask; mask &= mask - 1) function(*warp.lanes[std::countr_zero(mask)]);
}

struct Barrier {
  unsigned need = 0, arrived = 0;  ///< threads; need 0: nobody is here
  Pc pc = nullptr;                 ///< of the first that came
  bool of_all = false;             ///< of all threads of the CTA
  unsigned counted = 0;            ///< of bar_count: those that said true
  std::vector<Thread*> waiting;    ///< one lane for each warp that waits
  Clock clock;
  std::uint64_t time = 0;
};

struct Named {
  std::size_t begin, end;  ///< bytes of shared memory
  std::string text;
  SharedLayout layout;
};

struct Cta {
  uint3 index{};
  std::uint32_t serial = 0;  ///< over all launches
  std::unique_ptr<std::byte[]> storage;
  std::byte* smem = nullptr;
  std::size_t smem_bytes = 0;
  Shadow shadow;
  std::vector<Named> names;
  std::deque<Thread> threads;
  std::deque<Warp> warps;
  Barrier barriers[16];
  unsigned present = 0;  ///< threads that have not exited
  unsigned slot = 0;     ///< of an SM, in the timeline
};

inline unsigned Thread::copy_agent() const { return static_cast<unsigned>(cta->threads.size()) + index; }
inline unsigned Thread::atomic_agent() const { return 2 * static_cast<unsigned>(cta->threads.size()) + index; }

}  // namespace flash::gpu

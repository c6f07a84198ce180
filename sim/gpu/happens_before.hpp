// Who knows of whose actions: vector clocks. An access races with an earlier one that its thread does not know of.
// (Lamport 1978; Flanagan and Freund, FastTrack, PLDI 2009.)
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

namespace flash::gpu {

using Tick = std::uint32_t;

/// One tick for each agent of a CTA. Agents are its threads, and after them
/// what they do out of their order: cp.async, and atomics.
class VectorClock {
 public:
  Tick of(unsigned agent) const { return agent < ticks_.size() ? ticks_[agent] : 0; }

  void raise(unsigned agent, Tick to) {
    if (agent >= ticks_.size()) ticks_.resize(agent + 1);
    ticks_[agent] = std::max(ticks_[agent], to);
  }

  void join(const VectorClock& other) {
    if (other.ticks_.size() > ticks_.size()) ticks_.resize(other.ticks_.size());
    for (std::size_t i = 0; i < other.ticks_.size(); ++i) ticks_[i] = std::max(ticks_[i], other.ticks_[i]);
  }

  void clear() { std::fill(ticks_.begin(), ticks_.end(), 0); }

 private:
  std::vector<Tick> ticks_;
};

/// Clocks of several CTAs, by serial number: what fences and atomics carry between them.
using Knowledge = std::map<std::uint32_t, VectorClock>;

inline void join(Knowledge& to, const Knowledge& from) {
  for (const auto& [cta, clock] : from) to[cta].join(clock);
}

/// What a thread, or a barrier of its CTA, knows: of its own CTA, and of others.
struct Clock {
  VectorClock own;
  Knowledge others;
  Knowledge released;  ///< what fences made ready to be passed on by atomics
  Knowledge seen;      ///< what atomics have met, to be known at the next fence

  /// Barriers carry the fences before them, too: they are sequentially consistent (PTX ISA, Fence-SC order).
  void join(const Clock& other) {
    own.join(other.own);
    gpu::join(others, other.others);
    gpu::join(released, other.released);
    gpu::join(seen, other.seen);
  }
};

/// One access, as a cell of shadow memory remembers it. All zero: none.
struct Epoch {
  std::uint64_t pc : 48 = 0;
  std::uint64_t agent : 16 = 0;
  Tick tick = 0;
  std::uint32_t cta : 25 = 0;   ///< numbered over all launches of a machine, from 1
  std::uint32_t bytes : 4 = 0;  ///< of the cell's four
  std::uint32_t write : 1 = 0;
  std::uint32_t atomic : 1 = 0;
  std::uint32_t async : 1 = 0;  ///< by an asynchronous instruction

  explicit operator bool() const { return tick != 0; }
};
static_assert(sizeof(Epoch) == 16);

/// Shadow of four bytes: the last write, the last read, and what else has not been overtaken. All zero: untouched.
struct Cell {
  Epoch write, read;
  std::uint32_t more = 0;    ///< list of further epochs in the Shadow that the cell belongs to; 0: none
  std::uint8_t written = 0;  ///< which bytes hold something
};

}  // namespace flash::gpu

// What observers of a run see: each thing that a worker did, with its tile, its place in the matrix and its source
// line.
#pragma once

#include <functional>
#include <source_location>

#include "sim/memory/range.hpp"
#include "sim/memory/sram.hpp"

namespace flash::sim {

using Location = std::source_location;

/// The values behind an event, for viewers.
struct Values {
  const void* data = nullptr;  // row-major; null in count-only mode
  Index rows = 0, cols = 0;
  bool is_double = false;
  double operator()(Index i, Index j) const {
    const Index at = i * cols + j;
    return is_double ? static_cast<const double*>(data)[at] : static_cast<const float*>(data)[at];
  }
};

/// `take` and `give_back`: room in SRAM; `fill`: one value in all elements.
enum class EventKind { take, give_back, fill, load, store, accumulate, compute };

/// One thing that a worker did.
struct Event {
  EventKind kind = EventKind::compute;
  const char* name = "";  ///< of the tensor, or of the tile
  Index worker = 0, batch = 0, head = 0;
  Range rows{}, cols{};                ///< of the tensor, or of the matrix that the tile is a part of
  Location where{};                    ///< empty for give_back
  const TensorInfo* tensor = nullptr;  ///< of load, store and accumulate
  Index first = 0;                     ///< element of the tensor [batch, heads, rows, cols] at which the tile begins
  Values values{};                     ///< of the tile; `data` tells tiles apart, from take to give_back
  Format format = Format::fp32;        ///< of the tile
  const Tally* tally = nullptr;        ///< the worker's counts so far, this event's among them
  Index held_bytes = 0;                ///< of SRAM
};

using Observer = std::function<void(const Event&)>;

/// One worker's SRAM and counters.
struct WorkerState {
  Sram sram;
  Tally tally;
  bool count_only = false, poison = false;
  const Observer* observer = nullptr;
  Index worker = 0, batch = 0, head = 0;
};

}  // namespace flash::sim

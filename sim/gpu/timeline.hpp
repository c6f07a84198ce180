// A nominal clock: what a kernel does in which order, and roughly how long. A shape, not a prediction.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/gpu/cuda_types.hpp"
#include "sim/gpu/shadow.hpp"

namespace flash::gpu {

/// Nominal cycles of a warp.
namespace cost {
constexpr unsigned mma_k8 = 8, mma_k16 = 16, ldmatrix = 8, shuffle = 4, vote = 4, barrier = 8, special = 8;
constexpr unsigned global_access = 4, global_latency = 400, shared_access = 2, async_issue = 4;
}  // namespace cost

struct Slice {
  const char* name;
  Pc pc;
  std::uint32_t cta;  ///< serial
  int warp;
  std::int64_t value;
  std::uint64_t begin, end;
  unsigned times = 1;  ///< neighbouring events of one place are one slice
  bool is_mark = false;
};

enum class Moves : std::uint8_t { read, write, both };  ///< both: an atomic

/// One lane's access to shared or global memory.
struct LaneAccess {
  std::size_t slice;  ///< in which it is shown
  const std::byte* address;
  std::uint32_t bytes;
  bool shared;
  Moves moves;
};

struct Track {
  std::string kernel;
  uint3 cta{};
  unsigned warps = 0;
  std::uint64_t begin = 0;  ///< when it starts on its SM
  unsigned sm = 0;
};

struct Timeline {
  std::vector<Slice> slices;
  std::vector<LaneAccess> accesses;    ///< in the order of their slices; needs Config::accesses
  std::vector<Track> tracks;           ///< by CTA serial − 1
  std::vector<std::uint64_t> sm_free;  ///< when each SM's slot is free again
  std::uint64_t launch_begin = 0;
};

}  // namespace flash::gpu

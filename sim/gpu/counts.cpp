// Banks and sectors. The lanes' accesses are kept until the warp meets, and then looked at as the instructions that
// they were: the k-th access of each lane at one place is one instruction of the warp.
#include <array>
#include <cstring>

#include "sim/gpu/parts.hpp"

namespace flash::gpu {
namespace {

constexpr unsigned banks = 32, bank_bytes = 4, sector_bytes = 32;

/// Accesses of one warp instruction.
using Together = std::vector<const Access*>;

/// Words that a bank has to serve one after the other: the most of any bank. One word for several lanes is one.
unsigned bank_rows(const Access* const* lanes, std::size_t count, const std::byte* smem) {
  std::array<std::array<std::uint32_t, 32>, banks> words;
  std::array<unsigned, banks> held{};
  unsigned most = 1;
  for (std::size_t i = 0; i < count; ++i) {
    const auto at = static_cast<std::uint32_t>(lanes[i]->address - smem);
    for (std::uint32_t word = at / bank_bytes; word * bank_bytes < at + lanes[i]->bytes; ++word) {
      auto& bank = words[word % banks];
      unsigned& n = held[word % banks];
      bool known = false;
      for (unsigned k = 0; k < n; ++k) known = known || bank[k] == word;
      if (known || n == bank.size()) continue;
      bank[n++] = word;
      most = std::max(most, n);
    }
  }
  return most;
}

/// 16 bytes a lane are served to a quarter of a warp at once, 8 bytes to a half.
void shared_instruction(const Together& lanes, const std::byte* smem) {
  const std::size_t bytes = lanes[0]->bytes, at_once = bytes >= 16 ? 8 : bytes == 8 ? 16 : 32;
  unsigned wavefronts = 0, least = 0;
  for (std::size_t i = 0; i < lanes.size(); i += at_once, ++least)
    wavefronts += bank_rows(&lanes[i], std::min(at_once, lanes.size() - i), smem);
  count_wavefronts(lanes[0]->pc, wavefronts, least);
}

void global_instruction(const Together& lanes) {
  static thread_local std::vector<std::uintptr_t> sectors;
  sectors.clear();
  std::uint64_t bytes = 0;
  for (const Access* a : lanes) {
    const auto first = reinterpret_cast<std::uintptr_t>(a->address);
    bytes += a->bytes;
    for (std::uintptr_t s = first / sector_bytes; s <= (first + a->bytes - 1) / sector_bytes; ++s) sectors.push_back(s);
  }
  std::sort(sectors.begin(), sectors.end());
  const auto touched = static_cast<std::uint64_t>(std::unique(sectors.begin(), sectors.end()) - sectors.begin());
  const std::uint64_t least = std::min(touched, (bytes + sector_bytes - 1) / sector_bytes);
  machine->counts.sectors += touched;
  machine->counts.least_sectors += least;
  LineCounts& line = machine->line_counts[lanes[0]->pc];
  ++line.accesses;
  line.sectors += touched;
  line.least_sectors += least;
}

/// Those of the slice that was shown last.
void keep_accesses(const Together& lanes) {
  Timeline& t = machine->timeline;
  for (const Access* a : lanes) t.accesses.push_back({t.slices.size() - 1, a->address, a->bytes, a->shared, a->moves});
}

}  // namespace

void count_wavefronts(Pc pc, unsigned wavefronts, unsigned least) {
  machine->counts.wavefronts += wavefronts;
  machine->counts.least_wavefronts += least;
  LineCounts& line = machine->line_counts[pc];
  ++line.accesses;
  line.wavefronts += wavefronts;
  line.least_wavefronts += least;
}

void count_instruction(const char* name) {
  if (machine->config.counts) ++machine->counts.instructions[name];
}

void look_at_log(Warp& warp, bool waits) {
  if (!machine->config.counts) return;
  std::array<std::size_t, 32> next{};
  static thread_local Together together;
  for (;;) {
    together.clear();
    for (unsigned l = 0; l < 32; ++l) {
      if (!warp.lanes[l]) continue;
      const auto& log = warp.lanes[l]->log;
      if (next[l] < log.size() && (together.empty() || log[next[l]].pc == together[0]->pc))
        together.push_back(&log[next[l]++]);
    }
    if (together.empty()) break;
    if (together[0]->shared) {
      shared_instruction(together, warp.cta->smem);
      memory_event(warp, "shared memory", together[0]->pc, cost::shared_access);
    } else {
      global_instruction(together);
      memory_event(warp, "global memory", warp.in_flight = together[0]->pc, cost::global_access);
    }
    if (machine->config.accesses) keep_accesses(together);
  }
  for (Thread* lane : warp.lanes)
    if (lane) lane->log.clear();
  if (waits && warp.in_flight)
    memory_event(warp, "global memory", std::exchange(warp.in_flight, nullptr), cost::global_latency);
}

}  // namespace flash::gpu

// What a thread asks about itself, its arithmetic on special units, and what it tells the stepper.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "sim/gpu/numbers.hpp"
#include "sim/gpu/parts.hpp"
#include "sim/gpu/source_line.hpp"

namespace flash::gpu {
uint3 thread_index() { return current->thread_index; }
uint3 block_index() { return current->cta->index; }
dim3 block_size() { return machine->launch->block; }
dim3 grid_size() { return machine->launch->grid; }

void* dynamic_smem(std::size_t bytes_used) {
  const Cta& cta = *current->cta;
  if (bytes_used > cta.smem_bytes) {
    const Pc pc = __builtin_return_address(0);
    report("bounds",
           fmt::format("{} uses {} bytes of shared memory, but its launch gave {}", here(*current, pc), bytes_used,
                       cta.smem_bytes),
           where(pc), true);
  }
  return cta.smem;
}

std::uint32_t shared_address(const void* p) {
  return static_cast<std::uint32_t>(static_cast<const std::byte*>(p) - current->cta->smem);
}

float ex2(float x) {
  if (current) current->cycles += cost::special;
  return flushed(std::exp2(flushed(x)));
}

std::uint32_t pack_f16(float low, float high) { return to_f16(low) | static_cast<std::uint32_t>(to_f16(high)) << 16; }
std::uint32_t pack_bf16(float low, float high) {
  if (current) require_arch(80, "cvt.rn.bf16x2", __builtin_return_address(0));
  return to_bf16(low) | static_cast<std::uint32_t>(to_bf16(high)) << 16;
}
float widen_f16(std::uint16_t x) { return from_f16(x); }
std::uint16_t round_f16(float x) { return to_f16(x); }
std::uint16_t round_bf16(float x) { return to_bf16(x); }
float2 unpack_f16(std::uint32_t pair) {
  return {from_f16(static_cast<std::uint16_t>(pair)), from_f16(static_cast<std::uint16_t>(pair >> 16))};
}

void mark(const char* name, int value) {
  const Pc pc = __builtin_return_address(0);
  if (!let_mates_run("mark", pc)) return;
  auto& marks = current->warp->marks;
  marks.erase(std::ranges::find(marks, name, &Mark::name), marks.end());
  marks.push_back({name, value});
  look_at_log(*current->warp, false);  // what came before the mark is shown before it
  event(at_mark, name, pc, value);
  wake_mates(pc);
}

void watch(const char* name, const void* local, std::size_t bytes, const RegisterLayout& layout) {
  for (Watched& w : current->watched)
    if (std::strcmp(w.name, name) == 0) {
      w = {name, local, bytes, layout};
      return;
    }
  current->watched.push_back({name, local, bytes, layout});
}

void name(const char* text, const void* shared, std::size_t bytes, const SharedLayout& layout) {
  Cta& cta = *current->cta;
  const auto at = static_cast<std::size_t>(static_cast<const std::byte*>(shared) - cta.smem);
  for (const Named& n : cta.names)
    if (n.begin == at && n.text == text) return;
  cta.names.push_back({at, at + bytes, text, layout});
}

}  // namespace flash::gpu

// What every kernel file needs on the host: which problems it refuses, and grids.
#pragma once

#include <utility>

#include "cuda/common/module.hpp"

namespace flash::cuda {

/// A grid of x · y · z CTAs; a number beyond 32 bits becomes the largest, which ptx::launch refuses.
inline dim3 grid(i64 x, i64 y = 1, i64 z = 1) {
  const auto clamped = [](i64 n) { return n > 0xffffffff ? 0xffffffffu : static_cast<unsigned>(n); };
  return {clamped(x), clamped(y), clamped(z)};
}

inline i64 ceil_div(i64 a, i64 b) { return (a + b - 1) / b; }

/// The last net below the host's own checks. @throws std::runtime_error, one sentence, for what no kernel here takes:
/// another d, heads that don't share evenly, a tensor at an address that 16-byte accesses can't take.
inline void require_taken(const char* name, const Problem& p) {
  if (p.d != 64 && p.d != 128)
    throw std::runtime_error("d = " + std::to_string(p.d) + " was asked of the kernel " + name +
                             ", which takes 64 and 128; take one of these or the CPU");
  if (p.kv_heads < 1 || p.heads % p.kv_heads != 0)
    throw std::runtime_error(std::to_string(p.heads) + " query heads were asked of " + std::to_string(p.kv_heads) +
                             " key/value heads, which they do not share evenly; take a multiple");
  const std::pair<const char*, const void*> tensors[] = {
      {"slopes", p.slopes}, {"Q", p.Q},   {"K", p.K},     {"V", p.V},           {"O", p.O},   {"O_acc", p.O_acc},
      {"l", p.l},           {"m", p.m},   {"LSE", p.LSE}, {"S", p.S},           {"P", p.P},   {"dO", p.dO},
      {"dQ", p.dQ},         {"dK", p.dK}, {"dV", p.dV},   {"dQ_acc", p.dQ_acc}, {"dP", p.dP}, {"dS", p.dS}};
  for (const auto& [tensor, address] : tensors)
    if (reinterpret_cast<std::uintptr_t>(address) % 16 != 0)
      throw std::runtime_error(std::string(tensor) + " was given to the kernel " + name +
                               " at an address that is no multiple of 16 bytes, but it is moved 16 bytes at a time; "
                               "align it");
}

}  // namespace flash::cuda

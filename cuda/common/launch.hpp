// What every kernel file needs on the host: which problems it refuses, and grids.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <type_traits>
#include <utility>

#include "cuda/common/module.hpp"
#include "cuda/common/visible_tiles.hpp"

namespace flash::cuda {

/// A grid of x · y · z CTAs; a number beyond 32 bits becomes the largest, which ptx::launch refuses.
inline dim3 grid(i64 x, i64 y = 1, i64 z = 1) {
  const auto clamped = [](i64 n) { return n > 0xffffffff ? 0xffffffffu : static_cast<unsigned>(n); };
  return {clamped(x), clamped(y), clamped(z)};
}

/// f(d) for the one of `sizes` that equals d, as a constant.
template <int... sizes, class F>
void with_head_size(int d, F f) {
  ((d == sizes ? f(std::integral_constant<int, sizes>()) : void()), ...);
}

/// The last net below the host's own checks. @throws std::runtime_error, one sentence, for what no kernel here takes:
/// another d, heads that don't share evenly, a tensor at an address that 16-byte accesses can't take.
inline void require_taken(const char* name, const Problem& p, std::initializer_list<int> head_sizes = {64, 128}) {
  if (std::find(head_sizes.begin(), head_sizes.end(), p.d) == head_sizes.end()) {
    std::string sizes;
    for (const int d : head_sizes) sizes += (sizes.empty() ? "" : ", ") + std::to_string(d);
    throw std::runtime_error("d = " + std::to_string(p.d) + " was asked of the kernel " + name + ", which takes " +
                             sizes + "; take one of these or the CPU");
  }
  if (p.kv_heads < 1 || p.heads % p.kv_heads != 0)
    throw std::runtime_error(std::to_string(p.heads) + " query heads were asked of " + std::to_string(p.kv_heads) +
                             " key/value heads, which they do not share evenly; take a multiple");
  const std::pair<const char*, const void*> tensors[] = {
      {"slopes", p.slopes}, {"Q", p.Q},   {"K", p.K},     {"V", p.V},           {"O", p.O},   {"O_acc", p.O_acc},
      {"l", p.l},           {"m", p.m},   {"LSE", p.LSE}, {"S", p.S},           {"P", p.P},   {"dO", p.dO},
      {"dQ", p.dQ},         {"dK", p.dK}, {"dV", p.dV},   {"dQ_acc", p.dQ_acc}, {"dP", p.dP}, {"dS", p.dS},
      {"D", p.D},           {"turn", p.turn}, {"partial_O", p.partial_O}, {"partial_LSE", p.partial_LSE}};
  for (const auto& [tensor, address] : tensors)
    if (reinterpret_cast<std::uintptr_t>(address) % 16 != 0)
      throw std::runtime_error(std::string(tensor) + " was given to the kernel " + name +
                               " at an address that is no multiple of 16 bytes, but it is moved 16 bytes at a time; "
                               "align it");
}

/// @throws std::runtime_error, one sentence, for more splits of the keys than the kernel combines, or less than one.
inline void require_splits(const char* name, int splits, int most) {
  if (splits < 1 || splits > most)
    throw std::runtime_error(std::to_string(splits) + " splits were asked of the kernel " + name +
                             ", which combines 1 to " + std::to_string(most) + "; take one of these");
}

}  // namespace flash::cuda

// Small problems and small questions that several test files share.
#pragma once

#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "stages/common/draw.hpp"

namespace flash {

inline Options causal() {
  Options options;
  options.causal = true;
  return options;
}

/// Random q, k, v and dO.
inline Inputs drawn_problem(const Shape& shape, Format dtype, std::uint64_t seed) {
  Inputs in = draw_inputs(shape, dtype, seed);
  draw_dout(in, seed);
  return in;
}

/// Two thirds may attend.
inline std::vector<std::uint8_t> random_mask(Index size, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::uint8_t> mask(static_cast<std::size_t>(size));
  for (auto& value : mask) value = random() % 3 != 0;
  return mask;
}

/// The sentence of the Refused that `body` throws; empty when it throws none.
inline std::string refusal(const std::function<void()>& body) {
  try {
    body();
  } catch (const Refused& refused) {
    return refused.what();
  }
  return {};
}

}  // namespace flash

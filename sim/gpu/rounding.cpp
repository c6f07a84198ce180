// Rounding to odd: a result that is not exact becomes the one of its two neighbours whose last bit is 1. Rounded once
// more, to a format with at least two bits less, it is what rounding at once would have given.
#include <bit>
#include <cmath>

#include "sim/gpu/instructions.hpp"

namespace flash::gpu {
namespace {

/// `nearest` is a number rounded to nearest, `rest` the sign of what it lacks.
float odd(float nearest, double rest) {
  if (!(rest < 0 || rest > 0)) return nearest;
  const auto bits = std::bit_cast<std::uint32_t>(nearest);
  const bool too_large = std::signbit(nearest) != (rest < 0);
  return std::bit_cast<float>((too_large ? bits - 1 : bits) | 1);
}

}  // namespace

float to_odd(long double x) {
  const auto nearest = static_cast<float>(x);
  return std::isfinite(x) ? odd(nearest, static_cast<double>(x - static_cast<long double>(nearest))) : nearest;
}

float fma_to_odd(float x, float y, float z) {
  const double product = static_cast<double>(x) * y;  // exact
  const double sum = product + z;
  const auto nearest = static_cast<float>(sum);
  if (!std::isfinite(sum)) return nearest;
  const double rest = sum - nearest;
  if (rest != 0) return odd(nearest, rest);
  // What the sum itself has lost (Knuth, TAOCP 4.2.2, theorem B).
  const double part = sum - product;
  return odd(nearest, (product - (sum - part)) + (z - part));
}

}  // namespace flash::gpu

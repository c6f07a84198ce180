#include "sim/gpu/architecture.hpp"

#include <stdexcept>
#include <string>

namespace flash::gpu {

const Architecture& architecture(int number) {
  constexpr std::size_t KiB = 1024;
  static constexpr Architecture known[] = {
      {75, "Turing", 64 * KiB, 64 * KiB, 1024, 16},
      {80, "Ampere", 164 * KiB, 163 * KiB, 2048, 32},
      {90, "Hopper", 228 * KiB, 227 * KiB, 2048, 32},
      {100, "Blackwell", 228 * KiB, 227 * KiB, 2048, 32},
  };
  std::string names;
  for (const Architecture& a : known) {
    if (a.number == number) return a;
    names += (names.empty() ? "sm_" : ", sm_") + std::to_string(a.number);
  }
  throw std::runtime_error("a virtual GPU of architecture sm_" + std::to_string(number) +
                           " was asked, but there are " + names + "; take one of those");
}

}  // namespace flash::gpu

#include "sim/gpu/architecture.hpp"

#include <fmt/format.h>

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
    names += fmt::format("{}sm_{}", names.empty() ? "" : ", ", a.number);
  }
  throw std::runtime_error(
      fmt::format("a virtual GPU of sm_{} was asked for, but there are {}; take one of those", number, names));
}

}  // namespace flash::gpu

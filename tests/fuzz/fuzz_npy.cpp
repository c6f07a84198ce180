// The .npy reader takes any bytes: it returns an array or refuses in a sentence.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "stages/common/npy.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const flash::Array array = flash::parse_npy(std::as_bytes(std::span(data, size)), "fuzzed.npy");
    flash::Index elements = 1;
    for (const flash::Index n : array.shape) elements *= n;
    if (array.shape.empty() || elements != static_cast<flash::Index>(array.data.size())) std::abort();
  } catch (const flash::Refused& refused) {
    if (refused.what()[0] == '\0') std::abort();
  }
  return 0;
}

// What a specimen is: a small right kernel with its own check, into which the zoo's patches plant mistakes.
#pragma once

#include <cstddef>
#include <string>

#include "cuda/ptx/ptx.hpp"

/// Global memory of the virtual GPU: zeros that may be read (given), or nothing that may be read before it is written.
using Allocate = void* (*)(const char* name, std::size_t bytes, bool given);

struct Specimen {
  int arch;                          ///< 75 is sm_75
  std::string (*run)(Allocate);      ///< launches the kernels; what is wrong with their numbers, or nothing
};

#define FLASH_SPECIMEN extern "C" __attribute__((visibility("default"))) const Specimen flash_specimen

// CUDA C++ as a learner writes it: kernels that are right, and some that are wrong.
#pragma once

#include "tests/kernels/right.hpp"
#include "tests/kernels/wrong.hpp"

/// The symbol that language.cu exports: `flash_language`.
struct LanguageKernels {
  RightKernels right;
  WrongKernels wrong;
  Right vectors;  ///< each vector type once from x to y
  int vector_types;
};

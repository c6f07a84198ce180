// The one place that includes Eigen. Cling compiles with -march=native and the library does not:
// without one agreed alignment the two would lay out the same objects differently.
#pragma once

#ifndef EIGEN_MAX_ALIGN_BYTES
#define EIGEN_MAX_ALIGN_BYTES 64
#endif
static_assert(EIGEN_MAX_ALIGN_BYTES == 64, "include sim/memory/eigen.hpp before any Eigen header");

#include <Eigen/Core>

namespace flash {

using Index = Eigen::Index;

}  // namespace flash

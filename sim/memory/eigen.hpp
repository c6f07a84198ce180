// The one place that includes Eigen. A notebook's compiler (Cling) uses -march=native and the library does not: without
// one agreed alignment the two would lay out the same objects differently.
#pragma once

#ifndef EIGEN_MAX_ALIGN_BYTES
#define EIGEN_MAX_ALIGN_BYTES 64
#endif
static_assert(EIGEN_MAX_ALIGN_BYTES == 64, "include sim/memory/eigen.hpp before any Eigen header");

#include <Eigen/Core>

namespace Eigen::internal {

/// Eigen's exp of a packet ends at 3e-39 (6e-309 in fp64) and never is 0: what is masked, e^(−∞), would leave a trace.
/// So below the smallest normal number it is 0 here.
template <class Real>
struct exp_down_to_zero {
  Real operator()(Real x) const { return numext::exp(x); }
  template <class Packet>
  Packet packetOp(const Packet& x) const {
    constexpr Real smallest = sizeof(Real) == 4 ? -87.336544 : -708.39641;  // ln of that number
    return pselect(pcmp_lt(x, pset1<Packet>(smallest)), pzero(x), pexp(x));
  }
};
template <>
struct scalar_exp_op<float> : exp_down_to_zero<float> {};
template <>
struct scalar_exp_op<double> : exp_down_to_zero<double> {};

}  // namespace Eigen::internal

namespace flash {

using Index = Eigen::Index;

}  // namespace flash

// Published HBM traffic beside what named ways of accounting give. Every number but the printed and the measured ones
// is computed here, from the passes over N×N and N×d matrices that an accounting counts.
#pragma once

#include <string>
#include <vector>

#include "sim/memory/eigen.hpp"

namespace flash::theory {

/// Bytes of batch and heads together.
struct Accounting {
  std::string name;
  Index read = 0, write = 0;
  bool measured = false;  ///< quoted, else computed
  Index total() const { return read + write; }
};

/// One printed figure and the accountings held against it.
struct PublishedFigure {
  std::string source;     ///< paper, edition, table, setting
  double printed_GB = 0;  ///< decimal: 10⁹ bytes
  std::vector<Accounting> accountings;
  std::string remark;
  /// (accounting − printed) / printed
  double deviation(const Accounting& a) const { return static_cast<double>(a.total()) / (printed_GB * 1e9) - 1; }
};

/// FA1's table left in Figure 2 (forward and backward, 64 × 16 heads of N = 1024, d = 64, fp16): 40.3 and 35.3 GB
/// for standard attention in its two editions, 4.4 GB for FlashAttention; beside them PyTorch's kernels today.
std::vector<PublishedFigure> published_figures();

}  // namespace flash::theory

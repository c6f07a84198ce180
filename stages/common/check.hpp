// The check behind every "equals the oracle": outputs against fp64, within what the format can hold.
#pragma once

#include <string>
#include <vector>

#include "stages/common/bounds.hpp"
#include "stages/common/inputs.hpp"

namespace flash {

/// What outputs are compared with.
struct Reference {
  Outputs oracle;
  Outputs baseline;
  Bounds bounds;
  bool round_scores = false;
};

/// Oracle, baseline and bounds of one problem. `round_scores`: the program to be judged stores S and dP in the format.
Reference reference(const Inputs& inputs, const Options& options, bool backward, bool round_scores = false);

/// One output (o, lse, dq, dk or dv) beside the oracle's.
struct OutputCheck {
  std::string name;
  double error = 0;          ///< at `worst`; where o, dq, dk, dv pass this is the largest
  double baseline = 0;       ///< e_base: the baseline's largest error
  double tolerance = 0;      ///< at `worst`
  std::vector<Index> worst;  ///< element with the largest error / tolerance, or the first that fails: [batch, head, row,
                             ///< channel], lse [.., row]
  double correlation = 1;    ///< with the oracle, 1 where it is not asked for
  bool pass = true;
  std::string message;  ///< what failed, naming the first bad element; empty when it passed
};

/// What a run was found to be: one entry for each output.
struct CheckResult {
  std::vector<OutputCheck> outputs;
  bool pass() const;
  std::string message() const;  ///< the failed outputs' messages, one a line
};

/// Compares `got` with the oracle; dq, dk, dv only where the oracle has them. An output passes when
/// - every error is within 2·e_base + 4·eps·X: eps is the format's and X, for o, max|V|/(1−p) (p: dropout) or what
///   large scores make of it where that is more, and for a gradient its natural magnitude (largest Bounds::typical):
///   the terms that are rounded on the way to it, and itself;
/// - every element is within what any right program may lose (Bounds::worst), which follows the element's own row, so
///   that a wrong small row among large ones is seen;
/// - lse is within 4·eps_fp32·max(1,|LSE|) (fp64's in fp64) plus what its own row's scores may lose in fp32, plus
///   2·e_base where scores are stored in 16 bits;
/// - o and gradients correlate with the oracle about as well as the baseline does, where 64 elements or more differ;
/// - infinities are equal, and NaN stands exactly where the oracle has it.
CheckResult check(const Outputs& got, const Reference& reference, const Inputs& inputs, const Options& options);

/// The same with the bounds taken here.
CheckResult check(const Outputs& got, const Outputs& oracle, const Outputs& baseline, const Inputs& inputs,
                  const Options& options, bool round_scores = false);

}  // namespace flash

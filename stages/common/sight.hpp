// Which keys a query sees, all masks together: for the host, before and after a run.
#pragma once

#include "stages/common/inputs.hpp"
#include "stages/common/rules.hpp"

namespace flash {

class Sight {
 public:
  Sight(const Inputs& in, const Options& o)
      : in_(in), o_(o), rule_(rules::visibility(in.shape.Nq, in.shape.Nk, o.causal, o.window.left, o.window.right)) {}

  /// Does query i of head h see key j?
  bool operator()(Index b, Index h, Index i, Index j) const {
    const Shape& s = in_.shape;
    if (!rules::visible(rule_, i, j)) return false;
    if (!in_.mask.empty()) {
      const Index bh = (in_.mask_batch == 1 ? 0 : b) * in_.mask_heads + (in_.mask_heads == 1 ? 0 : h);
      if (!in_.mask[(bh * s.Nq + i) * s.Nk + j]) return false;
    }
    return in_.block_mask.empty() || in_.block_mask[i / o_.br * ((s.Nk + o_.bc - 1) / o_.bc) + j / o_.bc];
  }

  /// Does it see any?
  bool any(Index b, Index h, Index i) const {
    for (Index j = 0; j < in_.shape.Nk; ++j)
      if ((*this)(b, h, i, j)) return true;
    return false;
  }

 private:
  const Inputs& in_;
  const Options& o_;
  rules::Visibility rule_;
};

}  // namespace flash

#include "stages/common/nonfinite.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "stages/common/sight.hpp"

namespace flash {

namespace {

std::vector<bool> take_out(std::vector<double>& values, Index width) {
  std::vector<bool> rows(width > 0 ? values.size() / width : 0);
  for (std::size_t at = 0; at < values.size(); ++at) {
    if (std::isfinite(values[at])) continue;
    rows[at / width] = true;
    values[at] = 0;
  }
  return rows;
}

bool any_of(const std::vector<bool>& rows) { return std::ranges::find(rows, true) != rows.end(); }

void mark(std::vector<double>& values, Index row, Index width) {
  if (!values.empty()) std::fill_n(values.begin() + row * width, width, std::numeric_limits<double>::quiet_NaN());
}

}  // namespace

bool NonfiniteRows::any() const { return any_of(q) || any_of(k) || any_of(v) || any_of(dout); }

NonfiniteRows take_out_nonfinite(Inputs& in) {
  return {take_out(in.q, in.shape.d), take_out(in.k, in.shape.d), take_out(in.v, in.shape.dv),
          take_out(in.dout, in.shape.dv)};
}

void mark_nonfinite(const NonfiniteRows& bad, const Inputs& in, const Options& o, Outputs& out) {
  const Shape& s = in.shape;
  const Sight sees(in, o);
  for (Index b = 0; b < s.batch; ++b)
    for (Index h = 0; h < s.heads; ++h)
      for (Index i = 0; i < s.Nq; ++i) {
        const Index row = (b * s.heads + h) * s.Nq + i;
        const Index first_key = (b * s.kv_heads + rules::kv_head(h, s.heads, s.kv_heads)) * s.Nk;
        if (!sees.any(b, h, i)) continue;  // O = 0, LSE = −∞, no gradient, whatever q and dO hold
        bool sees_any = false, forward = false;
        for (Index j = 0; j < s.Nk; ++j) {
          if (!sees(b, h, i, j)) continue;
          sees_any = true;
          forward = forward || bad.q[row] || bad.k[first_key + j] || bad.v[first_key + j];
        }
        if (!sees_any) continue;  // O = 0, LSE = −∞ whatever its q
        if (forward) {
          mark(out.o, row, s.dv);
          mark(out.lse, row, 1);
        }
        if (out.dq.empty() || !(forward || bad.dout[row])) continue;
        mark(out.dq, row, s.d);
        for (Index j = 0; j < s.Nk; ++j)
          if (sees(b, h, i, j)) mark(out.dk, first_key + j, s.d), mark(out.dv, first_key + j, s.dv);
      }
}

std::string first_nonfinite(const Inputs& in) {
  const auto find = [](const char* name, const std::vector<double>& values, Index heads, Index rows,
                       Index cols) -> std::string {
    const auto at = std::ranges::find_if_not(values, [](double x) { return std::isfinite(x); });
    if (at == values.end()) return {};
    const Index n = at - values.begin();
    return fmt::format("{}[{},{},{},{}] is {}", name, n / (cols * rows * heads), n / (cols * rows) % heads,
                       n / cols % rows, n % cols, *at);
  };
  const Shape& s = in.shape;
  for (std::string found : {find("q", in.q, s.heads, s.Nq, s.d), find("k", in.k, s.kv_heads, s.Nk, s.d),
                            find("v", in.v, s.kv_heads, s.Nk, s.dv), find("dout", in.dout, s.heads, s.Nq, s.dv)})
    if (!found.empty()) return found;
  return {};
}

}  // namespace flash

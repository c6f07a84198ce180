#include "stages/common/oracle.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string_view>

namespace flash {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// Row `row` of an array whose rows have `width` elements.
const double* row_of(const std::vector<double>& array, Index row, Index width) { return array.data() + row * width; }
double* row_of(std::vector<double>& array, Index row, Index width) { return array.data() + row * width; }

/// x·y, in four sums that do not wait for each other.
double dot(const double* x, const double* y, Index n) {
  double sum[4] = {0, 0, 0, 0};
  Index c = 0;
  for (; c + 4 <= n; c += 4) {
    for (Index lane = 0; lane < 4; ++lane) sum[lane] += x[c + lane] * y[c + lane];
  }
  for (; c < n; ++c) sum[0] += x[c] * y[c];
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/// y += a·x
void add_scaled(double* y, double a, const double* x, Index n) {
  for (Index c = 0; c < n; ++c) y[c] += a * x[c];
}

Index blocks(Index length, Index block) { return (length + block - 1) / block; }

void require_size(std::string_view name, std::size_t size, Index expected) {
  if (static_cast<Index>(size) != expected) {
    throw Refused(
        fmt::format("{} has {} elements where the shape needs {}; give arrays of one problem", name, size, expected));
  }
}

bool all_finite(const double* x, Index n) {
  return std::all_of(x, x + n, [](double value) { return std::isfinite(value); });
}

std::vector<bool> finite_rows(const std::vector<double>& array, Index rows, Index width) {
  std::vector<bool> finite;
  for (Index row = 0; row < rows; ++row) finite.push_back(all_finite(row_of(array, row, width), width));
  return finite;
}

std::vector<double> zeros(Index size) { return std::vector<double>(static_cast<std::size_t>(size), 0.0); }

/// Gradients that query row i of head h gives: its own dQ, and its share of dK and dV.
void add_gradients(const Inputs& in, double scale, const SoftmaxRow& row, Index query, Index first_key, Outputs& out) {
  const Index d = in.shape.d, dv = in.shape.dv;
  const double* dO = row_of(in.dout, query, dv);
  const double* Q = row_of(in.q, query, d);
  double* dQ = row_of(out.dq, query, d);
  const double D = dot(dO, row_of(out.o, query, dv), dv);
  for (std::size_t n = 0; n < row.keys.size(); ++n) {
    const Index key = first_key + row.keys[n];
    add_scaled(row_of(out.dv, key, dv), row.p[n] * row.z[n], dO, dv);
    const double dP = row.z[n] * dot(dO, row_of(in.v, key, dv), dv);
    const double dS = row.p[n] * (dP - D);
    const double dX = scale * dS * row.ds_dx[n];
    add_scaled(dQ, dX, row_of(in.k, key, d), d);
    add_scaled(row_of(out.dk, key, d), dX, Q, d);
  }
}

}  // namespace

std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter, std::uint64_t key) {
  auto key_low = static_cast<std::uint32_t>(key), key_high = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t even = std::uint64_t{counter[0]} * 0xD2511F53u, odd = std::uint64_t{counter[2]} * 0xCD9E8D57u;
    counter = {static_cast<std::uint32_t>(odd >> 32) ^ counter[1] ^ key_low, static_cast<std::uint32_t>(odd),
               static_cast<std::uint32_t>(even >> 32) ^ counter[3] ^ key_high, static_cast<std::uint32_t>(even)};
    key_low += 0x9E3779B9u;   // the golden ratio
    key_high += 0xBB67AE85u;  // √3 − 1
  }
  return counter;
}

OracleRules::OracleRules(const Inputs& in, const Options& o) : inputs(in), options(o) {
  const Shape& s = inputs.shape;
  if (s.heads < 1 || s.kv_heads < 1 || s.heads % s.kv_heads != 0) {
    throw Refused(
        fmt::format("{} query heads do not share {} key/value heads evenly; give a multiple", s.heads, s.kv_heads));
  }
  require_size("q", inputs.q.size(), s.batch * s.heads * s.Nq * s.d);
  require_size("k", inputs.k.size(), s.batch * s.kv_heads * s.Nk * s.d);
  require_size("v", inputs.v.size(), s.batch * s.kv_heads * s.Nk * s.dv);
  if (!inputs.slopes.empty()) require_size("slopes", inputs.slopes.size(), s.heads);
  if (!inputs.mask.empty())
    require_size("mask", inputs.mask.size(), inputs.mask_batch * inputs.mask_heads * s.Nq * s.Nk);
  if (!inputs.block_mask.empty()) {
    if (options.br < 1 || options.bc < 1) throw Refused("a block mask was given without block sizes; give br and bc");
    require_size("block mask", inputs.block_mask.size(), blocks(s.Nq, options.br) * blocks(s.Nk, options.bc));
  }
  finite_q_ = finite_rows(inputs.q, s.batch * s.heads * s.Nq, s.d);
  finite_k_ = finite_rows(inputs.k, s.batch * s.kv_heads * s.Nk, s.d);
  finite_v_ = finite_rows(inputs.v, s.batch * s.kv_heads * s.Nk, s.dv);
}

Index OracleRules::kv_head(Index h) const { return h / (inputs.shape.heads / inputs.shape.kv_heads); }

bool OracleRules::sees(Index b, Index h, Index i, Index j) const {
  const Shape& s = inputs.shape;
  const Index ahead = j - (i + (s.Nk - s.Nq));  // keys by which j lies after the row's centre
  if (options.causal && ahead > 0) return false;
  if (options.window.left >= 0 && -ahead > options.window.left) return false;
  if (options.window.right >= 0 && ahead > options.window.right) return false;
  if (!inputs.mask.empty()) {
    const Index mask_b = inputs.mask_batch == 1 ? 0 : b, mask_h = inputs.mask_heads == 1 ? 0 : h;
    const Index at = ((mask_b * inputs.mask_heads + mask_h) * s.Nq + i) * s.Nk + j;
    if (inputs.mask[static_cast<std::size_t>(at)] == 0) return false;
  }
  if (!inputs.block_mask.empty()) {
    const Index at = i / options.br * blocks(s.Nk, options.bc) + j / options.bc;
    if (inputs.block_mask[static_cast<std::size_t>(at)] == 0) return false;
  }
  return true;
}

std::vector<Index> OracleRules::visible_keys(Index b, Index h, Index i) const {
  std::vector<Index> keys;
  for (Index j = 0; j < inputs.shape.Nk; ++j) {
    if (sees(b, h, i, j)) keys.push_back(j);
  }
  return keys;
}

bool OracleRules::finite(Index b, Index h, Index i, const std::vector<Index>& keys) const {
  const Shape& s = inputs.shape;
  const Index query = (b * s.heads + h) * s.Nq + i, first_key = (b * s.kv_heads + kv_head(h)) * s.Nk;
  return finite_q_[static_cast<std::size_t>(query)] && std::all_of(keys.begin(), keys.end(), [&](Index j) {
           const auto key = static_cast<std::size_t>(first_key + j);
           return finite_k_[key] && finite_v_[key];
         });
}

double OracleRules::alibi(Index h, Index i, Index j) const {
  if (inputs.slopes.empty()) return 0;
  const Index distance = std::abs(i + (inputs.shape.Nk - inputs.shape.Nq) - j);
  return static_cast<double>(inputs.slopes[static_cast<std::size_t>(h)]) * static_cast<double>(distance);
}

double OracleRules::dropout_factor(Index b, Index h, Index i, Index j) const {
  const double p = options.dropout;
  if (p == 0) return 1;
  const auto word32 = [](Index value) { return static_cast<std::uint32_t>(value); };
  const auto words = philox4x32({word32(j / 4), word32(i), word32(h), word32(b)}, options.dropout_seed);
  return words[static_cast<std::size_t>(j % 4)] >= p * 0x1p32 ? 1 / (1 - p) : 0;
}

SoftmaxRow softmax_row(const OracleRules& rules, Index b, Index h, Index i) {
  const Inputs& in = rules.inputs;
  const Shape& shape = in.shape;
  const double scale = softmax_scale(shape, rules.options), c = rules.options.softcap;
  const double* Q = row_of(in.q, (b * shape.heads + h) * shape.Nq + i, shape.d);
  const Index first_key = (b * shape.kv_heads + rules.kv_head(h)) * shape.Nk;

  SoftmaxRow row{rules.visible_keys(b, h, i), {}, {}, {}, {}, -kInfinity};
  double m = -kInfinity;
  for (const Index j : row.keys) {
    const double x = scale * dot(Q, row_of(in.k, first_key + j, shape.d), shape.d);
    const double tanh = c > 0 ? std::tanh(x / c) : 0;
    row.s.push_back((c > 0 ? c * tanh : x) - rules.alibi(h, i, j));
    row.ds_dx.push_back(1 - tanh * tanh);
    row.z.push_back(rules.dropout_factor(b, h, i, j));
    m = std::max(m, row.s.back());
  }
  double l = 0;
  for (const double s : row.s) {
    row.p.push_back(std::exp(s - m));
    l += row.p.back();
  }
  if (!rules.finite(b, h, i, row.keys)) l = kNaN;
  for (double& p : row.p) p /= l;
  if (!row.keys.empty()) row.lse = m + std::log(l);
  return row;
}

Outputs oracle(const Inputs& in, const Options& options, bool backward) {
  const OracleRules rules(in, options);
  const Shape& s = in.shape;
  const double scale = softmax_scale(s, options);
  const Index rows = s.batch * s.heads * s.Nq, keys = s.batch * s.kv_heads * s.Nk;
  Outputs out{zeros(rows * s.dv), zeros(rows), {}, {}, {}};
  if (backward) {
    require_size("dout", in.dout.size(), rows * s.dv);
    out.dq = zeros(rows * s.d);
    out.dk = zeros(keys * s.d);
    out.dv = zeros(keys * s.dv);
  }
  for (Index query = 0; query < rows; ++query) {
    const Index i = query % s.Nq, h = query / s.Nq % s.heads, b = query / s.Nq / s.heads;
    const Index first_key = (b * s.kv_heads + rules.kv_head(h)) * s.Nk;
    SoftmaxRow row = softmax_row(rules, b, h, i);
    out.lse[static_cast<std::size_t>(query)] = row.lse;
    for (std::size_t n = 0; n < row.keys.size(); ++n) {
      add_scaled(row_of(out.o, query, s.dv), row.p[n] * row.z[n], row_of(in.v, first_key + row.keys[n], s.dv), s.dv);
    }
    if (!backward) continue;
    if (!all_finite(row_of(in.dout, query, s.dv), s.dv)) std::fill(row.p.begin(), row.p.end(), kNaN);
    add_gradients(in, scale, row, query, first_key, out);
  }
  return out;
}

}  // namespace flash

#include "sim/theory/closed_forms.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/theory/blocks.hpp"

namespace flash::theory {

// ---- traffic

namespace {

Index total(const std::map<std::string, Index>& elements) {
  Index sum = 0;
  for (const auto& [tensor, n] : elements) sum += n;
  return sum;
}

Index total_bytes(const std::map<std::string, Index>& elements, Format dtype) {
  Index sum = 0;
  for (const auto& [tensor, n] : elements) sum += n * element_bytes(tensor, dtype);
  return sum;
}

void add(std::map<std::string, Index>& elements, const std::string& tensor, Index n) {
  if (n != 0) elements[tensor] += n;
}

}  // namespace

Index Traffic::elements() const { return total(read) + total(write) + 2 * total(rmw); }

Traffic operator+(Traffic a, const Traffic& b) {
  for (const auto& [tensor, n] : b.read) add(a.read, tensor, n);
  for (const auto& [tensor, n] : b.write) add(a.write, tensor, n);
  for (const auto& [tensor, n] : b.rmw) add(a.rmw, tensor, n);
  return a;
}

Index element_bytes(std::string_view tensor, Format dtype) {
  if (tensor == "mask") return 1;
  if (tensor == "slopes" || tensor == "turn") return 4;
  for (const std::string_view kept_wide : {"l", "m", "LSE", "D", "O_acc", "dQ_acc", "partial_O", "partial_LSE"}) {
    if (tensor == kept_wide) return bytes_per_element(accumulator(dtype));
  }
  return bytes_per_element(dtype);
}

Index bytes(const Traffic& traffic, Format dtype) {
  return total_bytes(traffic.read, dtype) + total_bytes(traffic.write, dtype) + 2 * total_bytes(traffic.rmw, dtype);
}

// ---- what a mask leaves of the tile grid

namespace {

/// Keys that a query sees before and after its centre i + (Nk − Nq).
struct Reach {
  Index left, right;
};

Reach reach(const Shape& shape, const ClosedFormOptions& options) {
  const Index everything = shape.Nq + shape.Nk;  // as good as infinity, and no sum of it overflows
  const auto side = [&](std::int64_t n) {
    return n < 0 ? everything : static_cast<Index>(std::min<std::int64_t>(n, everything));
  };
  return {side(options.window.left), options.causal ? 0 : side(options.window.right)};
}

/// [begin, end); empty when end <= begin.
struct Span {
  Index begin, end;
  Index size() const { return std::max<Index>(0, end - begin); }
};

/// Keys that queries [i0, i1) see between them. Their windows overlap or touch, so that the union is one interval.
Span keys_seen(const Shape& s, const Reach& r, Index i0, Index i1) {
  const Index shift = s.Nk - s.Nq;
  return {std::max<Index>(0, i0 + shift - r.left), std::min(s.Nk, i1 + shift + r.right)};
}

/// Queries that see any of the keys [j0, j1).
Span queries_seeing(const Shape& s, const Reach& r, Index j0, Index j1) {
  const Index shift = s.Nk - s.Nq;
  return {std::max<Index>(0, j0 - shift - r.right), std::min(s.Nq, j1 - shift + r.left)};
}

/// How a row's Tc column tiles are shared out.
struct Splits {
  Index per = 1;    ///< column tiles of one split
  Index count = 1;  ///< splits that get any
};

Splits shared_out(Index Tc, Index splits) {
  const Index per = std::max<Index>(1, ceil_div(Tc, splits));
  return {per, std::max<Index>(1, ceil_div(Tc, per))};
}

/// Sums over visited tiles.
struct Visited {
  Index R = 0;      ///< Σ rows: query rows that the column blocks touch
  Index K = 0;      ///< Σ cols, K̂ of the texts: keys that the row blocks load
  Index A = 0;      ///< Σ rows·cols
  Index tiles = 0;  ///< Σ 1
  Index U = 0;      ///< query rows of row blocks with any visited tile; each split has row blocks of its own
  Index C = 0;      ///< keys of column blocks with any visited tile
};

/// Keys of the column blocks that any query sees.
Index seen_keys(const Shape& s, const ClosedFormOptions& options, const Reach& r, Index Br, Index Bc) {
  const Index Tc = ceil_div(s.Nk, Bc);
  Index keys = 0;
  for (Index j = 0; j < Tc; ++j) {
    const Index j0 = j * Bc, j1 = std::min(s.Nk, j0 + Bc);
    const Span queries = queries_seeing(s, r, j0, j1);
    bool seen = queries.size() > 0 && options.block_mask.empty();
    for (Index i = queries.begin / Br; !options.block_mask.empty() && i * Br < queries.end; ++i)
      seen = seen || options.block_mask[static_cast<std::size_t>(i * Tc + j)] != 0;
    if (seen) keys += j1 - j0;
  }
  return keys;
}

Visited visited(const Shape& s, const ClosedFormOptions& options, const Splits& splits, Index Br, Index Bc) {
  const Reach r = reach(s, options);
  const Index Tr = ceil_div(s.Nq, Br), Tc = ceil_div(s.Nk, Bc);
  Visited sum;
  sum.C = seen_keys(s, options, r, Br, Bc);
  for (Index i = 0; i < Tr; ++i) {
    const Index i0 = i * Br, i1 = std::min(s.Nq, i0 + Br);
    const Span keys = keys_seen(s, r, i0, i1);
    if (keys.size() == 0) continue;
    // The tiles of an interval are consecutive: from ⌊begin/Bc⌋ up to ⌈end/Bc⌉.
    const Span tiles{keys.begin / Bc, ceil_div(keys.end, Bc)};
    for (Index split = tiles.begin / splits.per; split * splits.per < tiles.end; ++split) {
      const Span part{std::max(tiles.begin, split * splits.per), std::min(tiles.end, (split + 1) * splits.per)};
      Index count = part.size(), cols = std::min(s.Nk, part.end * Bc) - part.begin * Bc;
      for (Index j = part.begin; !options.block_mask.empty() && j < part.end; ++j) {
        if (options.block_mask[static_cast<std::size_t>(i * Tc + j)] != 0) continue;
        count -= 1;
        cols -= std::min(s.Nk, (j + 1) * Bc) - j * Bc;
      }
      sum.tiles += count;
      sum.R += count * (i1 - i0);
      sum.K += cols;
      sum.A += cols * (i1 - i0);
      if (count > 0) sum.U += i1 - i0;
    }
  }
  return sum;
}

}  // namespace

Index visible_pairs(const Shape& s, const ClosedFormOptions& options, Index Br, Index Bc) {
  const Reach r = reach(s, options);
  const Index Tc = ceil_div(s.Nk, Bc);
  Index pairs = 0;
  for (Index i = 0; i < s.Nq; ++i) {
    const Span keys = keys_seen(s, r, i, i + 1);
    pairs += keys.size();
    for (Index j = 0; !options.block_mask.empty() && j < Tc; ++j) {
      if (options.block_mask[static_cast<std::size_t>(i / Br * Tc + j)] != 0) continue;
      pairs -= Span{std::max(keys.begin, j * Bc), std::min(keys.end, (j + 1) * Bc)}.size();
    }
  }
  return pairs * s.batch * s.heads;
}

// ---- the schedules

namespace {

/// One problem, and the form that grows: each schedule below adds its passes per query head.
struct Form {
  using Elements = std::initializer_list<std::pair<std::string, Index>>;

  const Shape& s;
  const ClosedFormOptions& options;
  bool skips;  ///< tiles may be left out, so that sums over visited tiles take the place of products
  Visited v;
  Index Tr, Tc;            ///< 0 where a schedule has no tiles
  Splits splits;           ///< one, but in fa2_forward
  bool wide_accumulators;  ///< 16-bit runs keep O and dQ between visits in fp32, as O_acc and dQ_acc
  Traffic traffic{};
  std::string per_head{}, per_kv_head{};

  bool square() const { return s.Nq == s.Nk && s.d == s.dv && !skips; }
  bool shares_kv() const { return s.heads != s.kv_heads; }

  /// One pass of every query head: what it reads and what it writes.
  void pass(const Elements& reads, const Elements& writes) {
    for (const auto& [tensor, n] : reads) add(traffic.read, tensor, n * s.batch * s.heads);
    for (const auto& [tensor, n] : writes) add(traffic.write, tensor, n * s.batch * s.heads);
  }

  /// The formula per query head: of N and d where they suffice, else of all sizes.
  void says(const std::string& of_N_and_d, const std::string& of_all) { per_head = square() ? of_N_and_d : of_all; }

  /// One pass of every KV head.
  void kv_pass(const Elements& reads, const Elements& writes) {
    for (const auto& [tensor, n] : reads) add(traffic.read, tensor, n * s.batch * s.kv_heads);
    for (const auto& [tensor, n] : writes) add(traffic.write, tensor, n * s.batch * s.kv_heads);
  }

  /// A mask's tile is loaded with each visited tile, the slope by each of a query head's `workers`.
  void mask_and_slopes(Index mask_elements, Index workers = 1, const std::string& workers_text = "1") {
    if (options.has_mask) {
      pass({{"mask", mask_elements}}, {});
      per_head += skips ? " + A" : square() ? " + N²" : " + NqNk";
    }
    if (options.has_alibi) {
      pass({{"slopes", workers}}, {});
      per_head += " + " + workers_text;
    }
  }

  /// O or dQ, read and stored again at every visit. Each row's last store goes to the tensor itself.
  void running(const std::string& tensor, Index reads, Index writes, Index last) {
    const std::string between = wide_accumulators ? tensor + "_acc" : tensor;
    pass({{between, reads}}, {{between, writes - last}, {tensor, last}});
  }

  /// dK and dV: stored by each query head, or zeroed once per KV head and added to by the query heads that share it.
  void key_gradients(bool always_zeroed) {
    const std::pair<std::string, Index> gradients[] = {{"dK", s.Nk * s.d}, {"dV", s.Nk * s.dv}};
    for (const auto& [tensor, n] : gradients) {
      if (always_zeroed || shares_kv()) add(traffic.write, tensor, n * s.batch * s.kv_heads);
      add(shares_kv() ? traffic.rmw : traffic.write, tensor, n * s.batch * s.heads);
    }
    if (shares_kv()) per_kv_head = square() ? "2Nd" : "Nk(d+dv)";
  }
};

void materialized(Form& f) {
  const auto& [batch, heads, kv_heads, Nq, Nk, d, dv] = f.s;
  f.pass({{"Q", Nq * d}, {"K", Nk * d}}, {{"S", Nq * Nk}});
  f.pass({{"S", Nq * Nk}}, {{"P", Nq * Nk}});
  f.pass({{"P", Nq * Nk}, {"V", Nk * dv}}, {{"O", Nq * dv}});
  f.says("4N² + 4Nd", "4NqNk + (Nq+Nk)(d+dv)");
  f.mask_and_slopes(Nq * Nk);
}

void materialized_backward(Form& f) {
  const auto& [batch, heads, kv_heads, Nq, Nk, d, dv] = f.s;
  f.pass({{"P", Nq * Nk}, {"dO", Nq * dv}}, {});                 // dV = Pᵀ dO
  f.pass({{"dO", Nq * dv}, {"V", Nk * dv}}, {{"dP", Nq * Nk}});  // dP = dO Vᵀ
  f.pass({{"P", Nq * Nk}, {"dP", Nq * Nk}}, {{"dS", Nq * Nk}});  // dS = P∘(dP − D)
  f.pass({{"dS", Nq * Nk}, {"K", Nk * d}}, {{"dQ", Nq * d}});    // dQ = dS K
  f.pass({{"dS", Nq * Nk}, {"Q", Nq * d}}, {});                  // dK = dSᵀ Q
  f.key_gradients(false);
  if (f.shares_kv()) {
    f.says("7N² + 10Nd", "7NqNk + (2Nq+3Nk)(d+dv)");
  } else {
    f.says("7N² + 8Nd", "7NqNk + 2(Nq+Nk)(d+dv)");
  }
  if (f.options.softcap) {
    f.pass({{"S", Nq * Nk}}, {});  // for the derivative of c·tanh(s/c)
    f.per_head += f.square() ? " + N²" : " + NqNk";
  }
  if (f.options.has_alibi) {
    f.pass({{"slopes", 1}}, {});
    f.per_head += " + 1";
  }
}

void tiled(Form& f) {
  const auto& [batch, heads, kv_heads, Nq, Nk, d, dv] = f.s;
  f.pass({{"Q", f.v.R * d}, {"K", f.v.K * d}}, {{"S", f.v.A}});
  f.pass({{"S", 2 * f.v.A}}, {{"P", f.v.A}});  // one sweep for max and sum, one to normalise
  f.pass({{"P", f.v.A}, {"V", f.v.K * dv}}, {{"O", Nq * dv}});
  f.says("5N² + Nd + Tc·Nd + 2Tr·Nd", f.skips ? "5A + Nq·dv + R·d + K̂(d+dv)" : "5NqNk + Nq·dv + Tc·Nq·d + Tr·Nk(d+dv)");
  f.mask_and_slopes(f.v.A);
}

/// Algorithm 1's loops with `statistics` (l and m, or LSE) in HBM.
void kv_outside(Form& f, const std::vector<std::string>& statistics) {
  const auto& [batch, heads, kv_heads, Nq, Nk, d, dv] = f.s;
  const Index created = f.options.first_touch ? f.v.U : 0;  // rows whose first visit reads no O, l, m
  f.pass({{"K", Nk * d}, {"V", Nk * dv}, {"Q", f.v.R * d}}, {});
  f.running("O", (f.v.R - created) * dv, (Nq - created + f.v.R) * dv, Nq * dv);
  for (const std::string& tensor : statistics) {
    f.pass({{tensor, f.v.R - created}}, {{tensor, Nq - created + f.v.R}});
  }
  const std::string R = f.skips ? "R" : "Tc·Nq";
  if (statistics.size() == 2) {
    f.says("3Nd + 2N + Tc·N(3d+4)", "Nk(d+dv) + Nq(dv+2) + " + R + "(d+2dv+4)");
  } else {
    f.says("3Nd + N + Tc·N(3d+2)", "Nk(d+dv) + Nq(dv+1) + " + R + "(d+2dv+2)");
  }
  if (f.options.first_touch) f.per_head += f.square() ? " − 2N(d+2)" : " − 2U(dv+2)";
  f.mask_and_slopes(f.v.A);
}

/// Algorithm 4's loops: D is computed again at each visit, from O and dO.
void backward_kv_outside(Form& f, const std::vector<std::string>& statistics) {
  const auto& [batch, heads, kv_heads, Nq, Nk, d, dv] = f.s;
  f.pass({{"K", Nk * d}, {"V", Nk * dv}}, {});
  f.pass({{"Q", f.v.R * d}, {"O", f.v.R * dv}, {"dO", f.v.R * dv}}, {});
  f.running("dQ", f.v.R * d, (Nq + f.v.R) * d, Nq * d);
  for (const std::string& tensor : statistics) f.pass({{tensor, f.v.R}}, {});
  f.key_gradients(true);
  const std::string R = f.skips ? "R" : "Tc·Nq";
  f.says(fmt::format("7Nd + Tc·N(5d+{})", statistics.size()),
         fmt::format("3Nk(d+dv) + Nq·d + {}(3d+2dv+{})", R, statistics.size()));
  f.mask_and_slopes(f.v.A);
}

/// FA2's forward loops: Q outside. With several splits each leaves O and LSE of its keys, and a last pass merges them.
void q_outside(Form& f) {
  const auto& [batch, heads, kv_heads, Nq, Nk, d, dv] = f.s;
  const Index Se = f.splits.count;
  f.pass({{"Q", f.v.U * d}, {"K", f.v.K * d}, {"V", f.v.K * dv}}, {{"O", Nq * dv}, {"LSE", Nq}});
  if (Se == 1) {
    f.says("2Nd + N + 2Tr·Nd", f.skips ? "U·d + Nq(dv+1) + K̂(d+dv)" : "Nq(d+dv+1) + Tr·Nk(d+dv)");
  } else {
    const Index parts_O = Se * Nq * dv, parts_LSE = Se * Nq;
    f.pass({{"partial_O", parts_O}, {"partial_LSE", parts_LSE}}, {{"partial_O", parts_O}, {"partial_LSE", parts_LSE}});
    f.says("Se·Nd + (2Se+1)N(d+1) + 2Tr·Nd",
           f.skips ? "U·d + (2Se+1)Nq(dv+1) + K̂(d+dv)" : "Se·Nq·d + (2Se+1)Nq(dv+1) + Tr·Nk(d+dv)");
  }
  f.mask_and_slopes(f.v.A, Se * f.Tr, Se == 1 ? "Tr" : "Se·Tr");
}

/// FA2's backward loops: one worker has a column block of a KV head, dQ grows by atomic additions, D is made before.
void backward_by_column_blocks(Form& f) {
  const auto& [batch, heads, kv_heads, Nq, Nk, d, dv] = f.s;
  const std::string dQ_acc = f.wide_accumulators ? "dQ_acc" : "dQ";
  f.pass({{"dO", Nq * dv}, {"O", Nq * dv}}, {{"D", Nq}});  // D = rowsum(dO∘O)
  f.pass({}, {{dQ_acc, Nq * d}});                          // dQ = 0
  f.kv_pass({{"K", f.v.C * d}, {"V", f.v.C * dv}}, {{"dK", Nk * d}, {"dV", Nk * dv}});
  f.pass({{"Q", f.v.R * d}, {"dO", f.v.R * dv}, {"LSE", f.v.R}, {"D", f.v.R}}, {});
  add(f.traffic.rmw, dQ_acc, f.v.R * d * batch * heads);
  f.pass({{dQ_acc, Nq * d}}, {{"dQ", Nq * d}});  // from the accumulator's format to dQ's
  const std::string rows =
      f.square() ? "N + Tc·N(4d+2)" : fmt::format("Nq(3d+2dv+1) + {}(3d+dv+2)", f.skips ? "R" : "Tc·Nq");
  const std::string keys = f.skips ? "(C+Nk)(d+dv)" : "2Nk(d+dv)";
  if (f.shares_kv()) {
    f.says("5Nd + " + rows, rows);
    f.per_kv_head = f.square() ? "4Nd" : keys;
  } else {
    f.says("9Nd + " + rows, rows + " + " + keys);
  }
  if (f.options.deterministic) {  // whose turn it is to add to a row block: zeroed, then waited for and passed on
    f.pass({{"turn", f.v.tiles}}, {{"turn", f.Tr + f.v.tiles}});
    f.per_head += f.skips ? " + Tr + 2τ" : " + Tr + 2Tr·Tc";
  }
  f.mask_and_slopes(f.v.A, f.Tc, "Tc");
}

/// The whole formula, with the values of the sums that a mask leaves.
std::string text(const Form& f) {
  const Index heads = f.s.batch * f.s.heads;
  std::string whole = heads == 1 ? f.per_head : fmt::format("{} × [{}]", heads, f.per_head);
  if (!f.per_kv_head.empty()) whole += fmt::format(" + {} × [{}]", f.s.batch * f.s.kv_heads, f.per_kv_head);
  const std::tuple<const char*, Index, const char*> sums[] = {{"R", f.v.R, "query rows of the visited tiles"},
                                                              {"K̂", f.v.K, "keys of the visited tiles"},
                                                              {"A", f.v.A, "elements of the visited tiles"},
                                                              {"U", f.v.U, "query rows with a visited tile"},
                                                              {"C", f.v.C, "keys of the column blocks that are seen"},
                                                              {"τ", f.v.tiles, "visited tiles"},
                                                              {"Se", f.splits.count, "splits with keys"}};
  std::string values;
  for (const auto& [symbol, value, meaning] : sums) {
    if (whole.find(symbol) == std::string::npos) continue;
    values += fmt::format("{}{} = {} {}", values.empty() ? "; " : ", ", symbol, value, meaning);
  }
  return whole + values;
}

void check_tiles(const Shape& s, const ClosedFormOptions& options, Index Br, Index Bc) {
  if (options.splits < 1)
    throw std::invalid_argument(fmt::format("{} splits share out no keys: use 1 or more", options.splits));
  if (Br < 1 || Bc < 1) throw std::invalid_argument(fmt::format("tiles of {}×{} are no tiles: use 1 or more", Br, Bc));
  const Index tiles = ceil_div(s.Nq, Br) * ceil_div(s.Nk, Bc);
  if (!options.block_mask.empty() && std::cmp_not_equal(options.block_mask.size(), tiles)) {
    throw std::invalid_argument(fmt::format("a block mask of {} entries does not cover {} tiles: it must be [Tr, Tc]",
                                            options.block_mask.size(), tiles));
  }
}

}  // namespace

std::optional<ClosedForm> closed_form(std::string_view schedule, const Shape& shape, Format dtype,
                                      const ClosedFormOptions& options, Index Br, Index Bc) {
  const bool whole = schedule == "materialized" || schedule == "materialized_backward";
  const bool fa2 = schedule == "fa2_forward" || schedule == "fa2_backward";  // each leaves the other's option alone
  if (options.first_touch && schedule != "algorithm_1") return std::nullopt;
  if ((options.splits != 1 || options.deterministic) && !fa2) return std::nullopt;
  if (whole && !options.block_mask.empty()) return std::nullopt;
  if (!whole) check_tiles(shape, options, Br, Bc);

  const bool skips = !whole && (options.causal || options.window.left >= 0 || options.window.right >= 0 ||
                                !options.block_mask.empty() || shape.Nq == 0 || shape.Nk == 0);
  Form form{shape, options, skips, {}, 0, 0, {}, is_16_bit(dtype)};
  if (!whole) {
    form.Tr = ceil_div(shape.Nq, Br), form.Tc = ceil_div(shape.Nk, Bc);
    form.splits = shared_out(form.Tc, schedule == "fa2_forward" ? options.splits : 1);
    form.v = visited(shape, options, form.splits, Br, Bc);
  }
  if (schedule == "materialized")
    materialized(form);
  else if (schedule == "materialized_backward")
    materialized_backward(form);
  else if (schedule == "tiled")
    tiled(form);
  else if (schedule == "algorithm_1")
    kv_outside(form, {"l", "m"});
  else if (schedule == "lse_forward")
    kv_outside(form, {"LSE"});
  else if (schedule == "lse_backward")
    backward_kv_outside(form, {"LSE"});
  else if (schedule == "algorithm_4")
    backward_kv_outside(form, {"l", "m"});
  else if (schedule == "fa2_forward")
    q_outside(form);
  else if (schedule == "fa2_backward")
    backward_by_column_blocks(form);
  else
    return std::nullopt;
  return ClosedForm{text(form), std::move(form.traffic)};
}

}  // namespace flash::theory

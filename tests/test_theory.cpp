// Closed forms against a walker that scans every pair and visits every tile.
#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "sim/theory/blocks.hpp"
#include "sim/theory/closed_forms.hpp"
#include "sim/theory/nests.hpp"
#include "tests/catch.hpp"

using namespace flash;
using namespace flash::theory;

namespace {

// ---- random problems

const std::vector<std::string> kSchedules{"materialized", "materialized_backward", "tiled",
                                          "algorithm_1",  "lse_forward",           "lse_backward",
                                          "algorithm_4",  "fa2_forward",           "fa2_backward"};

struct Case {
  Shape s;
  Format dtype = Format::fp32;
  ClosedFormOptions options;
  std::vector<std::uint8_t> block_mask;
  Index Br = 1, Bc = 1;

  Index Tr() const { return (s.Nq + Br - 1) / Br; }
  Index Tc() const { return (s.Nk + Bc - 1) / Bc; }
};

bool sees(const Case& c, Index i, Index j) {
  const Index after = j - (i + c.s.Nk - c.s.Nq);  // keys after the centre
  if (c.options.causal && after > 0) return false;
  if (c.options.window.left >= 0 && -after > c.options.window.left) return false;
  return c.options.window.right < 0 || after <= c.options.window.right;
}

bool visits(const Case& c, Index ti, Index tj) {
  if (!c.block_mask.empty() && c.block_mask[static_cast<std::size_t>(ti * c.Tc() + tj)] == 0) return false;
  for (Index i = ti * c.Br; i < std::min(c.s.Nq, (ti + 1) * c.Br); ++i) {
    for (Index j = tj * c.Bc; j < std::min(c.s.Nk, (tj + 1) * c.Bc); ++j) {
      if (sees(c, i, j)) return true;
    }
  }
  return false;
}

/// Some row block, or in a backward pass some column block, has no visited tile.
bool sees_nothing(const Case& c, const std::string& schedule) {
  const bool columns = schedule.ends_with("backward");
  for (Index outer = 0; outer < (columns ? c.Tc() : c.Tr()); ++outer) {
    bool any = false;
    for (Index inner = 0; inner < (columns ? c.Tr() : c.Tc()); ++inner)
      any = any || (columns ? visits(c, inner, outer) : visits(c, outer, inner));
    if (!any) return true;
  }
  return false;
}

class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}
  Index operator()(Index low, Index high) {
    return low + static_cast<Index>(engine_() % static_cast<std::uint64_t>(high - low + 1));
  }
  bool once_in(Index n) { return (*this)(1, n) == 1; }

 private:
  std::mt19937_64 engine_;
};

Case random_case(Random& random, const std::string& schedule) {
  Case c;
  c.s.kv_heads = random(1, 2), c.s.heads = c.s.kv_heads * random(1, 3), c.s.batch = random(1, 2);
  c.s.Nq = random(0, 40), c.s.Nk = random.once_in(3) ? c.s.Nq : random(0, 40);
  c.s.d = random(1, 9), c.s.dv = random.once_in(2) ? c.s.d : random(1, 9);
  c.dtype = std::array{Format::fp64, Format::fp32, Format::fp16, Format::bf16}[static_cast<std::size_t>(random(0, 3))];
  c.Br = random(1, 12), c.Bc = random(1, 12);
  const bool whole = schedule.starts_with("materialized");
  c.options.causal = random.once_in(3);
  if (random.once_in(4)) c.options.window.left = random.once_in(8) ? INT64_MAX : random(0, 30);
  if (random.once_in(4)) c.options.window.right = random.once_in(8) ? INT64_MAX : random(0, 30);
  c.options.has_mask = random.once_in(3), c.options.has_alibi = random.once_in(3),
  c.options.softcap = random.once_in(3);
  c.options.first_touch = schedule == "algorithm_1" && random.once_in(2);
  if (schedule.starts_with("fa2") && random.once_in(2)) c.options.splits = random(2, 9);
  c.options.deterministic = schedule.starts_with("fa2") && random.once_in(2);
  if (!whole && random.once_in(3)) {
    const Index density = random(0, 3);
    for (Index t = 0; t < c.Tr() * c.Tc(); ++t) c.block_mask.push_back(random(1, 4) <= density);
  }
  return c;
}

// ---- the walker

class Hbm {
 public:
  Traffic traffic;
  void read(const std::string& tensor, Index rows, Index cols) { put(traffic.read, tensor, rows * cols); }
  void write(const std::string& tensor, Index rows, Index cols) { put(traffic.write, tensor, rows * cols); }
  void rmw(const std::string& tensor, Index rows, Index cols) { put(traffic.rmw, tensor, rows * cols); }

 private:
  static void put(std::map<std::string, Index>& where, const std::string& tensor, Index n) {
    if (n > 0) where[tensor] += n;
  }
};

struct Tile {
  Index index, size;
};

std::vector<Tile> tiles(Index N, Index B) {
  std::vector<Tile> all;
  for (Index at = 0; at < N; at += B) all.push_back({at / B, std::min(B, N - at)});
  return all;
}

/// O or dQ of each row tile: it knows how many stores are still to come, and names the tensor of the next one.
class Running {
 public:
  Running(std::string tensor, Format dtype)
      : tensor_(std::move(tensor)), acc_(is_16_bit(dtype) ? tensor_ + "_acc" : tensor_) {}
  void expect(Index tile) { ++left_[tile]; }
  const std::string& next(Index tile) { return --left_[tile] == 0 ? tensor_ : acc_; }
  const std::string& between() const { return acc_; }

 private:
  std::string tensor_, acc_;
  std::map<Index, Index> left_;
};

void walk_materialized(const Case& c, Hbm& hbm) {
  const Shape& s = c.s;
  hbm.read("Q", s.Nq, s.d), hbm.read("K", s.Nk, s.d), hbm.write("S", s.Nq, s.Nk);
  if (c.options.has_mask) hbm.read("mask", s.Nq, s.Nk);
  if (c.options.has_alibi) hbm.read("slopes", 1, 1);
  hbm.read("S", s.Nq, s.Nk), hbm.write("P", s.Nq, s.Nk);
  hbm.read("P", s.Nq, s.Nk), hbm.read("V", s.Nk, s.dv), hbm.write("O", s.Nq, s.dv);
}

void store_key_gradients(const Case& c, Hbm& hbm, Index cols) {
  if (c.s.heads == c.s.kv_heads) {
    hbm.write("dK", cols, c.s.d), hbm.write("dV", cols, c.s.dv);
  } else {
    hbm.rmw("dK", cols, c.s.d), hbm.rmw("dV", cols, c.s.dv);
  }
}

void walk_materialized_backward(const Case& c, Hbm& hbm) {
  const Shape& s = c.s;
  hbm.read("P", s.Nq, s.Nk), hbm.read("dO", s.Nq, s.dv);
  hbm.read("dO", s.Nq, s.dv), hbm.read("V", s.Nk, s.dv), hbm.write("dP", s.Nq, s.Nk);
  hbm.read("P", s.Nq, s.Nk), hbm.read("dP", s.Nq, s.Nk), hbm.write("dS", s.Nq, s.Nk);
  if (c.options.softcap) hbm.read("S", s.Nq, s.Nk);
  if (c.options.has_alibi) hbm.read("slopes", 1, 1);
  hbm.read("dS", s.Nq, s.Nk), hbm.read("K", s.Nk, s.d), hbm.write("dQ", s.Nq, s.d);
  hbm.read("dS", s.Nq, s.Nk), hbm.read("Q", s.Nq, s.d);
  store_key_gradients(c, hbm, s.Nk);
}

void walk_tiled(const Case& c, Hbm& hbm) {
  const Shape& s = c.s;
  if (c.options.has_alibi) hbm.read("slopes", 1, 1);
  for (const auto& [i, rows] : tiles(s.Nq, c.Br)) {
    for (const auto& [j, cols] : tiles(s.Nk, c.Bc)) {
      if (!visits(c, i, j)) continue;
      hbm.read("Q", rows, s.d), hbm.read("K", cols, s.d), hbm.write("S", rows, cols);
      if (c.options.has_mask) hbm.read("mask", rows, cols);
      hbm.read("S", rows, cols);                              // maximum and sum
      hbm.read("S", rows, cols), hbm.write("P", rows, cols);  // normalise
      hbm.read("P", rows, cols), hbm.read("V", cols, s.dv);
    }
    hbm.write("O", rows, s.dv);
  }
}

void walk_forward(const Case& c, Hbm& hbm, const std::vector<std::string>& statistics) {
  const Shape& s = c.s;
  Running O("O", c.dtype);
  std::map<Index, bool> created;
  for (const auto& [i, rows] : tiles(s.Nq, c.Br)) {
    Index n = 0;
    for (const auto& [j, cols] : tiles(s.Nk, c.Bc)) n += visits(c, i, j);
    for (Index k = 0; k < n; ++k) O.expect(i);
    created[i] = !c.options.first_touch || n == 0;
    if (created[i]) O.expect(i);
  }
  if (c.options.has_alibi) hbm.read("slopes", 1, 1);
  for (const auto& [i, rows] : tiles(s.Nq, c.Br)) {
    if (!created[i]) continue;
    hbm.write(O.next(i), rows, s.dv);
    for (const auto& name : statistics) hbm.write(name, rows, 1);
  }
  for (const auto& [j, cols] : tiles(s.Nk, c.Bc)) {
    hbm.read("K", cols, s.d), hbm.read("V", cols, s.dv);
    for (const auto& [i, rows] : tiles(s.Nq, c.Br)) {
      if (!visits(c, i, j)) continue;
      hbm.read("Q", rows, s.d);
      if (c.options.has_mask) hbm.read("mask", rows, cols);
      if (created[i]) {
        hbm.read(O.between(), rows, s.dv);
        for (const auto& name : statistics) hbm.read(name, rows, 1);
      }
      created[i] = true;
      hbm.write(O.next(i), rows, s.dv);
      for (const auto& name : statistics) hbm.write(name, rows, 1);
    }
  }
}

void walk_backward(const Case& c, Hbm& hbm, const std::vector<std::string>& statistics) {
  const Shape& s = c.s;
  Running dQ("dQ", c.dtype);
  for (const auto& [i, rows] : tiles(s.Nq, c.Br)) {
    dQ.expect(i);
    for (const auto& [j, cols] : tiles(s.Nk, c.Bc)) {
      if (visits(c, i, j)) dQ.expect(i);
    }
  }
  if (c.options.has_alibi) hbm.read("slopes", 1, 1);
  for (const auto& [i, rows] : tiles(s.Nq, c.Br)) hbm.write(dQ.next(i), rows, s.d);
  for (const auto& [j, cols] : tiles(s.Nk, c.Bc)) {
    hbm.read("K", cols, s.d), hbm.read("V", cols, s.dv);
    for (const auto& [i, rows] : tiles(s.Nq, c.Br)) {
      if (!visits(c, i, j)) continue;
      hbm.read("Q", rows, s.d), hbm.read("O", rows, s.dv), hbm.read("dO", rows, s.dv),
          hbm.read(dQ.between(), rows, s.d);
      for (const auto& name : statistics) hbm.read(name, rows, 1);
      if (c.options.has_mask) hbm.read("mask", rows, cols);
      hbm.write(dQ.next(i), rows, s.d);
    }
    store_key_gradients(c, hbm, cols);
  }
}

/// FA2's forward pass, one query head: a worker a row block and, with several splits, a share of its keys.
void walk_q_outside(const Case& c, Hbm& hbm) {
  const Shape& s = c.s;
  const Index per = (c.Tc() + c.options.splits - 1) / c.options.splits;
  const bool split = c.Tc() > per;
  for (Index from = 0; from == 0 || from < c.Tc(); from += per) {
    for (const auto& [i, rows] : tiles(s.Nq, c.Br)) {
      if (c.options.has_alibi) hbm.read("slopes", 1, 1);
      bool any = false;
      for (const auto& [j, cols] : tiles(s.Nk, c.Bc)) {
        if (j < from || j >= from + per || !visits(c, i, j)) continue;
        if (!any) hbm.read("Q", rows, s.d);
        any = true;
        hbm.read("K", cols, s.d), hbm.read("V", cols, s.dv);
        if (c.options.has_mask) hbm.read("mask", rows, cols);
      }
      hbm.write(split ? "partial_O" : "O", rows, s.dv), hbm.write(split ? "partial_LSE" : "LSE", rows, 1);
    }
    if (per == 0) break;
  }
  for (Index from = 0; split && from < c.Tc(); from += per)
    hbm.read("partial_O", s.Nq, s.dv), hbm.read("partial_LSE", s.Nq, 1);
  if (split) hbm.write("O", s.Nq, s.dv), hbm.write("LSE", s.Nq, 1);
}

/// FA2's backward pass, all of it: passes before and after by query head, the main one by column block and KV head.
void walk_by_column_blocks(const Case& c, Hbm& hbm) {
  const Shape& s = c.s;
  const std::string acc = is_16_bit(c.dtype) ? "dQ_acc" : "dQ";
  for (Index head = 0; head < s.batch * s.heads; ++head) {
    hbm.read("dO", s.Nq, s.dv), hbm.read("O", s.Nq, s.dv), hbm.write("D", s.Nq, 1);
    hbm.write(acc, s.Nq, s.d);
    if (c.options.deterministic) hbm.write("turn", c.Tr(), 1);
    hbm.read(acc, s.Nq, s.d), hbm.write("dQ", s.Nq, s.d);
  }
  for (Index kv = 0; kv < s.batch * s.kv_heads; ++kv) {
    for (const auto& [j, cols] : tiles(s.Nk, c.Bc)) {
      bool any = false;
      for (Index head = 0; head < s.heads / s.kv_heads; ++head) {
        if (c.options.has_alibi) hbm.read("slopes", 1, 1);
        for (const auto& [i, rows] : tiles(s.Nq, c.Br)) {
          if (!visits(c, i, j)) continue;
          any = true;
          hbm.read("Q", rows, s.d), hbm.read("dO", rows, s.dv), hbm.read("LSE", rows, 1), hbm.read("D", rows, 1);
          if (c.options.has_mask) hbm.read("mask", rows, cols);
          if (c.options.deterministic) hbm.read("turn", 1, 1), hbm.write("turn", 1, 1);
          hbm.rmw(acc, rows, s.d);
        }
      }
      if (any) hbm.read("K", cols, s.d), hbm.read("V", cols, s.dv);
      hbm.write("dK", cols, s.d), hbm.write("dV", cols, s.dv);
    }
  }
}

Traffic walk(const std::string& schedule, const Case& c) {
  Hbm hbm;
  const bool zeroes = schedule == "lse_backward" || schedule == "algorithm_4" ||
                      (schedule == "materialized_backward" && c.s.heads != c.s.kv_heads);
  for (Index kv = 0; zeroes && kv < c.s.batch * c.s.kv_heads; ++kv) {
    hbm.write("dK", c.s.Nk, c.s.d), hbm.write("dV", c.s.Nk, c.s.dv);
  }
  if (schedule == "fa2_backward") walk_by_column_blocks(c, hbm);
  for (Index worker = 0; worker < c.s.batch * c.s.heads; ++worker) {
    if (schedule == "materialized") walk_materialized(c, hbm);
    if (schedule == "materialized_backward") walk_materialized_backward(c, hbm);
    if (schedule == "tiled") walk_tiled(c, hbm);
    if (schedule == "algorithm_1") walk_forward(c, hbm, {"l", "m"});
    if (schedule == "lse_forward") walk_forward(c, hbm, {"LSE"});
    if (schedule == "lse_backward") walk_backward(c, hbm, {"LSE"});
    if (schedule == "algorithm_4") walk_backward(c, hbm, {"l", "m"});
    if (schedule == "fa2_forward") walk_q_outside(c, hbm);
  }
  return hbm.traffic;
}

// ---- reading the formulas back

/// Value of a closed form's text: sums, products by juxtaposition, brackets, squares; the symbols' values are the
/// problem's sizes and those that the text itself gives after the semicolon.
class Formula {
 public:
  Formula(const std::string& text, std::map<std::string, Index> symbols)
      : text_(text.substr(0, text.find(';'))), symbols_(std::move(symbols)) {
    for (const std::string name : {"R", "K̂", "A", "U", "C", "τ", "Se"}) {
      const std::size_t at = text.find(" " + name + " = ", text_.size());
      if (at != std::string::npos) symbols_[name] = std::stoll(text.substr(at + name.size() + 4));
    }
  }
  Index value() {
    const Index v = sum();
    if (at_ != text_.size()) throw std::runtime_error("stuck at: " + text_.substr(at_));
    return v;
  }

 private:
  bool take(const std::string& token) {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    if (text_.compare(at_, token.size(), token) != 0) return false;
    at_ += token.size();
    return true;
  }
  Index sum() {
    Index v = product();
    while (true) {
      if (take("+"))
        v += product();
      else if (take("−"))
        v -= product();
      else
        return v;
    }
  }
  Index product() {
    Index v = 1, factor = 0;
    bool any = false;
    while (true) {
      if (any && !take("·")) take("×");  // between factors there may also be nothing
      if (!atom(factor)) break;
      v *= take("²") ? factor * factor : factor;
      any = true;
    }
    if (!any) throw std::runtime_error("no factor at: " + text_.substr(at_));
    return v;
  }
  bool atom(Index& v) {
    for (const auto& [open, close] : {std::pair{"(", ")"}, std::pair{"[", "]"}}) {
      if (!take(open)) continue;
      v = sum();
      return take(close);
    }
    if (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])) != 0) {
      std::size_t used = 0;
      v = std::stoll(text_.substr(at_), &used);
      at_ += used;
      return true;
    }
    for (const std::string name : {"Nq", "Nk", "N", "dv", "d", "Tc", "Tr", "R", "K̂", "A", "U", "C", "τ", "Se"}) {
      if (!take(name)) continue;
      v = symbols_.at(name);
      return true;
    }
    return false;
  }

  std::string text_;
  std::map<std::string, Index> symbols_;
  std::size_t at_ = 0;
};

Index value_of_text(const std::string& text, const Case& c) {
  std::map<std::string, Index> symbols{{"Nq", c.s.Nq}, {"Nk", c.s.Nk}, {"d", c.s.d},
                                       {"dv", c.s.dv}, {"Tr", c.Tr()}, {"Tc", c.Tc()}};
  if (c.s.Nq == c.s.Nk) symbols["N"] = c.s.Nq;
  return Formula(text, symbols).value();
}

}  // namespace

// ---- closed forms

TEST_CASE("closed forms equal the walked counts tensor by tensor", "[theory][io_exact]") {
  const std::string schedule = GENERATE(from_range(kSchedules));
  Random random(7);
  std::map<std::string, int> seen;
  for (int n = 0; n < 2500; ++n) {
    Case c = random_case(random, schedule);
    c.options.block_mask = c.block_mask;
    const auto form = closed_form(schedule, c.s, c.dtype, c.options, c.Br, c.Bc);
    REQUIRE(form.has_value());
    INFO(schedule << " Nq " << c.s.Nq << " Nk " << c.s.Nk << " d " << c.s.d << " dv " << c.s.dv << " Br " << c.Br
                  << " Bc " << c.Bc << " heads " << c.s.heads << "/" << c.s.kv_heads << ": " << form->text);
    const Traffic walked = walk(schedule, c);
    REQUIRE(form->traffic.read == walked.read);
    REQUIRE(form->traffic.write == walked.write);
    REQUIRE(form->traffic.rmw == walked.rmw);
    REQUIRE(value_of_text(form->text, c) == walked.elements());
    seen["causal"] += c.options.causal;
    seen["window"] += c.options.window.left >= 0 || c.options.window.right >= 0;
    seen["mask"] += c.options.has_mask;
    seen["alibi"] += c.options.has_alibi;
    seen["softcap"] += c.options.softcap;
    seen["gqa"] += c.s.heads != c.s.kv_heads;
    seen["16 bit"] += is_16_bit(c.dtype);
    seen["square"] += c.s.Nq == c.s.Nk && c.s.d == c.s.dv;
    if (schedule == "fa2_forward") seen["splits"] += form->traffic.write.contains("partial_O");
    if (schedule == "fa2_backward") seen["deterministic"] += form->traffic.write.contains("turn");
    if (schedule.starts_with("fa2")) seen["block that sees nothing"] += sees_nothing(c, schedule);
    if (schedule == "algorithm_1") seen["first touch"] += c.options.first_touch;
    if (!schedule.starts_with("materialized")) seen["block mask"] += !c.block_mask.empty();
  }
  for (const auto& [option, times] : seen) {
    INFO(schedule << ": " << option);
    CHECK(times >= 100);
  }
}

TEST_CASE("visible pairs equal the pairs scanned", "[theory]") {
  Random random(8);
  for (int n = 0; n < 2000; ++n) {
    Case c = random_case(random, "tiled");
    c.options.block_mask = c.block_mask;
    Index pairs = 0;
    for (Index i = 0; i < c.s.Nq; ++i) {
      for (Index j = 0; j < c.s.Nk; ++j) {
        const bool computed =
            c.block_mask.empty() || c.block_mask[static_cast<std::size_t>(i / c.Br * c.Tc() + j / c.Bc)] != 0;
        pairs += computed && sees(c, i, j);
      }
    }
    REQUIRE(visible_pairs(c.s, c.options, c.Br, c.Bc) == pairs * c.s.batch * c.s.heads);
  }
}

TEST_CASE("closed forms read as the theory writes them", "[theory]") {
  const Shape square{1, 1, 1, 64, 64, 8, 8};
  const auto text = [&](const std::string& schedule, const Shape& s, const ClosedFormOptions& options = {}) {
    return closed_form(schedule, s, Format::fp32, options, 8, 16).value().text;
  };
  CHECK(text("materialized", square) == "4N² + 4Nd");
  CHECK(text("materialized_backward", square) == "7N² + 8Nd");
  CHECK(text("algorithm_1", square) == "3Nd + 2N + Tc·N(3d+4)");
  CHECK(text("lse_forward", square) == "3Nd + N + Tc·N(3d+2)");
  CHECK(text("lse_backward", square) == "7Nd + Tc·N(5d+1)");
  CHECK(text("algorithm_4", square) == "7Nd + Tc·N(5d+2)");
  CHECK(text("fa2_forward", square) == "2Nd + N + 2Tr·Nd");
  CHECK(text("fa2_backward", square) == "9Nd + N + Tc·N(4d+2)");
  CHECK(text("fa2_backward", {2, 6, 3, 64, 64, 8, 8}) == "12 × [5Nd + N + Tc·N(4d+2)] + 6 × [4Nd]");
  ClosedFormOptions split, turns;
  split.splits = 3;  // of 4 column tiles: two splits get them all
  turns.deterministic = true;
  CHECK(text("fa2_forward", square, split) == "Se·Nd + (2Se+1)N(d+1) + 2Tr·Nd; Se = 2 splits with keys");
  CHECK(text("fa2_backward", square, turns) == "9Nd + N + Tc·N(4d+2) + Tr + 2Tr·Tc");
  ClosedFormOptions causal;
  causal.causal = true;
  CHECK(text("algorithm_1", square, causal) ==
        "Nk(d+dv) + Nq(dv+2) + R(d+2dv+4); R = 160 query rows of the visited tiles");
  CHECK(text("algorithm_1", {2, 3, 3, 64, 64, 8, 8}) == "6 × [3Nd + 2N + Tc·N(3d+4)]");
}

TEST_CASE("a causal grid of square tiles has T(T+1)/2 of them", "[theory]") {
  ClosedFormOptions causal;
  causal.causal = true;
  for (const Index T : {1, 2, 7, 64}) {
    const Shape s{1, 1, 1, 16 * T, 16 * T, 4, 4};
    const Traffic traffic = closed_form("tiled", s, Format::fp32, causal, 16, 16)->traffic;
    CHECK(traffic.write.at("S") == 16 * 16 * T * (T + 1) / 2);
    CHECK(visible_pairs(s, causal) == s.Nq * (s.Nq + 1) / 2);
  }
}

TEST_CASE("closed forms refuse what they do not describe", "[theory]") {
  const Shape s{1, 1, 1, 8, 8, 4, 4};
  const std::vector<std::uint8_t> four(4, 1);
  ClosedFormOptions blocks, first;
  blocks.block_mask = four;
  first.first_touch = true;
  CHECK_FALSE(closed_form("no such schedule", s, Format::fp32, {}, 4, 4).has_value());
  CHECK_FALSE(closed_form("materialized", s, Format::fp32, blocks, 4, 4).has_value());
  CHECK_FALSE(closed_form("lse_forward", s, Format::fp32, first, 4, 4).has_value());
  CHECK_FALSE(closed_form("fa2_forward", s, Format::fp32, first, 4, 4).has_value());
  ClosedFormOptions split, turns;
  split.splits = 2, turns.deterministic = true;
  CHECK_FALSE(closed_form("lse_forward", s, Format::fp32, split, 4, 4).has_value());
  CHECK_FALSE(closed_form("lse_backward", s, Format::fp32, turns, 4, 4).has_value());
  CHECK(closed_form("fa2_backward", s, Format::fp32, split, 4, 4).has_value());
  CHECK(closed_form("fa2_forward", s, Format::fp32, turns, 4, 4).has_value());
  split.splits = 0;
  CHECK_THROWS_AS(closed_form("fa2_forward", s, Format::fp32, split, 4, 4), std::invalid_argument);
  CHECK(closed_form("algorithm_1", s, Format::fp32, blocks, 4, 4).has_value());
  CHECK_THROWS_AS(closed_form("algorithm_1", s, Format::fp32, blocks, 2, 4), std::invalid_argument);
  CHECK_THROWS_AS(closed_form("tiled", s, Format::fp32, {}, 0, 4), std::invalid_argument);
}

TEST_CASE("bytes weigh each tensor by its format", "[theory]") {
  const Shape s{1, 1, 1, 4, 4, 2, 2};  // one visit, so that O_acc is the initial store and one read
  ClosedFormOptions options;
  options.has_mask = options.has_alibi = true;
  const Traffic t = closed_form("algorithm_1", s, Format::fp16, options, 4, 4)->traffic;
  // Q, K, V, O at 2 bytes, O_acc read and written at 4, l and m read once and written twice, mask, slope
  CHECK(bytes(t, Format::fp16) == 4 * 8 * 2 + 2 * 8 * 4 + 2 * 3 * 4 * 4 + 16 + 4);
  CHECK(element_bytes("LSE", Format::fp64) == 8);
  CHECK(element_bytes("dQ_acc", Format::bf16) == 4);
  CHECK(element_bytes("dP", Format::bf16) == 2);
  for (const char* wide : {"D", "partial_O", "partial_LSE"}) {
    CHECK(element_bytes(wide, Format::bf16) == 4);
    CHECK(element_bytes(wide, Format::fp64) == 8);
  }
  CHECK(element_bytes("turn", Format::fp64) == 4);
}

TEST_CASE("the paper's blocks", "[theory]") {
  CHECK(paper_blocks(4096, 64).Bc == 16);
  CHECK(paper_blocks(4097, 64).Bc == 17);
  CHECK(paper_blocks(1 << 16, 64).Br == 64);
  CHECK(paper_blocks(4096, 16, 64).Bc == 16);
}

TEST_CASE("the counting nest equals its closed form", "[theory]") {
  Random random(9);
  for (int n = 0; n < 300; ++n) {
    const Index N = random(1, 200), d = random(1, 40), M = random(4 * d, 40 * d);
    const auto [Br, Bc] = paper_blocks(M, d);
    const Shape s{1, 1, 1, N, N, d, d};
    CHECK(walk_algorithm_4(N, d, M) == closed_form("algorithm_4", s, Format::fp32, {}, Br, Bc)->traffic.elements());
  }
}

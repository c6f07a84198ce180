// stages/common: the oracle, the baseline and the inputs. The oracle is held to values that
// follow from the formulas by hand, and its gradients to finite differences: no other program is needed.
#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "stages/common/baseline.hpp"
#include "stages/common/check.hpp"
#include "stages/common/draw.hpp"
#include "stages/common/oracle.hpp"
#include "stages/common/rules.hpp"
#include "tests/catch.hpp"
#include "tests/support/drawn.hpp"

namespace fs = std::filesystem;
using namespace flash;
using Values = std::vector<double>;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// Largest difference; NaN and unequal sizes count as infinitely far.
double distance(const Values& got, const Values& expected) {
  if (got.size() != expected.size()) return kInfinity;
  double largest = 0;
  for (std::size_t n = 0; n < got.size(); ++n) {
    if (got[n] == expected[n]) continue;
    const double error = std::abs(got[n] - expected[n]);
    largest = std::isnan(error) ? kInfinity : std::max(largest, error);
  }
  return largest;
}

// ---- problems

/// One head with d = dv = 1: q, k, v given, scale 1.
Inputs one_channel(const Values& q, const Values& k, const Values& v) {
  Inputs in;
  in.dtype = Format::fp64;
  in.shape = {1, 1, 1, static_cast<Index>(q.size()), static_cast<Index>(k.size()), 1, 1};
  in.q = q;
  in.k = k;
  in.v = v;
  return in;
}

/// Q = 0 and V[j] = j in every channel: O is the mean of what is visible, LSE the logarithm of how many.
Inputs counting(Index Nq, Index Nk) {
  Values v(static_cast<std::size_t>(Nk));
  std::iota(v.begin(), v.end(), 0.0);
  return one_channel(Values(static_cast<std::size_t>(Nq)), Values(static_cast<std::size_t>(Nk), 1.0), v);
}

struct Variant {
  const char* name;
  std::function<void(Inputs&, Options&)> apply;
};

/// Every option by itself, and all together.
std::vector<Variant> variants() {
  std::vector<Variant> all{
      {"plain", [](Inputs&, Options&) {}},
      {"causal", [](Inputs&, Options& o) { o.causal = true; }},
      {"window",
       [](Inputs&, Options& o) {
         o.window = {2, 1};
       }},
      {"softcap", [](Inputs&, Options& o) { o.softcap = 1.5; }},
      {"dropout", [](Inputs&, Options& o) { o.dropout = 0.3, o.dropout_seed = 0x123456789ABCDEFull; }},
      {"scale", [](Inputs&, Options& o) { o.scale = 1.25; }},
      {"alibi",
       [](Inputs& in, Options&) {
         for (Index h = 0; h < in.shape.heads; ++h) in.slopes.push_back(0.1f + 0.2f * static_cast<float>(h));
       }},
      {"mask for each head",
       [](Inputs& in, Options&) {
         in.mask_batch = in.shape.batch;
         in.mask_heads = in.shape.heads;
         in.mask = random_mask(in.mask_batch * in.mask_heads * in.shape.Nq * in.shape.Nk, 3);
       }},
      {"block mask", [](Inputs& in, Options& o) {
         o.br = 2, o.bc = 3;
         in.block_mask = random_mask((in.shape.Nq + 1) / 2 * ((in.shape.Nk + 2) / 3), 8);
       }}};
  all.push_back({"together", [parts = all](Inputs& in, Options& o) {
                   for (const Variant& v : parts) v.apply(in, o);
                 }});
  all.push_back(
      {"one mask for all", [](Inputs& in, Options&) { in.mask = random_mask(in.shape.Nq * in.shape.Nk, 5); }});
  return all;
}

}  // namespace

TEST_CASE("Philox4x32-10 gives Random123's known answers") {
  using Words = std::array<std::uint32_t, 4>;
  const std::uint32_t ones = 0xffffffff;
  CHECK(philox4x32({0, 0, 0, 0}, 0) == Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(philox4x32({ones, ones, ones, ones}, ~0ull) == Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0x299f31d0a4093822ull) ==
        Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("the oracle's rules and the kernels' agree") {
  std::mt19937_64 random(2);
  for (int trial = 0; trial < 300; ++trial) {
    const Index Nq = 1 + random() % 9, Nk = 1 + random() % 9, kv_heads = 1 + random() % 3,
                heads = kv_heads * (1 + random() % 3);
    const Inputs in = draw_inputs({1, heads, kv_heads, Nq, Nk, 1, 1}, Format::fp64, 0);
    Options o;
    o.causal = random() % 2 == 0;
    o.window = {static_cast<Index>(random() % 6) - 1, static_cast<Index>(random() % 6) - 1};
    if (random() % 8 == 0) o.window = {std::numeric_limits<Index>::max(), std::numeric_limits<Index>::max()};
    o.dropout = 0.4;
    o.dropout_seed = random();
    const OracleRules oracle_rules(in, o);
    const rules::Visibility v = rules::visibility(Nq, Nk, o.causal, o.window.left, o.window.right);
    bool agree = true;
    for (Index h = 0; h < heads; ++h) {
      agree &= oracle_rules.kv_head(h) == rules::kv_head(h, heads, kv_heads);
      for (Index i = 0; i < Nq; ++i) {
        for (Index j = 0; j < Nk; ++j) {
          const bool keeps = rules::dropout_keeps(rules::dropout_word(o.dropout_seed, 0, h, i, j), o.dropout);
          agree &= oracle_rules.sees(0, h, i, j) == rules::visible(v, i, j);
          agree &= (oracle_rules.dropout_factor(0, h, i, j) > 0) == keeps;
        }
      }
    }
    REQUIRE(agree);
  }
}

TEST_CASE("F01 a fully masked row is 0 with LSE -inf and reaches no gradient") {
  Inputs in = drawn_problem({1, 1, 1, 2, 4, 3, 3}, Format::fp64, 1);
  in.mask = {0, 0, 0, 0, 1, 1, 1, 1};
  const Outputs out = oracle(in, {}, true);
  CHECK(Values(out.o.begin(), out.o.begin() + 3) == Values(3));
  CHECK(Values(out.dq.begin(), out.dq.begin() + 3) == Values(3));
  CHECK(out.lse[0] == -kInfinity);

  Inputs alone = in;  // the second row by itself
  alone.shape.Nq = 1;
  alone.mask.clear();
  alone.q.erase(alone.q.begin(), alone.q.begin() + 3);
  alone.dout.erase(alone.dout.begin(), alone.dout.begin() + 3);
  const Outputs expected = oracle(alone, {}, true);
  CHECK(out.dk == expected.dk);
  CHECK(out.dv == expected.dv);
}

TEST_CASE("F02, F03 causal is bottom-right aligned") {
  CHECK(!(distance(oracle(counting(2, 5), causal(), false).o, {1.5, 2}) > 1e-15));
  CHECK(!(distance(oracle(counting(1, 5), causal(), false).o, {2}) > 1e-15));
  Inputs in = counting(5, 2);
  in.v = {1, 3};
  in.dout = Values(5, 1.0);
  const Outputs out = oracle(in, causal(), true);
  CHECK(!(distance(out.o, {0, 0, 0, 1, 2}) > 1e-15));
  CHECK(!(distance(out.lse, {-kInfinity, -kInfinity, -kInfinity, 0, std::log(2.0)}) > 1e-15));
  CHECK(!(distance(out.dq, {0, 0, 0, 0, 0}) > 1e-15));
  CHECK(!(distance(out.dv, {1.5, 0.5}) > 1e-15));
  CHECK(!(distance(out.dk, {0, 0}) > 1e-15));  // q = 0
}

TEST_CASE("F04 windows include both ends, negative sides are unbounded") {
  const auto o_of = [](Index left, Index right) {
    Options options;
    options.window = {left, right};
    return oracle(counting(6, 6), options, false).o;
  };
  const Values mean(6, 2.5), to_diagonal{0, .5, 1, 1.5, 2, 2.5};
  CHECK(!(distance(o_of(2, 0), {0, .5, 1, 2, 3, 4}) > 1e-15));
  CHECK(!(distance(o_of(0, 0), {0, 1, 2, 3, 4, 5}) > 1e-15));
  CHECK(!(distance(o_of(-1, -1), mean) > 1e-15));
  CHECK(!(distance(o_of(99, 99), mean) > 1e-15));
  CHECK(!(distance(o_of(std::numeric_limits<Index>::max(), std::numeric_limits<Index>::max()), mean) > 1e-15));
  CHECK(!(distance(o_of(-1, 0), to_diagonal) > 1e-15));
  CHECK(!(distance(o_of(5, 0), to_diagonal) > 1e-15));
}

TEST_CASE("F10, F19, F26 scores, scale and softcap by hand") {
  const Outputs third = oracle(one_channel({1}, {0, std::log(3.0)}, {1, 0}), {}, false);
  CHECK(!(distance(third.o, {0.25}) > 1e-15));
  CHECK(!(distance(third.lse, {std::log(4.0)}) > 1e-15));

  Inputs forty;
  forty.dtype = Format::fp64;
  forty.shape = {1, 1, 1, 1, 2, 40, 1};
  forty.q = Values(40, 1.0);
  forty.k = Values(80, 0.0);
  std::fill_n(forty.k.begin(), 40, 1.0);
  forty.v = {1, 0};
  CHECK(!(distance(oracle(forty, {}, false).o, {0.998211}) > 1e-6));

  Inputs in = one_channel({1}, {10, 0}, {1, 0});
  in.dout = {1};
  Options capped;
  capped.softcap = 5;
  const Outputs out = oracle(in, capped, true);
  const double p = 0.991999, slope = 0.070651;
  CHECK(!(distance(out.o, {p}) > 1e-6));
  CHECK(!(distance(out.lse, {4.820138 + std::log1p(std::exp(-4.820138))}) > 1e-6));
  CHECK(!(distance(out.dk, {p * (1 - p) * slope, -p * (1 - p)}) > 1e-6));
  CHECK(!(distance(out.dq, {p * (1 - p) * slope * 10}) > 1e-6));
  CHECK(!(distance(oracle(in, {}, false).o, {0.999955}) > 1e-6));  // c = 0 is off
}

TEST_CASE("F22, F23 query heads share KV heads by repeating, and their gradients are summed") {
  const auto heads_read = [](Index heads, Index kv_heads) {
    Inputs in = draw_inputs({1, heads, kv_heads, 1, 1, 1, 1}, Format::fp64, 0);
    for (std::size_t n = 0; n < in.v.size(); ++n) in.v[n] = static_cast<double>(n + 1);
    return oracle(in, {}, false).o;
  };
  CHECK(heads_read(6, 2) == Values{1, 1, 1, 2, 2, 2});
  CHECK(heads_read(8, 2) == Values{1, 1, 1, 1, 2, 2, 2, 2});
  CHECK(heads_read(6, 3) == Values{1, 1, 2, 2, 3, 3});
  CHECK(refusal([&] { heads_read(3, 2); }).find("multiple") != std::string::npos);

  Inputs in = draw_inputs({1, 4, 1, 1, 1, 1, 1}, Format::fp64, 4);
  in.dout = {1, 2, 3, 4};
  const Outputs out = oracle(in, {}, true);
  CHECK(out.dv == Values{10});
  CHECK(out.dk == Values{0});
  CHECK(out.dq == Values(4));
}

TEST_CASE("F25 dropout acts on P, the same way in both directions") {
  const Index N = 64;
  Inputs in = draw_inputs({1, 1, 1, N, N, N, N}, Format::fp64, 6);
  in.v.assign(in.v.size(), 0);
  for (Index n = 0; n < N; ++n) in.v[static_cast<std::size_t>(n * N + n)] = 1;
  in.dout = in.v;
  Options off, half;
  half.dropout = 0.5;
  half.dropout_seed = 42;
  const Values P = oracle(in, off, false).o;
  const Outputs out = oracle(in, half, true);
  int kept = 0, transposed = 0;
  for (Index i = 0; i < N; ++i) {
    for (Index j = 0; j < N; ++j) {
      const auto at = static_cast<std::size_t>(i * N + j);
      kept += out.o[at] == 2 * P[at];
      transposed += out.dv[static_cast<std::size_t>(j * N + i)] == out.o[at];
      CHECK((out.o[at] == 0 || out.o[at] == 2 * P[at]));
    }
  }
  CHECK(std::abs(kept / 4096.0 - 0.5) < 0.02);
  CHECK(transposed == 4096);
  half.dropout_seed = 43;
  CHECK(oracle(in, half, false).o != out.o);
  CHECK(oracle(in, half, false).lse == oracle(in, off, false).lse);
}

TEST_CASE("F27 ALiBi subtracts slope times distance, also in a step of decoding") {
  Inputs in = counting(3, 3), last = counting(1, 3);
  in.slopes = last.slopes = {1};
  CHECK(!(std::abs(oracle(in, causal(), false).o[2] - 1.575210) > 1e-6));
  CHECK(!(distance(oracle(last, causal(), false).o, {1.575210}) > 1e-6));
}

TEST_CASE("F28 LSE is natural, [head, row], and merges halves of K") {
  CHECK(!(distance(oracle(counting(1, 4), {}, false).lse, {1.386294}) > 1e-6));
  const Inputs in = draw_inputs({1, 2, 2, 3, 8, 4, 4}, Format::fp64, 9);
  const Outputs whole = oracle(in, {}, false);
  const auto half = [&](Index first) {
    Inputs part = in;
    part.mask.assign(3 * 8, 0);
    for (Index i = 0; i < 3; ++i) std::fill_n(part.mask.begin() + i * 8 + first, 4, 1);
    return oracle(part, {}, false);
  };
  const Outputs left = half(0), right = half(4);
  for (std::size_t row = 0; row < 6; ++row) {
    const double lse = std::log(std::exp(left.lse[row]) + std::exp(right.lse[row]));
    CHECK(std::abs(lse - whole.lse[row]) < 1e-14);
    const double merged =
        std::exp(left.lse[row] - lse) * left.o[row * 4] + std::exp(right.lse[row] - lse) * right.o[row * 4];
    CHECK(std::abs(merged - whole.o[row * 4]) < 1e-14);
  }
  Inputs second = in;  // head 1 alone gives the second half of LSE
  second.shape.heads = second.shape.kv_heads = 1;
  for (Values* array : {&second.q, &second.k, &second.v}) {
    array->erase(array->begin(), array->begin() + static_cast<Index>(array->size() / 2));
  }
  CHECK(oracle(second, {}, false).lse == Values(whole.lse.begin() + 3, whole.lse.end()));
}

TEST_CASE("empty batches, queries and keys") {
  CHECK(oracle(drawn_problem({0, 2, 1, 3, 3, 2, 2}, Format::fp64, 0), {}, true).o.empty());
  const Outputs no_query = oracle(drawn_problem({1, 1, 1, 0, 3, 2, 2}, Format::fp64, 0), {}, true);
  CHECK(no_query.o.empty());
  CHECK(no_query.dk == Values(6));
  CHECK(no_query.dv == Values(6));
  const Outputs no_key = oracle(drawn_problem({1, 1, 1, 4, 0, 2, 2}, Format::fp64, 0), {}, true);
  CHECK(no_key.o == Values(8));
  CHECK(no_key.lse == Values(4, -kInfinity));
  CHECK(no_key.dq == Values(8));
}

TEST_CASE("a number that is not finite reaches the rows that see it and no other") {
  const Inputs clean = drawn_problem({1, 1, 1, 5, 5, 2, 2}, Format::fp64, 3);
  const Outputs expected = oracle(clean, causal(), true);
  for (const double bad : {kNaN, kInfinity, -kInfinity}) {
    for (Values Inputs::*array : {&Inputs::k, &Inputs::v}) {
      Inputs in = clean;
      (in.*array)[3 * 2] = bad;  // key 3: seen by rows 3 and 4
      for (const Outputs& out : {oracle(in, causal(), true), baseline(in, causal(), true, false)}) {
        for (std::size_t n = 0; n < 6; ++n) CHECK(std::abs(out.o[n] - expected.o[n]) < 1e-14);
        for (std::size_t n = 0; n < 6; ++n) CHECK(std::abs(out.dq[n] - expected.dq[n]) < 1e-14);
      }
      const Outputs out = oracle(in, causal(), true);
      for (std::size_t n = 6; n < 10; ++n) CHECK((std::isnan(out.o[n]) && std::isnan(out.dq[n])));
      for (std::size_t n = 0; n < 10; ++n) CHECK((std::isnan(out.dk[n]) && std::isnan(out.dv[n])));
      CHECK((std::isnan(out.lse[3]) && std::isnan(out.lse[4]) && out.lse[2] == expected.lse[2]));
      CHECK(check(out, reference(in, causal(), true), in, causal()).message() == "");
    }
    Inputs in = clean;
    in.dout[0] = bad;  // row 0 sees key 0 alone
    const Outputs out = oracle(in, causal(), true);
    CHECK((out.o == expected.o && std::isnan(out.dq[0]) && std::isnan(out.dv[1]) && out.dv[2] == expected.dv[2]));
  }
}

TEST_CASE("the oracle's gradients are its outputs' finite differences, for every option") {
  for (const Shape& shape : {Shape{2, 4, 2, 5, 7, 3, 2}, Shape{1, 2, 1, 6, 4, 2, 5}}) {
    for (const Variant& variant : variants()) {
      Inputs in = drawn_problem(shape, Format::fp64, 11);
      Options options;
      variant.apply(in, options);
      const Outputs out = oracle(in, options, true);
      const auto loss = [&] {
        const Values o = oracle(in, options, false).o;
        return std::inner_product(o.begin(), o.end(), in.dout.begin(), 0.0);
      };
      const std::pair<Values*, const Values*> pairs[] = {{&in.q, &out.dq}, {&in.k, &out.dk}, {&in.v, &out.dv}};
      for (const auto& [values, gradient] : pairs) {
        Values difference;
        for (double& x : *values) {
          constexpr double h = 1e-5;
          const double kept = x;
          x = kept + h;
          const double above = loss();
          x = kept - h;
          difference.push_back((above - loss()) / (2 * h));
          x = kept;
        }
        INFO(variant.name);
        CHECK(!(distance(*gradient, difference) > 2e-8));
      }
    }
  }
}

TEST_CASE("the baseline in fp64 is the oracle, and loses what the format loses elsewhere") {
  for (const Variant& variant : variants()) {
    Inputs in = drawn_problem({1, 4, 2, 9, 11, 8, 6}, Format::fp64, 13);
    Options options;
    variant.apply(in, options);
    const Outputs exact = oracle(in, options, true), plain = baseline(in, options, true, false);
    INFO(variant.name);
    for (Values Outputs::*part : {&Outputs::o, &Outputs::lse, &Outputs::dq, &Outputs::dk, &Outputs::dv}) {
      CHECK(!(distance(plain.*part, exact.*part) > 1e-13));
    }
    for (const Format format : {Format::fp32, Format::fp16, Format::bf16}) {
      in.dtype = format;
      round_inputs(in);
      const double error = distance(baseline(in, options, true, false).o, oracle(in, options, false).o);
      CHECK(error < 8 * epsilon(format));
      CHECK(error > epsilon(format) / 64);
    }
  }
  const Inputs in = drawn_problem({1, 1, 1, 64, 64, 64, 64}, Format::bf16, 1);
  CHECK(distance(baseline(in, {}, false, true).lse, oracle(in, {}, false).lse) > 1e-4);   // scores rounded
  CHECK(distance(baseline(in, {}, false, false).lse, oracle(in, {}, false).lse) < 1e-5);  // and not
}

TEST_CASE("drawn inputs are the same everywhere and look normal") {
  const Inputs in = draw_inputs({1, 2, 2, 64, 64, 64, 64}, Format::fp64, 0);
  CHECK(in.q == draw_inputs({1, 2, 2, 64, 64, 64, 64}, Format::fp64, 0).q);
  CHECK(in.q != draw_inputs({1, 2, 2, 64, 64, 64, 64}, Format::fp64, 1).q);
  CHECK(in.q != in.k);
  // By hand from Philox's known answer for counter 0 and key 0: the sum of the eight halves.
  const double sum = 0x6627 + 0xe8d5 + 0xe169 + 0xc58d + 0xbc57 + 0xac4c + 0x9b00 + 0xdbd8;
  CHECK(std::abs(in.q[0] - (sum - 4 * 65535.0) / (65536 * std::sqrt(8 / 12.0))) < 1e-12);
  double mean = 0, square = 0, fourth = 0;
  for (const double x : in.q) mean += x, square += x * x, fourth += x * x * x * x;
  const double n = static_cast<double>(in.q.size());
  CHECK(std::abs(mean / n) < 0.05);
  CHECK(std::abs(square / n - 1) < 0.05);
  CHECK(std::abs(fourth / n - 2.85) < 0.2);  // 3 − 1.2/8

  Inputs half = draw_inputs({1, 1, 1, 8, 8, 8, 8}, Format::fp16, 5);
  draw_dout(half, 5);
  for (const double x : half.dout) CHECK(x == rounded(x, Format::fp16));
  for (const double x : half.k) CHECK(x == rounded(x, Format::fp16));
  Inputs next = half;
  draw_dout(next, 6);
  CHECK(next.dout != half.dout);
}

TEST_CASE("the shipped examples") {
  const Inputs real = example_minilm(fs::path(FLASH_SOURCE_DIR) / "stages/common/data", Format::fp32);
  CHECK(real.q.size() == 12 * 512 * 32);
  const auto [least, most] = [&] {
    std::pair<double, double> range{kInfinity, -kInfinity};
    const OracleRules rules(real, {});
    for (Index h = 0; h < 12; ++h) {
      for (Index i = 0; i < 512; ++i) {
        const SoftmaxRow row = softmax_row(rules, 0, h, i);
        range.first = std::min(range.first, *std::min_element(row.s.begin(), row.s.end()));
        range.second = std::max(range.second, *std::max_element(row.s.begin(), row.s.end()));
      }
    }
    return range;
  }();
  CHECK(std::abs(least + 67.7) < 0.1);
  CHECK(std::abs(most - 76.7) < 0.1);
  CHECK_THROWS_AS(example_minilm(fs::path(FLASH_SOURCE_DIR) / "tests", Format::fp32), Refused);

  const Inputs hand = example_hand(Format::fp16);
  Options options;
  options.scale = 1;
  const OracleRules rules(hand, options);
  const Values scores[] = {{1, 0, 2, 0}, {0, 1, 1, -1}, {1, 1, 3, -1}, {1, -1, 1, 1}};
  for (Index i = 0; i < 4; ++i) {
    const Values s = softmax_row(rules, 0, 0, i).s;
    CHECK(s == scores[i]);
    const bool rises = std::max(s[2], s[3]) > std::max(s[0], s[1]);
    CHECK(rises == (i == 0 || i == 2));
  }
  CHECK(hand.dout.size() == 8);
}

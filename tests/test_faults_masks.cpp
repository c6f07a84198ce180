// Faults that real attention code has had, each with the smallest input that shows it and the answer that is right: who
// sees whom, and what happens to a score or probability on the way. F30–F33 and F37 are about threads, streams and
// shared memory of a GPU; F36 is about an exponential that no stage here has; F40 is about notebooks.
#include <set>

#include "tests/catch.hpp"
#include "tests/support/stage_runs.hpp"

using namespace flash;

namespace {

/// V[j][c] = j.
double row_number(Index j, Index) { return static_cast<double>(j); }

Options with_window(std::int64_t left, std::int64_t right) {
  Options o;
  o.window = {left, right};
  return o;
}

Options causal() {
  Options o;
  o.causal = true;
  return o;
}

/// O with one channel, and LSE, of each stage.
void expect(const Inputs& in, const Options& options, const std::vector<double>& o, const std::vector<double>& lse) {
  on_every_stage(in, options, [&](const Stage&, const RunResult& result) {
    CHECK(differs(result.outputs.o, o) == "");
    CHECK(differs(result.outputs.lse, lse) == "");
  });
}

void expect(const Inputs& in, const Options& options, const std::vector<double>& o) {
  on_every_stage(in, options,
                 [&](const Stage&, const RunResult& result) { CHECK(differs(result.outputs.o, o) == ""); });
}

bool is_zero(const std::vector<double>& values, Index begin, Index end) {
  return std::all_of(values.begin() + begin, values.begin() + end, [](double x) { return x == 0; });
}

}  // namespace

TEST_CASE("F01 a fully masked row turns to NaN", "[faults]") {
  Inputs in = draw_inputs({1, 1, 1, 2, 4, 3, 3}, Format::fp32, 1);
  draw_dout(in, 1);
  in.mask = {0, 0, 0, 0, 1, 1, 1, 1};
  Inputs second_row = in;  // the problem without row 0
  second_row.shape.Nq = 1;
  second_row.mask = {};
  second_row.q.erase(second_row.q.begin(), second_row.q.begin() + 3);
  second_row.dout.erase(second_row.dout.begin(), second_row.dout.begin() + 3);
  RunConfig backward;
  backward.backward = true;
  const Outputs without = run(find_stage("04"), second_row, {}, backward).outputs;
  on_every_stage(in, {}, [&](const Stage&, const RunResult& result) {
    const Outputs& out = result.outputs;
    CHECK(is_zero(out.o, 0, 3));
    CHECK(out.lse[0] == -kInf);
    CHECK(differs({out.o.begin() + 3, out.o.end()}, without.o) == "");
    if (!result.backward) return;
    CHECK(is_zero(out.dq, 0, 3));
    CHECK(differs({out.dq.begin() + 3, out.dq.end()}, without.dq) == "");
    CHECK(differs(out.dk, without.dk) == "");
    CHECK(differs(out.dv, without.dv) == "");
  });
}

TEST_CASE("F02 causal with Nq < Nk aligned at the wrong corner", "[faults]") {
  expect(equal_scores({1, 1, 1, 2, 5, 4, 1}, row_number), causal(), {1.5, 2}, {std::log(4), std::log(5)});
  expect(equal_scores({1, 1, 1, 1, 5, 4, 1}, row_number), causal(), {2}, {std::log(5)});
}

TEST_CASE("F03 causal with Nq > Nk: rows before the first key", "[faults]") {
  Inputs in = equal_scores({1, 1, 1, 5, 2, 1, 1}, [](Index j, Index) { return j == 0 ? 1 : 3; });
  in.k = {1, 2};
  in.dout.assign(5, 1);
  on_every_stage(in, causal(), [](const Stage&, const RunResult& result) {
    const Outputs& out = result.outputs;
    CHECK(differs(out.o, {0, 0, 0, 1, 2}) == "");
    CHECK(differs(out.lse, {-kInf, -kInf, -kInf, 0, std::log(2)}) == "");
    if (!result.backward) return;
    CHECK(differs(out.dq, {0, 0, 0, 0, 0.5}) == "");  // row 4: P = ½ ½, dP = 1 3, D = 2, dS = −½ ½, K = 1 2
    CHECK(differs(out.dk, {0, 0}) == "");             // Q = 0
    CHECK(differs(out.dv, {1.5, 0.5}) == "");
  });
}

TEST_CASE("F03 causal with far more queries than keys", "[faults]") {
  for (const Index Nq : {76, 34, 146}) {
    Inputs in = draw_inputs({1, 1, 1, Nq, 1, 8, 2}, Format::fp32, 3);
    draw_dout(in, 3);
    on_every_stage(in, causal(), [&](const Stage&, const RunResult& result) {
      const Outputs& out = result.outputs;
      CHECK(is_zero(out.o, 0, 2 * (Nq - 1)));
      CHECK(differs({out.o.end() - 2, out.o.end()}, in.v) == "");
      if (!result.backward) return;
      CHECK(differs(out.dq, std::vector<double>(8 * Nq, 0)) == "");
      CHECK(differs(out.dv, {in.dout.end() - 2, in.dout.end()}) == "");
    });
  }
}

TEST_CASE("F04 windows: both ends are included, zero is a side, negative is none", "[faults]") {
  const Inputs in = equal_scores({1, 1, 1, 6, 6, 3, 1}, row_number);
  const std::vector<double> all(6, 2.5), up_to_the_diagonal = {0, 0.5, 1, 1.5, 2, 2.5};
  expect(in, with_window(2, 0), {0, 0.5, 1, 2, 3, 4});
  expect(in, with_window(0, 0), {0, 1, 2, 3, 4, 5}, std::vector<double>(6, 0));
  expect(in, with_window(-1, -1), all);
  expect(in, with_window(99, 99), all);
  expect(in, with_window(INT64_MAX, INT64_MAX), all);
  expect(in, with_window(-1, 0), up_to_the_diagonal);
  expect(in, with_window(5, 0), up_to_the_diagonal);
  expect(in, causal(), up_to_the_diagonal);
  expect(in, with_window(0, 1), {0.5, 1.5, 2.5, 3.5, 4.5, 5});
  // The centre is i + (Nk − Nq), as in the causal rule.
  expect(equal_scores({1, 1, 1, 2, 6, 3, 1}, row_number), with_window(1, 0), {3.5, 4.5});
  expect(equal_scores({1, 1, 1, 4, 2, 3, 1}, row_number), with_window(0, 1), {0, 0, 0.5, 1},
         {-kInf, 0, std::log(2), 0});
}

TEST_CASE("F06 the last tile is filled with zeros that score 0", "[faults]") {
  Inputs in = equal_scores({1, 1, 1, 1, 65, 1, 1}, [](Index, Index) { return 1; });
  in.q = {-20};  // K = 1: every score is −20
  in.dout = {1};
  on_every_stage(in, with_scale(1), [](const Stage&, const RunResult& result) {
    CHECK(differs(result.outputs.o, {1}, 2e-6) == "");
    CHECK(differs(result.outputs.lse, {-20 + std::log(65)}) == "");
    if (result.backward) CHECK(differs(result.outputs.dv, std::vector<double>(65, 1 / 65.0)) == "");
  });
}

TEST_CASE("F07 finite sentinel in place of −∞", "[faults]") {
  Inputs in = equal_scores({1, 1, 1, 2, 8, 1, 1}, [](Index, Index) { return 1; });
  in.q = {-1e6, -1e6};
  in.mask.assign(16, 1);
  std::fill_n(in.mask.begin() + 8, 8, 0);  // row 1 sees nothing
  on_every_stage(in, with_scale(1), [](const Stage&, const RunResult& result) {
    CHECK(differs(result.outputs.o, {1, 0}) == "");
    CHECK(differs(result.outputs.lse, {-1e6 + std::log(8), -kInf}, 0x1p-23) == "");
  });
}

TEST_CASE("F12 what nobody wrote leaks into the result", "[faults]") {
  // Memory starts as NaN. Tiles that are never visited, rows without keys, keys without queries, a ragged edge.
  Inputs in = draw_inputs({2, 4, 2, 33, 70, 8, 8}, Format::fp32, 12);
  draw_dout(in, 12);
  for (const Format dtype : kFormats) {
    in.dtype = dtype;
    round_inputs(in);
    for (const Options& o : {Options{}, with_window(0, 0), with_window(3, -1), causal()}) {
      on_every_stage(in, o, [](const Stage&, const RunResult& result) {
        const Outputs& out = result.outputs;
        CHECK(all_finite(out.o));
        CHECK(all_finite(out.lse));
        CHECK(all_finite(out.dq));
        CHECK(all_finite(out.dk));
        CHECK(all_finite(out.dv));
      });
    }
  }
}

TEST_CASE("F12 a key that no query sees gets its zero gradient written", "[faults]") {
  Inputs in = draw_inputs({1, 4, 2, 3, 9, 4, 4}, Format::fp32, 13);
  draw_dout(in, 13);
  Inputs hidden = in;
  hidden.mask.assign(3 * 9, 0);
  on_every_stage(in, with_window(0, 0), [](const Stage&, const RunResult& result) {  // keys 6, 7, 8 are seen
    if (!result.backward) return;
    for (const Index kv_head : {0, 1}) {
      CHECK(is_zero(result.outputs.dk, kv_head * 36, kv_head * 36 + 24));
      CHECK(is_zero(result.outputs.dv, kv_head * 36, kv_head * 36 + 24));
    }
  });
  on_every_stage(hidden, {}, [](const Stage&, const RunResult& result) {
    const Outputs& out = result.outputs;
    for (const auto* values : {&out.o, &out.dq, &out.dk, &out.dv}) CHECK(is_zero(*values, 0, values->size()));
  });
}

TEST_CASE("F25 dropout: one mask for both passes and all tiles, kept entries times 1/(1−p)", "[faults]") {
  const Index N = 64;
  Inputs in = draw_inputs({1, 1, 1, N, N, N, N}, Format::fp32, 25);
  const auto identity = [](Index n) { return n / N == n % N ? 1.0 : 0.0; };
  in.v = array(N * N, identity);  // O is P∘M/(1−p)
  in.dout = array(N * N, identity);
  Options o;
  const Outputs plain = run(find_stage("01"), in, o, {}).outputs;  // O is P
  o.dropout = 0.5;
  o.dropout_seed = 1;
  std::vector<bool> kept;
  on_every_stage(in, o, [&](const Stage&, const RunResult& result) {
    const Outputs& out = result.outputs;
    std::vector<bool> kept_here;
    for (const double x : out.o) kept_here.push_back(x != 0);
    if (kept.empty()) kept = kept_here;
    CHECK(kept_here == kept);
    CHECK(std::abs(std::ranges::count(kept_here, true) / double(N * N) - 0.5) <= 0.02);
    const auto expected = array(N * N, [&](Index n) { return kept_here[n] ? 2 * plain.o[n] : 0; });
    CHECK(differs(out.o, expected) == "");
    if (!result.backward) return;
    CHECK(differs(out.dv, array(N * N, [&](Index n) { return out.o[n % N * N + n / N]; })) == "");  // Oᵀ
    for (Index n = 0; n < N * N; ++n) REQUIRE((out.dv[n] != 0) == (out.o[n % N * N + n / N] != 0));
  });
  o.dropout_seed = 2;
  const Outputs other = run(find_stage("03"), in, o, {}).outputs;
  Index differing = 0;
  for (Index n = 0; n < N * N; ++n) differing += (other.o[n] != 0) != kept[n];
  CHECK(std::abs(differing / double(N * N) - 0.5) <= 0.04);
}

TEST_CASE("F25 dropout: dS = P∘(M/(1−p)·dP − D)", "[faults]") {
  // One row, two equal scores, dO = 1, scale and q 1: dK is dS. Seeds are tried until each mask was met.
  const Inputs in = [] {
    Inputs two = one_row({0, 0}, {1, 3});
    two.dout = {1};
    return two;
  }();
  std::set<std::pair<bool, bool>> met;
  Options o = with_scale(1);
  o.dropout = 0.5;
  for (o.dropout_seed = 0; o.dropout_seed < 16; ++o.dropout_seed)
    on_every_stage(in, o, [&](const Stage&, const RunResult& result) {
      if (!result.backward) return;
      const Outputs& out = result.outputs;
      const double first = out.dv[0], second = out.dv[1];  // P∘M/(1−p): 0 or 1
      met.insert({first != 0, second != 0});
      const double D = first * 1 + second * 3;
      CHECK(differs(out.o, {D}) == "");
      CHECK(differs(out.dk, {0.5 * (2 * first * 1 - D), 0.5 * (2 * second * 3 - D)}) == "");
    });
  CHECK(met.size() == 4);
}

TEST_CASE("F25 dropout of 0 is none", "[faults]") {
  Inputs in = draw_inputs({1, 2, 1, 17, 17, 8, 8}, Format::fp32, 26);
  draw_dout(in, 26);
  Options seeded;
  seeded.dropout_seed = 5;
  for (const Stage& stage : stages_on(Side::cpu)) {
    RunConfig config;
    config.backward = stage.has_backward();
    CHECK(same_bits(run(stage, in, seeded, config).outputs, run(stage, in, {}, config).outputs));
  }
}

TEST_CASE("F26 softcap: its formula, and its factor in the gradient", "[faults]") {
  Inputs in = one_row({10, 0}, {1, 0});
  in.dout = {1};
  Options o = with_scale(1);
  o.softcap = 5;
  const double capped = 4.820138, P = 0.991999, factor = 0.070651;  // 5·tanh 2, its softmax, 1 − tanh² 2
  const double dS = P * (1 - P);                                    // before the factor; −dS for the other key
  on_every_stage(in, o, [&](const Stage&, const RunResult& result) {
    const Outputs& out = result.outputs;
    CHECK(differs(out.o, {P}) == "");
    CHECK(differs(out.lse, {capped + std::log1p(std::exp(-capped))}) == "");
    if (!result.backward) return;
    CHECK(differs(out.dk, {factor * dS, -dS}, 1e-6) == "");
    CHECK(differs(out.dq, {10 * factor * dS}, 1e-6) == "");
  });
  o.softcap = 0;
  expect(in, o, {0.999955});
}

TEST_CASE("F27 ALiBi: sign, alignment, and a single query", "[faults]") {
  Options o = causal();
  Inputs three = equal_scores({1, 1, 1, 3, 3, 2, 1}, row_number);
  three.slopes = {1};
  on_every_stage(
      three, o, [](const Stage&, const RunResult& result) { CHECK(differs({result.outputs.o[2]}, {1.575210}) == ""); });
  Inputs one = equal_scores({1, 1, 1, 1, 3, 2, 1}, row_number);
  one.slopes = {1};
  expect(one, o, {1.575210});
  expect(one, {}, {1.575210});
  // Without the causal rule keys after the centre are as far as keys before it.
  Inputs heads = equal_scores({1, 2, 1, 3, 3, 2, 1}, row_number);
  heads.slopes = {1, 0};
  on_every_stage(heads, {}, [](const Stage&, const RunResult& result) {
    CHECK(differs({result.outputs.o[1], result.outputs.o[0]}, {1, 2 - 1.575210}) == "");
    CHECK(differs({result.outputs.o.begin() + 3, result.outputs.o.end()}, {1, 1, 1}) == "");
  });
}

TEST_CASE("F29 no queries, no keys, no batch", "[faults]") {
  const auto drawn = [](const Shape& shape) {
    Inputs in = draw_inputs(shape, Format::fp32, 29);
    draw_dout(in, 29);
    return in;
  };
  on_every_stage(drawn({1, 2, 1, 0, 3, 4, 5}), {}, [](const Stage&, const RunResult& result) {
    CHECK(result.outputs.o.empty());
    CHECK(result.outputs.lse.empty());
    if (!result.backward) return;
    CHECK(result.outputs.dk == std::vector<double>(12, 0));
    CHECK(result.outputs.dv == std::vector<double>(15, 0));
  });
  on_every_stage(drawn({1, 2, 1, 4, 0, 3, 5}), {}, [](const Stage&, const RunResult& result) {
    CHECK(result.outputs.o == std::vector<double>(40, 0));
    CHECK(result.outputs.lse == std::vector<double>(8, -kInf));
    if (result.backward) CHECK(result.outputs.dq == std::vector<double>(24, 0));
  });
  for (const Shape& shape : {Shape{0, 2, 1, 4, 3, 2, 5}, Shape{2, 2, 1, 0, 0, 2, 5}})
    on_every_stage(drawn(shape), causal(), [](const Stage&, const RunResult& result) {
      const Outputs& out = result.outputs;
      for (const auto* values : {&out.o, &out.lse, &out.dq, &out.dk, &out.dv}) CHECK(values->empty());
    });
}

// NaN and infinities in the inputs, scores that overflow, and what does not fit together: a sentence, or NaN in exactly
// the rows that see it. Never a wrong number.
#include <map>

#include "tests/catch.hpp"
#include "tests/support/stage_runs.hpp"

using namespace flash;

namespace {

/// Batch 1, query heads 0 and 1 on KV head 0, 2 and 3 on KV head 1; query i sees keys i−1 and i, query 0 key 0 alone.
Inputs banded() {
  Inputs in = draw_inputs({1, 4, 2, 9, 9, 4, 4}, Format::fp32, 5);
  draw_dout(in, 5);
  return in;
}

Options band() {
  Options o;
  o.window = {1, 0};
  return o;
}

/// Rows [heads, 9] of one output that are NaN throughout; a row that is NaN in part is named with a minus sign.
std::vector<int> nan_rows(const std::vector<double>& values, Index width) {
  std::vector<int> rows;
  for (Index row = 0; row < static_cast<Index>(values.size()) / width; ++row) {
    const auto first = values.begin() + row * width;
    const auto nans = std::count_if(first, first + width, [](double x) { return std::isnan(x); });
    if (nans > 0) rows.push_back(nans == width ? static_cast<int>(row) : -static_cast<int>(row));
  }
  return rows;
}

/// The rows that are not NaN have the same bits as in `clean`.
bool rest_unchanged(const std::vector<double>& got, const std::vector<double>& clean) {
  return std::ranges::equal(got, clean, [](double x, double y) { return std::isnan(x) || x == y; });
}

struct Spoiled {
  std::vector<int> o, dq, dk, dv;  // rows, numbered over all heads
};

/// Puts `bad` at one place, expects a refusal that names it, and with allow_nonfinite NaN exactly where told, with the
/// other bits of a run in which a 0 stands there.
void expect_spoiled(std::vector<double> Inputs::*array, Index at, double bad, const std::string& named,
                    const Spoiled& rows, Options o = band()) {
  Inputs in = banded(), with_zero = banded();
  (in.*array)[at] = bad;
  (with_zero.*array)[at] = 0;
  CHECK(not_refused_with(named, find_stage("03"), in, o) == "");
  RunConfig allowing;
  allowing.allow_nonfinite = true;
  std::map<std::string, Outputs> clean;  // by stage and tiles
  const auto key = [](const Stage& stage, const RunResult& r) {
    return r.forward.blocks ? fmt::format("{} {}", stage.id, r.forward.blocks->Br) : stage.id;
  };
  on_every_stage(with_zero, o, [&](const Stage& stage, const RunResult& r) { clean[key(stage, r)] = r.outputs; });
  on_every_stage(
      in, o,
      [&](const Stage& stage, const RunResult& result) {
        const Outputs &out = result.outputs, &expected = clean.at(key(stage, result));
        CHECK(nan_rows(out.o, 4) == rows.o);
        CHECK(nan_rows(out.lse, 1) == rows.o);
        CHECK(rest_unchanged(out.o, expected.o));
        CHECK(rest_unchanged(out.lse, expected.lse));
        if (!result.backward) return;
        CHECK(nan_rows(out.dq, 4) == rows.dq);
        CHECK(nan_rows(out.dk, 4) == rows.dk);
        CHECK(nan_rows(out.dv, 4) == rows.dv);
        CHECK(rest_unchanged(out.dq, expected.dq));
        CHECK(rest_unchanged(out.dk, expected.dk));
        CHECK(rest_unchanged(out.dv, expected.dv));
      },
      allowing);
}

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

}  // namespace

TEST_CASE("a query that is not finite spoils its own row and the keys that it sees", "[nonfinite]") {
  for (const double bad : {kNaN, kInf, -kInf})  // head 2, query 5 sees keys 4 and 5 of KV head 1
    expect_spoiled(&Inputs::q, (2 * 9 + 5) * 4 + 1, bad, "q[0,2,5,1] is", {{23}, {23}, {13, 14}, {13, 14}});
}

TEST_CASE("a key or value that is not finite spoils the rows of its group that see it", "[nonfinite]") {
  // Key 5 of KV head 0: queries 5 and 6 of heads 0 and 1 see it, and those see keys 4, 5 and 6.
  const Spoiled rows{{5, 6, 14, 15}, {5, 6, 14, 15}, {4, 5, 6}, {4, 5, 6}};
  for (const double bad : {kNaN, kInf, -kInf}) {
    expect_spoiled(&Inputs::k, 5 * 4, bad, "k[0,0,5,0] is", rows);
    expect_spoiled(&Inputs::v, 5 * 4 + 3, bad, "v[0,0,5,3] is", rows);
  }
}

TEST_CASE("an output's gradient that is not finite spoils gradients alone", "[nonfinite]") {
  for (const double bad : {kNaN, kInf, -kInf})  // head 0, query 0 sees key 0 alone
    expect_spoiled(&Inputs::dout, 2, bad, "dout[0,0,0,2] is", {{}, {0}, {0}, {0}});
}

TEST_CASE("what nobody sees spoils nothing", "[nonfinite]") {
  Options o;
  o.window = {-1, -1};
  Inputs in = banded();
  in.mask.assign(81, 1);
  for (Index n = 0; n < 9; ++n) in.mask[4 * 9 + n] = in.mask[n * 9 + 7] = 0;  // query 4 sees nothing, nobody sees key 7
  const Inputs clean = in;
  in.q[4 * 4] = kNaN;
  in.k[7 * 4] = kInf;
  in.v[7 * 4] = kNaN;
  in.dout[4 * 4] = kNaN;
  Inputs with_zero = in;
  with_zero.q[4 * 4] = with_zero.k[7 * 4] = with_zero.v[7 * 4] = with_zero.dout[4 * 4] = 0;
  RunConfig config;
  config.allow_nonfinite = true;
  for (const Stage& stage : stages_on(Side::cpu)) {
    INFO(stage.id);
    config.backward = stage.has_backward();
    const Outputs out = run(stage, in, o, config).outputs;
    CHECK(same_bits(out, run(stage, with_zero, o, config).outputs));
    for (const auto* values : {&out.o, &out.dq, &out.dk, &out.dv}) CHECK(all_finite(*values));
  }
}

TEST_CASE("fp16 scores beyond 65504 are refused where S is stored, and right elsewhere", "[nonfinite]") {
  // Scores 76800 and −76800 and one that fits; then a row whose scores all overflow downwards, which is no masked row.
  Options o = with_scale(1);
  const auto fp16 = [](double q, std::vector<double> k) {
    Inputs in = one_row(std::move(k), {1, 2, 4}, Format::fp16);
    in.q = {q};
    in.dout = {1};
    return in;
  };
  const std::pair<Inputs, std::array<double, 2>> cases[] = {
      {fp16(256, {300, -300, 0}), {1, 76800}},
      {fp16(256, {-300, 2, -300}), {2, 512}},
      {fp16(-256, {300, 300.25, 301}), {1, -76800}},
  };
  for (const auto& [in, expected] : cases)
    for (const Stage& stage : stages_on(Side::cpu)) {
      INFO(stage.id << ", O " << expected[0] << ", LSE " << expected[1]);
      RunConfig config;
      config.backward = stage.has_backward();
      if (stage.lse == "S") {
        CHECK(not_refused_with("65504; take stage 03_online_softmax", stage, in, o, config) == "");
        continue;
      }
      const Outputs out = run(stage, in, o, config).outputs;
      CHECK(differs(out.o, {expected[0]}) == "");
      CHECK(differs(out.lse, {expected[1]}) == "");
      CHECK(all_finite(out.dv));
    }
}

TEST_CASE("an explicit mask hides scores that overflow, or nothing", "[nonfinite]") {
  Inputs in = one_row({300, 1, -300}, {1, 2, 4}, Format::fp16);
  in.q = {256};
  in.mask = {0, 1, 0};
  on_every_stage(in, with_scale(1), [](const Stage&, const RunResult& result) {
    CHECK(differs(result.outputs.o, {2}) == "");
    CHECK(differs(result.outputs.lse, {256}) == "");
  });
}

TEST_CASE("scores beyond fp32 are refused, both ways, and right in fp64", "[nonfinite]") {
  for (const double sign : {1.0, -1.0}) {
    Inputs in = one_row({sign * 1e20, sign * 2e20}, {1, 2});
    in.q = {1e20};
    round_inputs(in);
    for (const Stage& stage : stages_on(Side::cpu)) {
      INFO(stage.id);
      in.dtype = Format::fp32;
      CHECK(not_refused_with("beyond what fp32 holds", stage, in, with_scale(1)) == "");
      in.dtype = Format::fp64;
      CHECK(run(stage, in, with_scale(1), {}).outputs.o == std::vector<double>{sign > 0 ? 2.0 : 1.0});
    }
  }
}

TEST_CASE("what a stage does not take is refused, naming one that does", "[nonfinite]") {
  Inputs in = draw_inputs({1, 1, 1, 4, 4, 2, 2}, Format::fp32, 1);
  draw_dout(in, 1);
  Options tiles, first_touch;
  tiles.br = tiles.bc = 2;
  first_touch.first_touch = true;
  RunConfig backward;
  backward.backward = true;
  CHECK(not_refused_with("01_materialized, which does not take it; take stage 02_tiling", find_stage("01"), in,
                         tiles) == "");
  CHECK(not_refused_with("03_online_softmax", find_stage("02"), in, first_touch) == "");
  CHECK(not_refused_with("04_recomputed_backward", find_stage("02"), in, {}, backward) == "");
  CHECK(not_refused_with("04_recomputed_backward", find_stage("03"), in, {}, backward) == "");
}

TEST_CASE("arrays that are not of one problem are refused", "[nonfinite]") {
  const Inputs right = draw_inputs({1, 2, 2, 4, 4, 2, 2}, Format::fp32, 1);
  const Stage& stage = find_stage("04");
  Options one_side, tiles;
  one_side.br = 2;
  tiles.br = tiles.bc = 2;
  RunConfig backward;
  backward.backward = true;
  Inputs short_q = right, slopes = right, mask = right, blocks = right;
  short_q.q.pop_back();
  slopes.slopes = {1};
  mask.mask.assign(15, 1);
  blocks.block_mask.assign(3, 1);
  CHECK(not_refused_with("both --br and --bc", stage, right, one_side) == "");
  CHECK(not_refused_with("dout has 0 elements where the problem needs 16", stage, right, {}, backward) == "");
  CHECK(not_refused_with("q has 15 elements where the problem needs 16", stage, short_q, {}) == "");
  CHECK(not_refused_with("slopes has 1 elements where the problem needs 2", stage, slopes, {}) == "");
  CHECK(not_refused_with("mask has 15 elements where the problem needs 16", stage, mask, {}) == "");
  CHECK(not_refused_with("block mask has 3 elements where the problem needs 4", stage, blocks, tiles) == "");
  CHECK(not_refused_with("without its tiles", stage, blocks, {}) == "");
}

TEST_CASE("a gradient that overflows its format is refused, not written as NaN", "[faults]") {
  Inputs in = draw_inputs({1, 1, 1, 64, 64, 64, 64}, Format::fp32, 8);
  draw_dout(in, 8);
  for (double& v : in.v) v *= 10;
  for (double& x : in.dout) x *= 1000;
  in.dtype = Format::fp16;
  round_inputs(in);
  RunConfig config;
  config.backward = true;
  CHECK(not_refused_with("beyond what fp16 holds", find_stage("01"), in, {}, config) == "");  // dP in HBM is fp16
  CHECK(run(find_stage("04"), in, {}, config).outputs.dq.size() == in.q.size());              // dP stays in SRAM, fp32
}

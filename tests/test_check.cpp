// The check that all comparisons with the oracle go through: what it must fail, and what it must pass.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "stages/common/baseline.hpp"
#include "stages/common/check.hpp"
#include "stages/common/draw.hpp"
#include "stages/common/run.hpp"
#include "tests/catch.hpp"
#include "tests/support/drawn.hpp"

using namespace flash;

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// Some outputs that a right program might give: the baseline's.
struct Judge {
  Inputs in;
  Options options;
  Reference ref;

  Judge(Inputs inputs, const Options& o = {})
      : in(std::move(inputs)), options(o), ref(reference(in, o, !in.dout.empty())) {}
  CheckResult operator()(const Outputs& got) const { return check(got, ref, in, options); }
  const OutputCheck& of(const CheckResult& result, const std::string& name) const {
    return *std::find_if(result.outputs.begin(), result.outputs.end(), [&](const auto& o) { return o.name == name; });
  }
};

Inputs values_from_half_to_one(Format format) {
  Inputs in = drawn_problem({1, 2, 2, 32, 48, 16, 16}, format, 21);
  for (double& v : in.v) v = 0.75 + v / 20;
  for (double& v : in.v) v = std::min(1.0, std::max(0.5, v));
  round_inputs(in);
  return in;
}

}  // namespace

TEST_CASE("F11 the check fails what looks right, and names the first bad index") {
  for (const Format format : {Format::fp64, Format::fp32, Format::fp16, Format::bf16}) {
    const Judge judge(values_from_half_to_one(format));
    const Outputs& right = judge.ref.baseline;
    INFO(name(format));
    REQUIRE(judge(right).message() == "");

    Outputs nan = right;
    std::fill(nan.o.begin(), nan.o.end(), kNaN);
    CHECK(!judge(nan).pass());
    CHECK(judge(nan).message().find("o[0,0,0,0] is nan") == 0);

    Outputs shuffled = right;  // rows of each head in reverse
    for (Index head = 0; head < 2; ++head) {
      for (Index i = 0; i < 32; ++i) {
        std::copy_n(right.o.begin() + (head * 32 + 31 - i) * 16, 16, shuffled.o.begin() + (head * 32 + i) * 16);
      }
    }
    CHECK(!judge(shuffled).pass());
    CHECK(judge(shuffled).message().find("o[0,") == 0);

    Outputs mean = right, channels = right;  // the mean of V's rows, and of each row's channels
    for (std::size_t row = 0; row < 64; ++row) {
      double sum = 0;
      for (std::size_t c = 0; c < 16; ++c) {
        double column = 0;
        for (std::size_t j = 0; j < 48; ++j) column += judge.in.v[(row / 32 * 48 + j) * 16 + c];
        mean.o[row * 16 + c] = rounded(column / 48, format);
        sum += right.o[row * 16 + c];
      }
      for (std::size_t c = 0; c < 16; ++c) channels.o[row * 16 + c] = rounded(sum / 16, format);
    }
    CHECK(judge(mean).message().find("o[0,") == 0);
    CHECK(judge(channels).message().find("o[0,") == 0);

    Judge spoiled = judge;  // one NaN in what it is compared with
    spoiled.ref.oracle.o[5 * 16 + 3] = kNaN;
    CHECK(spoiled(right).message().find("o[0,0,5,3]") == 0);
    Outputs same = right;
    same.o[5 * 16 + 3] = kNaN;
    CHECK(spoiled(same).pass());
    spoiled = judge;
    spoiled.ref.baseline.o[5 * 16 + 3] = kNaN;
    CHECK(!spoiled(right).pass());

    Outputs missing = right;
    missing.o.pop_back();
    CHECK(judge(missing).message().find("o has 1023 elements") == 0);
    Outputs forward_only{right.o, right.lse, {}, {}, {}};
    CHECK(judge(forward_only).message().find("dq has 0 elements") == 0);
  }
}

TEST_CASE("the check sees a small wrong row among large ones, in every output") {
  for (const Format format : {Format::fp32, Format::bf16}) {
    Inputs in = drawn_problem({1, 1, 1, 16, 16, 8, 8}, format, 23);
    for (std::size_t n = 0; n < in.v.size(); ++n) in.v[n] *= n / 8 < 2 ? 0x1p-16 : 64;  // rows 0, 1 see small V
    for (std::size_t n = 0; n < in.dout.size(); ++n) in.dout[n] *= n / 8 >= 14 ? 0x1p-16 : 64;
    const Judge judge(in, causal());
    REQUIRE(judge(judge.ref.baseline).message() == "");
    Outputs wrong = judge.ref.baseline;
    wrong.o[1 * 8 + 2] *= -1;
    CHECK(judge(wrong).message().find("o[0,0,1,2]") == 0);
    CHECK(std::abs(2 * wrong.o[1 * 8 + 2]) < judge.of(judge(judge.ref.baseline), "o").tolerance);  // the even one
    wrong = judge.ref.baseline;
    wrong.dv[15 * 8 + 4] *= -1;  // key 15 is seen by row 15 alone
    CHECK(judge(wrong).message().find("dv[0,0,15,4]") == 0);
    wrong = judge.ref.baseline;
    wrong.dq[1 * 8] *= -1;
    CHECK(judge(wrong).message().find("dq[0,0,1,0]") == 0);
    wrong = judge.ref.baseline;
    wrong.dk[15 * 8] *= -1;
    CHECK(judge(wrong).message().find("dk[0,0,15,0]") == 0);
    wrong = judge.ref.baseline;
    wrong.lse[3] += 1e-3;
    CHECK(judge(wrong).message().find("lse[0,0,3]") == 0);
  }
}

TEST_CASE("the check sees every option done wrongly, in every format") {
  struct Mistake {
    const char *name, *untouched;
    std::function<void(Inputs&, Options&)> asked, done;
  };
  const std::vector<Mistake> mistakes{
      {"causal off by one", "", [](Inputs&, Options& o) { o.causal = true; },
       [](Inputs&, Options& o) {
         o.causal = false, o.window = {-1, 1};
       }},
      {"window off by one", "",
       [](Inputs&, Options& o) {
         o.window = {5, 3};
       },
       [](Inputs&, Options& o) {
         o.window = {4, 3};
       }},
      {"softcap ignored", "", [](Inputs&, Options& o) { o.softcap = 2; }, [](Inputs&, Options& o) { o.softcap = 0; }},
      {"ALiBi's sign", "",
       [](Inputs& in, Options&) {
         in.slopes = {0.25f, 0.5f};
       },
       [](Inputs& in, Options&) {
         in.slopes = {-0.25f, -0.5f};
       }},
      {"scale of a padded d", "", [](Inputs&, Options&) {}, [](Inputs&, Options& o) { o.scale = 1 / std::sqrt(64.0); }},
      {"dropout's seed", "lse", [](Inputs&, Options& o) { o.dropout = .2; },
       [](Inputs&, Options& o) { o.dropout_seed = 1; }},
      {"mask ignored", "", [](Inputs& in, Options&) { in.mask = random_mask(33 * 47, 4); },
       [](Inputs& in, Options&) { in.mask.clear(); }},
      {"heads of V swapped", "lse dv", [](Inputs&, Options&) {},
       [](Inputs& in, Options&) { std::rotate(in.v.begin(), in.v.begin() + 47 * 24, in.v.end()); }}};
  for (const Format format : {Format::fp64, Format::fp32, Format::fp16, Format::bf16}) {
    for (const Mistake& mistake : mistakes) {
      Inputs in = drawn_problem({1, 2, 2, 33, 47, 40, 24}, format, 31);
      Options options;
      mistake.asked(in, options);
      const Judge judge(in, options);
      mistake.done(in, options);
      const Outputs wrong = baseline(in, options, true, false);
      INFO(mistake.name << " in " << name(format));
      CHECK(judge(judge.ref.baseline).message() == "");
      const CheckResult result = judge(wrong);
      for (const char* output : {"o", "lse", "dq", "dk", "dv"}) {
        const bool same = std::string(mistake.untouched).find(output) != std::string::npos;
        CHECK(judge.of(result, output).pass == same);
      }
    }
  }
}

TEST_CASE("a right program passes where scores are huge, P underflows or nearly all drops", "[check]") {
  struct Case {
    const char* stage;
    Format dtype;
    Index N, d;
    std::uint64_t seed;
    double scale, dropout;
    bool backward;
  };
  for (const Case& c : {Case{"03", Format::fp64, 16, 64, 302, 10, 0.99, false},
                        Case{"01", Format::fp64, 40, 8, 118, 100, 0.99, true},
                        Case{"04", Format::fp64, 16, 2, 20, 100, 0.99, true},
                        Case{"02", Format::bf16, 64, 64, 6, 1000, 0, false},
                        Case{"01", Format::bf16, 40, 64, 856, 1000, 0.5, true}}) {
    INFO("stage " << c.stage << ", seed " << c.seed);
    const Stage& stage = find_stage(c.stage);
    Inputs in = draw_inputs({1, 1, 1, c.N, c.N, c.d, c.d}, c.dtype, c.seed);
    if (c.backward) draw_dout(in, c.seed);
    Options o;
    o.scale = c.scale;
    o.dropout = c.dropout;
    RunConfig config;
    config.backward = c.backward;
    const Outputs got = run(stage, in, o, config).outputs;
    const CheckResult result = check(got, reference(in, o, c.backward, stage.lse == "S"), in, o);
    INFO(result.message());
    CHECK(result.pass());
  }
}

// Every stage equals the fp64 oracle, forward and backward: every option, ragged and unequal N, every head size and
// format. A stage is found by its folder: a new one is tested without a line here.
#include <set>

#include "tests/catch.hpp"
#include "tests/support/crossing.hpp"
#include "tests/support/judge.hpp"
#include "tests/support/stage_runs.hpp"

using namespace flash;

namespace {

RunConfig config_for(const Stage& stage, RunConfig config) {
  config.backward = stage.has_backward();
  return config;
}

std::string text(const RandomProblem& p, const Crossing& c) {
  return fmt::format("{}: {}", asked_options()[c.option].name, p.text());
}

/// All stages that take the problem, against one oracle. Returns how many there were.
int check_all_stages(const Crossing& c) {
  const RandomProblem p = crossed_problem(c);
  Judge judge(p.inputs, p.options);
  int stages_run = 0;
  for (const Stage& stage : stages_on(Side::cpu)) {
    if (!takes_all(stage, p.inputs, p.options)) continue;
    ++stages_run;
    const RunResult result = run(stage, p.inputs, options_for(stage, p.options), config_for(stage, p.config));
    const CheckResult check = judge(stage, result.outputs);
    if (!check.pass()) {
      INFO(stage.id << " with " << text(p, c));
      INFO(check.message());
      CHECK(check.pass());
    }
  }
  return stages_run;
}

void check_design(const std::vector<Crossing>& design) {
  for (const Crossing& c : design) {
    INFO(asked_options()[c.option].name << ", N " << kSizes[c.size]);
    CHECK(check_all_stages(c) > 0);
  }
}

template <class Key>
std::size_t distinct(const std::vector<Crossing>& design, Key key) {
  std::set<decltype(key(design[0]))> seen;
  for (const Crossing& c : design) seen.insert(key(c));
  return seen.size();
}

}  // namespace

TEST_CASE("the crossed design holds each pair that it promises", "[correctness]") {
  for (int replica = 0; replica < 10; ++replica) {
    CAPTURE(replica);
    const auto design = crossing_design(replica, 0);
    const std::size_t options = asked_options().size();
    using C = Crossing;
    CHECK(distinct(design, [](const C& c) { return std::pair(c.option, c.size); }) == options * 12);
    CHECK(distinct(design, [](const C& c) { return std::pair(c.option, c.head_dim); }) == options * 10);
    CHECK(distinct(design, [](const C& c) { return std::pair(c.option, c.format); }) == options * 4);
    CHECK(distinct(design, [](const C& c) { return std::pair(c.option, c.keys); }) == options * 3);
    CHECK(distinct(design, [](const C& c) { return std::pair(c.option, c.width); }) == options * 3);
    CHECK(distinct(design, [](const C& c) { return std::pair(c.size, c.format); }) == 12 * 4);
    CHECK(distinct(design, [](const C& c) { return std::pair(c.head_dim, c.format); }) == 10 * 4);
    CHECK(distinct(design, [](const C& c) { return std::pair(c.size, c.head_dim); }) == 12 * 10);
    CHECK(distinct(design, [](const C& c) { return std::pair(c.size, c.keys); }) == 12 * 3);
    CHECK(distinct(design, [](const C& c) { return std::pair(c.size, c.tiling); }) == 12 * 6);
    const auto rich = crossing_design(replica, INT64_MAX);
    CHECK(distinct(rich, [](const C& c) { return std::pair(c.option, c.heads); }) == options * 4);
  }
}

TEST_CASE("every stage equals the oracle: each option with each N, d and format", "[correctness]") {
  check_design(crossing_design(0, 1'500'000));
}

TEST_CASE("every stage equals the oracle: further designs, several heads and batches", "[correctness][full]") {
  for (int replica = 1; replica <= 7; ++replica) check_design(crossing_design(replica, 8'000'000));
}

TEST_CASE("every stage equals the oracle: the whole product of options, N, d and formats", "[correctness][deep]") {
  for (Crossing c : crossing_design(8, 100'000))
    for (c.head_dim = 0; c.head_dim < std::size(kHeadDims); ++c.head_dim)
      for (c.format = 0; c.format < std::size(kFormats); ++c.format) {
        c.keys = static_cast<Keys>((static_cast<std::size_t>(c.keys) + 1) % 3);
        CHECK(check_all_stages(c) > 0);
      }
}

TEST_CASE("tile sizes change the result by no more than rounding", "[correctness]") {
  for (const Format dtype : {Format::fp32, Format::bf16}) {
    Inputs in = draw_inputs({1, 2, 1, 33, 45, 8, 5}, dtype, 7);
    draw_dout(in, 7);
    Options o;
    o.causal = true;
    Judge judge(in, o);
    for (const Stage& stage : stages_on(Side::cpu))
      for (const Blocks tiles : {Blocks{1, 1}, {1, 45}, {33, 1}, {5, 7}, {16, 16}, {32, 44}, {33, 45}, {64, 128}}) {
        if (!stage.takes("br and bc")) continue;
        o.br = tiles.Br, o.bc = tiles.Bc;
        INFO(stage.id << ", tiles " << o.br << " x " << o.bc);
        const CheckResult check = judge(stage, run(stage, in, o, config_for(stage, {})).outputs);
        INFO(check.message());
        CHECK(check.pass());
      }
  }
}

namespace {

/// The problem in tiles of 4 × 6 on each stage that takes `option`.
void check_takers(const char* option, const Options& asked) {
  Inputs in = draw_inputs({2, 4, 2, 19, 50, 8, 5}, Format::fp32, 8);
  draw_dout(in, 8);
  Options o = asked;
  o.br = 4, o.bc = 6, o.window = {20, 1};  // some parts see no key
  Judge judge(in, o);
  for (const Stage& stage : stages_on(Side::cpu)) {
    if (!stage.takes(option)) continue;
    INFO(stage.id << ", " << option);
    const CheckResult check = judge(stage, run(stage, in, o, config_for(stage, {})).outputs);
    INFO(check.message());
    CHECK(check.pass());
  }
}

}  // namespace

TEST_CASE("keys in any number of parts give the same", "[correctness]") {
  for (const Index splits : {1, 2, 3, 7, 9, 1000}) {
    Options o;
    o.splits = splits;
    check_takers("splits", o);
  }
}

TEST_CASE("warps with rows, and warps with keys, give the same", "[correctness]") {
  for (const Warps warps : {Warps::split_q, Warps::split_k}) {
    Options o;
    o.warps = warps;
    check_takers("warps", o);
  }
}

TEST_CASE("a number without a letter is the main letters, to the bit", "[correctness]") {
  Inputs in = draw_inputs({1, 4, 2, 33, 45, 8, 5}, Format::fp16, 9);
  draw_dout(in, 9);
  RunConfig config;
  config.machine.sram_bytes = 2048;
  config.backward = true;
  const Stage& main = find_stage("05");
  Options o;
  o.splits = 3;
  const Outputs all = run(main, in, o, config).outputs;
  Judge judge(in, o);
  CHECK(judge(main, all).message() == "");
  o.deterministic = true;
  CHECK(same_bits(all, run(main, in, o, config).outputs));  // here sums have one order anyway
  config.backward = false;
  o.deterministic = false;
  CHECK(run(find_stage("05e"), in, o, config).outputs.o == all.o);
}

TEST_CASE("one query and one key: O = V to the bit and LSE is the score", "[correctness]") {
  Inputs in = draw_inputs({2, 3, 3, 1, 1, 4, 7}, Format::fp32, 11);
  draw_dout(in, 11);
  const Options o = with_scale(0.5);
  const std::vector<double> zeros(in.q.size(), 0);
  const std::vector<double> scores = array(6, [&](Index head) {
    double s = 0;
    for (Index c = 0; c < 4; ++c) s += in.q[head * 4 + c] * in.k[head * 4 + c];
    return 0.5 * s;
  });
  on_every_stage(in, o, [&](const Stage&, const RunResult& result) {
    CHECK(result.outputs.o == in.v);
    CHECK(differs(result.outputs.lse, scores) == "");
    if (!result.backward) return;
    CHECK(differs(result.outputs.dv, in.dout) == "");
    CHECK(differs(result.outputs.dq, zeros) == "");
    CHECK(differs(result.outputs.dk, zeros) == "");
  });
}

TEST_CASE("V = 1 gives O = 1 in every row", "[correctness]") {
  for (const Index N : kSizes) {
    Inputs in = draw_inputs({1, 1, 1, N, N + N / 3, 16, 3}, Format::fp32, 13);
    in.v.assign(in.v.size(), 1);
    const std::vector<double> ones(N * 3, 1.0);
    INFO("N " << N);
    on_every_stage(in, {}, [&](const Stage&, const RunResult& result) {
      CHECK(differs(result.outputs.o, ones, (4 + std::sqrt(N)) * 0x1p-23) == "");  // of the sum over the keys
    });
  }
}

TEST_CASE("the same bits with one thread, two and three, and when run again", "[correctness]") {
  Inputs in = draw_inputs({2, 6, 2, 33, 41, 8, 8}, Format::bf16, 17);
  draw_dout(in, 17);
  Options o;
  o.dropout = 0.25;
  RunConfig config;
  config.machine.sram_bytes = 2048;  // several tiles
  for (const Stage& stage : stages_on(Side::cpu)) {
    INFO(stage.id);
    config.backward = stage.has_backward();
    config.machine.threads = 1;
    const RunResult one = run(stage, in, o, config);
    for (const int threads : {1, 2, 3, 0}) {
      INFO(threads << " threads");
      config.machine.threads = threads;
      const RunResult other = run(stage, in, o, config);
      CHECK(same_bits(other.outputs, one.outputs));
      CHECK(other.forward.ledger.elements() == one.forward.ledger.elements());
    }
  }
}

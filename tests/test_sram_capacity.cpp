// What a worker holds in SRAM against each stage's own inequality, and what the two budgets make of it.
#include <string>

#include "tests/catch.hpp"
#include "tests/support/random_problem.hpp"

using namespace flash;
using sim::Budget;

namespace {

/// A program with tiles, forward or backward.
struct Tiled {
  const Stage& stage;
  bool backward;
  const Program& program() const { return backward ? stage.backward : stage.forward; }
  const Pass& pass(const RunResult& result) const { return backward ? *result.backward : result.forward; }
  std::string name() const { return stage.id + (backward ? " backward" : " forward"); }
};

std::vector<Tiled> tiled_programs() {
  std::vector<Tiled> all;
  for (const Stage& stage : stages_on(Side::cpu)) {
    if (stage.forward.sram_bytes) all.push_back({stage, false});
    if (stage.backward.sram_bytes) all.push_back({stage, true});
  }
  return all;
}

/// The left side of the program's inequality [bytes].
Index needed_bytes(const Tiled& tiled, const RandomProblem& p, Blocks blocks) {
  const Problem<float> problem(p.inputs);
  return tiled.program().sram_bytes(tile_sizes(problem, p.options, blocks.Br, blocks.Bc));
}

RandomProblem counting_problem(Index N, Index d, Format dtype = Format::fp32) {
  RandomProblem p;
  p.inputs.shape = {1, 1, 1, N, N, d, d};
  p.inputs.dtype = dtype;
  p.config.machine.count_only = true;
  return p;
}

RunResult run_tiled(const Tiled& tiled, RandomProblem p) {
  p.config.backward = tiled.backward;
  return run(tiled.stage, p.inputs, p.options, p.config);
}

Index peak_bytes(const Tiled& tiled, const RandomProblem& p) {
  return tiled.pass(run_tiled(tiled, p)).ledger.sram_peak().bytes;
}

/// Warps, which here work in turn, hold no more than all of them together.
bool held_as_needed(const Tiled& tiled, Index peak, Index needed) {
  return tiled.stage.takes("warps") ? peak <= needed && 4 * peak > needed : peak == needed;
}

std::string refusal(const Tiled& tiled, const RandomProblem& p) {
  try {
    run_tiled(tiled, p);
  } catch (const Refused& refused) {
    return refused.what();
  }
  return "";
}

constexpr Format kFormats[] = {Format::fp64, Format::fp32, Format::fp16, Format::bf16};

}  // namespace

TEST_CASE("the peak of full tiles is the stage's inequality, for every type and option", "[sram]") {
  for (const Tiled& tiled : tiled_programs())
    for (const Format dtype : kFormats)
      for (const bool masked : {false, true})
        for (const bool dropout : {false, true})
          for (const bool others : {false, true})
            for (const auto& [Br, Bc, d, dv] : {std::array<Index, 4>{8, 16, 8, 8},
                                                {16, 4, 5, 9},
                                                {1, 1, 64, 64},
                                                {64, 64, 1, 1},
                                                {3, 1, 2, 1},
                                                {1, 7, 1, 2}}) {
              RandomProblem p = counting_problem(0, d, dtype);
              p.inputs.shape = {2, 4, 2, 4 * Br, 3 * Bc, d, dv};
              p.options.br = Br, p.options.bc = Bc;
              if (masked) p.inputs.mask.assign(4 * Br * 3 * Bc, 1);
              if (dropout) p.options.dropout = 0.5;
              if (others) {
                p.options.causal = true, p.options.softcap = 2;
                p.inputs.slopes.assign(4, 1.0f);
              }
              INFO(tiled.name() << " " << p.text());
              REQUIRE(held_as_needed(tiled, peak_bytes(tiled, p), needed_bytes(tiled, p, {Br, Bc})));
            }
}

TEST_CASE("a run that computes holds what a run that counts holds", "[sram]") {
  for (const Tiled& tiled : tiled_programs()) {
    RandomProblem p;
    p.inputs = draw_inputs({1, 2, 1, 24, 32, 8, 8}, Format::bf16, 1);
    draw_dout(p.inputs, 1);
    p.options.br = 8, p.options.bc = 16;
    CHECK(held_as_needed(tiled, peak_bytes(tiled, p), needed_bytes(tiled, p, {8, 16})));
  }
}

TEST_CASE("no ragged tile takes more than the inequality says", "[sram]") {
  Random random(6);
  for (const Tiled& tiled : tiled_programs()) {
    for (int n = 0; n < 300; ++n) {
      const RandomProblem p = random_problem(random, tiled.stage, /*count_only=*/true);
      INFO(tiled.name() << " " << p.text());
      const Pass pass = tiled.pass(run_tiled(tiled, p));
      REQUIRE(pass.ledger.sram_peak().bytes <= needed_bytes(tiled, p, *pass.blocks));
      if (p.config.machine.budget == Budget::strict)
        REQUIRE(pass.ledger.sram_peak().bytes <= p.config.machine.sram_bytes);
    }
  }
}

TEST_CASE("strict takes the largest tiles that fit", "[sram]") {
  Random random(7);
  for (const Tiled& tiled : tiled_programs()) {
    for (int n = 0; n < 100; ++n) {
      RandomProblem p = counting_problem(200, random(1, 100), kFormats[random(0, 3)]);
      if (random.once_in(3)) p.inputs.mask.assign(200 * 200, 1);
      if (random.once_in(3)) p.options.dropout = 0.5;
      p.config.machine.budget = Budget::strict;
      p.config.machine.sram_bytes = random(16, 256) * 1024 + random(0, 1023);
      INFO(tiled.name() << " " << p.text());
      const Pass pass = tiled.pass(run_tiled(tiled, p));
      const auto [Br, Bc] = *pass.blocks;
      const Index capacity = p.config.machine.sram_bytes, d = p.shape().d;
      const bool tall = tiled.program().side == Long::rows;
      const Index length = tall ? Br : Bc, other = std::min(length + 1, d);
      CHECK((tall ? Bc : Br) == std::min(length, d));
      CHECK(pass.ledger.sram_peak().bytes <= capacity);
      CHECK(needed_bytes(tiled, p, {Br, Bc}) <= capacity);
      CHECK(needed_bytes(tiled, p, tall ? Blocks{length + 1, other} : Blocks{other, length + 1}) > capacity);
    }
  }
}

// ---- the paper's sizes

TEST_CASE("the paper's tiles take 1.25 M at M = 4d², and statistics", "[sram]") {
  for (const Index d : {32, 64, 128}) {
    const Tiled forward{find_stage("3"), false};
    RandomProblem p = counting_problem(4 * d, d);
    p.config.machine.sram_bytes = 4 * d * d * 4;
    const Pass pass = forward.pass(run_tiled(forward, p));
    CHECK((pass.blocks->Br == d && pass.blocks->Bc == d));
    const Index elements = pass.ledger.sram_peak().bytes / 4, M = 4 * d * d;
    CHECK(elements == 5 * M / 4 + 5 * d);  // K, V, Q, O, S of M/4 each; five numbers a row
  }
}

TEST_CASE("the paper's tiles overflow M: forward up to 1.7 M, backward 2.5 M and more", "[sram]") {
  double forward_most = 0, backward_most = 0;
  for (const Index d : {64, 128}) {
    for (Index M = 5 * d; M <= 16 * d * d; M += 3 * d + 1) {  // the ceiling of M/4d counts
      RandomProblem p = counting_problem(2 * sim::ceil_div(M, 4 * d), d);
      p.config.machine.sram_bytes = M * 4;
      const auto multiple = [&](const Tiled& tiled) {
        return static_cast<double>(peak_bytes(tiled, p)) / static_cast<double>(p.config.machine.sram_bytes);
      };
      const double forward = multiple({find_stage("3"), false}), backward = multiple({find_stage("4"), true});
      CHECK(backward > forward);
      forward_most = std::max(forward_most, forward);
      backward_most = std::max(backward_most, backward);
    }
  }
  UNSCOPED_INFO("forward " << forward_most << " M, backward " << backward_most << " M");
  CHECK(forward_most > 1.6);
  CHECK(forward_most < 1.7);
  CHECK(backward_most > 2.5);
}

TEST_CASE("M is counted in elements of the run's type", "[sram]") {
  const Tiled forward{find_stage("3"), false};
  const auto blocks = [&](Format dtype, Index bytes) {
    RandomProblem p = counting_problem(64, 64, dtype);
    p.config.machine.sram_bytes = bytes;
    return *forward.pass(run_tiled(forward, p)).blocks;
  };
  CHECK(blocks(Format::fp32, 64 * 1024).Bc == 64);   // M = 16,384
  CHECK(blocks(Format::bf16, 64 * 1024).Bc == 128);  // M = 32,768
  CHECK(blocks(Format::fp64, 64 * 1024).Bc == 32);   // M = 8,192
  CHECK(blocks(Format::bf16, 64 * 1024).Br == 64);
}

// ---- what is refused

TEST_CASE("blocks given by hand run under paper and are refused under strict when they don't fit", "[sram]") {
  for (const Tiled& tiled : tiled_programs()) {
    RandomProblem p = counting_problem(128, 16);
    p.options.br = 32, p.options.bc = 64;
    const Index needed = needed_bytes(tiled, p, {32, 64});
    p.config.machine.budget = Budget::strict;
    const auto with = [&](Index bytes) {
      RandomProblem other = p;
      other.config.machine.sram_bytes = bytes;
      return refusal(tiled, other);
    };
    INFO(tiled.name());
    if (!tiled.backward) {  // a backward pass comes after a forward pass that has an inequality of its own
      CHECK(with(needed).empty());
      CHECK(with(needed - 1).find(std::to_string(needed) + " bytes") != std::string::npos);
    }
    const std::string said = with(1000);
    for (const char* part : {"32 x 64", "1000", "--budget paper"}) CHECK(said.find(part) != std::string::npos);

    p.config.machine.budget = Budget::paper;
    p.config.machine.sram_bytes = 1000;
    CHECK(held_as_needed(tiled, peak_bytes(tiled, p), needed));
    CHECK(tiled.pass(run_tiled(tiled, p)).blocks->Bc == 64);
  }
}

TEST_CASE("M < 4d is refused under both budgets", "[sram]") {
  for (const Tiled& tiled : tiled_programs()) {
    for (const Budget budget : {Budget::paper, Budget::strict}) {
      RandomProblem p = counting_problem(8, 64, Format::bf16);
      p.config.machine.budget = budget;
      p.config.machine.sram_bytes = 4 * 64 * 2 - 2;
      const std::string said = refusal(tiled, p);
      INFO(tiled.name() << ": " << said);
      for (const char* part : {"510 bytes", "M = 255 elements of bf16", "M >= 4d = 256", "--sram "})
        CHECK(said.find(part) != std::string::npos);
      const Index named = std::stoll(said.substr(said.find("--sram ") + 7));  // what would do, and does
      if (budget == Budget::paper) CHECK(named == 512);
      p.config.machine.sram_bytes = named;
      CHECK(refusal(tiled, p).empty());
      p.config.machine.sram_bytes = named - 1;
      CHECK(!refusal(tiled, p).empty());
    }
  }
}

TEST_CASE("the larger of d and dv counts as d", "[sram]") {
  RandomProblem p = counting_problem(64, 16);
  p.inputs.shape.dv = 64;
  p.config.machine.sram_bytes = 4 * 64 * 4 - 4;
  CHECK(refusal({find_stage("3"), false}, p).find("4d = 256") != std::string::npos);
  p.config.machine.sram_bytes += 4;
  CHECK(refusal({find_stage("3"), false}, p).empty());
}

TEST_CASE("01 has no tiles, no capacity, and says what it needs", "[sram]") {
  const Stage& stage = find_stage("1");
  CHECK(stage.forward.sram_bytes == nullptr);
  RandomProblem p = counting_problem(50, 8);
  p.config.backward = true;
  p.config.machine.budget = Budget::strict;
  p.config.machine.sram_bytes = 64;
  const RunResult result = run(stage, p.inputs, p.options, p.config);
  CHECK(!result.forward.blocks);
  CHECK(!result.backward->blocks);
  CHECK(result.forward.ledger.sram_peak().bytes == (2 * 50 * 8 + 50 * 50) * 4);  // Q, K and S
  p.options.br = p.options.bc = 4;
  CHECK_THROWS_AS(run(stage, p.inputs, p.options, p.config), Refused);
}

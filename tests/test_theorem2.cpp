// Theorem 2's engine against schedules with known laws and against spoilt ones; its figure; published figures.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "sim/theory/blocks.hpp"
#include "sim/theory/closed_forms.hpp"
#include "sim/theory/plot.hpp"
#include "sim/theory/published.hpp"
#include "sim/theory/theorem2.hpp"
#include "tests/catch.hpp"

using namespace flash;
using namespace flash::theory;

namespace {

// What the stages do, counted.

struct Perturbation {
  Index per_visit = 0, per_head = 0;  ///< elements moved too many
};

Walker forward_walker(Index statistics, Perturbation wrong = {}) {
  return [=](Index N, Index d, Index M) {
    const auto [Br, Bc] = paper_blocks(M, d);
    Index count = N * (d + statistics) + wrong.per_head;
    for (Index j = 0; j < N; j += Bc) {
      count += 2 * std::min(Bc, N - j) * d;
      for (Index i = 0; i < N; i += Br) count += std::min(Br, N - i) * (3 * d + 2 * statistics) + wrong.per_visit * d;
    }
    return count;
  };
}

/// FA2's order, in blocks that `blocks` chooses.
Walker q_outside_walker(Blocks blocks(Index M, Index d)) {
  return [=](Index N, Index d, Index M) {
    const auto [Br, Bc] = blocks(M, d);
    Index count = 0;
    for (Index i = 0; i < N; i += Br) {
      count += std::min(Br, N - i) * (2 * d + 1);
      for (Index j = 0; j < N; j += Bc) count += 2 * std::min(Bc, N - j) * d;
    }
    return count;
  };
}

Blocks algorithm_1_blocks(Index M, Index d) { return paper_blocks(M, d); }

Blocks swapped(Index M, Index d) {
  const auto [Br, Bc] = paper_blocks(M, d);
  return {Bc, Br};
}

/// Every column block: K, V, dK, dV; every visit: Q, dO, LSE, D and dQ both ways. Before and after: D, dQ.
Index by_column_blocks(Index N, Index d, Index M) {
  const auto [Br, Bc] = paper_blocks(M, d);
  Index count = N * (5 * d + 1);
  for (Index j = 0; j < N; j += Bc) {
    count += 4 * std::min(Bc, N - j) * d;
    for (Index i = 0; i < N; i += Br) count += std::min(Br, N - i) * (4 * d + 2);
  }
  return count;
}

/// Algorithm 1's order with K and V in all of M, one query at a time.
Index k_and_v_in_all_of_M(Index N, Index d, Index M) {
  const Index Bc = M / (2 * d);
  Index count = N * (d + 2);
  for (Index j = 0; j < N; j += Bc) {
    count += 2 * std::min(Bc, N - j) * d;
    for (Index i = 0; i < N; ++i) count += 3 * d + 4;
  }
  return count;
}

/// FA2's order with Q and O in all of M, one key at a time.
Blocks q_and_o_in_all_of_M(Index M, Index d) { return {M / (2 * d), 1}; }

Index backward_walk(Index N, Index d, Index M) {
  const auto [Br, Bc] = paper_blocks(M, d);
  Index count = 3 * N * d;
  for (Index j = 0; j < N; j += Bc) {
    count += 4 * std::min(Bc, N - j) * d;
    for (Index i = 0; i < N; i += Br) count += std::min(Br, N - i) * (5 * d + 1);
  }
  return count;
}

Index tiled_walk(Index N, Index d, Index M) {
  const auto [Br, Bc] = paper_blocks(M, d);
  Index count = N * d;
  for (Index i = 0; i < N; i += Br) {
    for (Index j = 0; j < N; j += Bc) {
      const Index rows = std::min(Br, N - i), cols = std::min(Bc, N - j);
      count += (rows + 2 * cols) * d + 5 * rows * cols;
    }
  }
  return count;
}

Index materialized_walk(Index N, Index d, Index) { return 3 * N * d + 4 * N * N + N * d; }

Compared compared() { return {forward_walker(2), materialized_walk, tiled_walk}; }

Schedule control() { return {"capped", q_outside_walker(algorithm_1_blocks), {8, 0, 2, 1}}; }

Tested tested() {
  return {{{"03_forward", forward_walker(2), {12, 16, 3, 2}},
           {"04_forward", forward_walker(1), {12, 8, 3, 1}},
           {"04_backward", backward_walk, {20, 4, 7, 0}},
           algorithm_4_schedule(),
           {"05_forward", q_outside_walker(swapped), {8, 0, 2, 1}},
           {"05_backward", by_column_blocks, {16, 8, 9, 1}}},
          {{"K, V", k_and_v_in_all_of_M, {6, 8, 3, 2}, one_sided_visits},
           {"Q, O", q_outside_walker(q_and_o_in_all_of_M), {4, 0, 2, 1}, one_sided_visits}},
          control(),
          compared()};
}

const Theorem2& proof() {
  static const Theorem2 result = theorem2(tested());
  return result;
}

ScheduleResult tried(const Walker& walk, const Coefficients& law) {
  return theorem2({{{"tried", walk, law}}, {}, control(), compared()}).schedules.at(0);
}

}  // namespace

TEST_CASE("every schedule's law is recovered, sandwiched and has the exponents", "[theory][io_scaling]") {
  for (const ScheduleResult& s : proof().schedules) {
    INFO(s.name);
    CHECK(s.exact);
    CHECK(s.coefficients == s.law);
    CHECK(!(s.residual > 1e-12));
    CHECK(s.outside_sandwich == 0);
    CHECK(s.proved_min <= s.ratio_min);
    CHECK(s.ratio_max <= s.proved_max);
    CHECK(s.exponents_ok());
    CHECK(s.ok());
  }
  CHECK(proof().ok());
}

TEST_CASE("all of M for the side that stays halves the constant", "[theory][io_scaling]") {
  REQUIRE(proof().one_sided.size() == 2);
  for (std::size_t n = 0; n < 2; ++n) {
    const Recovered& one_sided = proof().one_sided[n];
    const ScheduleResult& paper = proof().schedules[n == 0 ? 0 : 4];
    INFO(one_sided.name << " beside " << paper.name);
    CHECK(one_sided.met());
    CHECK(!(one_sided.residual > 1e-12));
    CHECK(2 * one_sided.coefficients[0] == paper.coefficients[0]);
    CHECK(one_sided.coefficients[2] == paper.coefficients[2]);
    CHECK(one_sided.coefficients[3] == paper.coefficients[3]);
  }
  CHECK(2 * proof().schedules[0].coefficients[0] == 3 * proof().schedules[4].coefficients[0]);
  Tested wrong = tested();
  wrong.one_sided[1].law[0] = 8;  // as if M/4d rows stayed
  CHECK_FALSE(theorem2(wrong).ok());
}

TEST_CASE("block sizes that break Theorem 2 are found out", "[theory][io_scaling]") {
  const ScheduleResult& control = proof().negative_control;
  CHECK_FALSE(control.exact);
  CHECK(control.outside_sandwich > 50);
  CHECK(control.ratio_max > 10 * control.proved_max);
  CHECK_FALSE(control.exponents_ok());
  CHECK(proof().failed_as_it_must());
}

TEST_CASE("each exponent is held to its own 0.03", "[theory][io_scaling]") {
  ScheduleResult s;
  const std::array<double*, 3> exponents{&s.exponent_N, &s.exponent_d, &s.exponent_M};
  for (double* off : exponents) {
    s.exponent_N = 1.971, s.exponent_d = 2.029, s.exponent_M = -0.971;
    CHECK(s.exponents_ok());
    *off += 0.06;
    CHECK_FALSE(s.exponents_ok());
    *off = std::nan("");
    CHECK_FALSE(s.exponents_ok());
  }
}

TEST_CASE("one load too many moves the fit", "[theory][io_scaling]") {
  const Coefficients law{12, 16, 3, 2};
  // one element more per head fits no law of these four terms
  const ScheduleResult once = tried(forward_walker(2, {0, 1}), law);
  CHECK_FALSE(once.exact);
  CHECK(once.residual > 1e-9);
  CHECK_FALSE(once.ok());
  // a row of d elements more per visit: still outside the law, and no longer close to it
  const ScheduleResult visit = tried(forward_walker(2, {1, 0}), law);
  CHECK_FALSE(visit.ok());
  CHECK(visit.residual > 1e-3);
  // one statistic more per row: a law of its own, and the engine says which
  const ScheduleResult row = tried(forward_walker(3), law);
  CHECK(row.exact);
  CHECK(row.coefficients == Coefficients{12, 24, 3, 3});
  CHECK_FALSE(row.ok());
  // half of the paper's blocks: twice the law
  const Walker halves = [](Index N, Index d, Index M) { return forward_walker(2)(N, d, std::max(4 * d, M / 2)); };
  CHECK(tried(halves, law).outside_sandwich > 0);
}

TEST_CASE("a walker's exception reaches the caller", "[theory]") {
  const Walker throws = [](Index, Index, Index) -> Index { throw std::runtime_error("no"); };
  CHECK_THROWS_AS(theorem2({{{"throws", throws, {1, 1, 1, 1}}}, {}, control(), compared()}), std::runtime_error);
}

TEST_CASE("crossovers are the first M where the order changes", "[theory][io_scaling]") {
  for (const Crossover& c : proof().against_materialized) {
    INFO("d " << c.d);
    CHECK(c.first == forward_walker(2)(c.N, c.d, c.M));
    CHECK(c.first < materialized_walk(c.N, c.d, c.M));
    CHECK(forward_walker(2)(c.N, c.d, c.M - 1) >= materialized_walk(c.N, c.d, c.M - 1));
    CHECK(!(std::abs(static_cast<double>(c.M) / static_cast<double>(3 * c.d * c.d) - 1) > 0.05));
  }
  const Crossover& tiled = proof().against_tiled;
  CHECK(tiled.M == 4 * tiled.d);
  CHECK(proof().tiled_from_N == 2 * 64 + 3);
  CHECK(crossover(materialized_walk, forward_walker(2), 64, 8).M == 32);
  const Walker falls = [](Index, Index, Index M) { return 1000 - M; };
  const Walker level = [](Index, Index, Index) -> Index { return 900; };
  CHECK(crossover(falls, level, 64, 8).M == 101);  // equal at 100
  const Walker never = [](Index, Index, Index) { return Index{1} << 40; };
  CHECK(crossover(never, materialized_walk, 64, 8).M == 0);
}

TEST_CASE("theorem2 as JSON", "[theory]") {
  const auto json = to_json(proof());
  REQUIRE(json.at("schedules").size() == 6);
  CHECK(json.at("schedules").at(4).at("coefficients").dump() == "[8,0,2,1]");
  CHECK(json.at("schedules").at(5).at("coefficients").dump() == "[16,8,9,1]");
  CHECK(json.at("one_sided").at(0).at("coefficients").dump() == "[6,8,3,2]");
  CHECK(json.at("one_sided").at(1).at("coefficients").dump() == "[4,0,2,1]");
  const auto& first = json.at("schedules").at(0);
  CHECK(first.at("name") == "03_forward");
  CHECK(first.at("coefficients").dump() == "[12,16,3,2]");
  CHECK(first.at("basis").size() == 4);
  CHECK(first.at("residual").is_number());
  for (const char* axis : {"N", "d", "M"}) CHECK(first.at("exponents").at(axis).is_number());
  CHECK(first.at("ratio").at("proved").size() == 2);
  CHECK(first.at("points").get<Index>() > 100);
  CHECK(json.at("negative_control").at("failed_as_it_must") == true);
  CHECK(json.at("crossover").at("against_01").size() == 3);
  CHECK(json.at("seconds").is_number());
}

TEST_CASE("the figure carries units, floor and crossovers", "[theory]") {
  const TrafficFigure figure = traffic_figure({{"03 it's", forward_walker(2)}}, compared(), 256, 16);
  CHECK(figure.curves.at(0).points.front() == std::pair<Index, Index>{64, forward_walker(2)(256, 16, 64)});
  const std::string script = gnuplot_script(figure, "a'b.svg");
  for (const std::string part :
       {"set output 'a''b.svg'", "[elements]", "logscale x", "03 it''s", "M = 4d", "M = Nd", "03 below 01 from M = "}) {
    INFO(part);
    CHECK(script.find(part) != std::string::npos);
  }
  CHECK(script.find(fmt::format("{} with lines", 4 * 256 * 16)) != std::string::npos);
  CHECK(script.find(fmt::format("{} with lines", 4 * 256 * 256 + 4 * 256 * 16)) != std::string::npos);
}

// ---- published figures

TEST_CASE("published figures beside computed accountings", "[theory]") {
  const auto figures = published_figures();
  REQUIRE(figures.size() == 3);
  const Index NN = Index{2} * 64 * 16 * 1024 * 1024, Nd = Index{2} * 64 * 16 * 1024 * 64;
  const auto find = [&](std::size_t figure, const std::string& words) -> const Accounting& {
    const auto& all = figures.at(figure).accountings;
    const auto at =
        std::find_if(all.begin(), all.end(), [&](const auto& a) { return a.name.find(words) != std::string::npos; });
    REQUIRE(at != all.end());
    return *at;
  };
  CHECK(find(0, "PyTorch today").read == 11 * NN + 8 * Nd);
  CHECK(find(0, "PyTorch today").write == 7 * NN + 4 * Nd);
  CHECK(find(0, "additive mask").total() == 18 * NN + 12 * Nd);
  CHECK(!(std::abs(figures[0].deviation(find(0, "additive mask"))) > 0.002));
  CHECK(find(0, "measured").measured);
  CHECK(!(std::abs(static_cast<double>(find(0, "measured").read) / static_cast<double>(find(0, "PyTorch").read) - 1) >
          1e-3));

  const Shape s{64, 16, 16, 1024, 1024, 64, 64};
  const Traffic alone = closed_form("materialized", s, Format::fp16, {}, 1, 1)->traffic +
                        closed_form("materialized_backward", s, Format::fp16, {}, 1, 1)->traffic;
  CHECK(find(0, "alone").total() == bytes(alone, Format::fp16));
  for (const Index Bc : {256, 384}) {
    // fp32's form calls O and dQ by their own names at every visit, so that fp16 weighs them with 2 bytes
    const Traffic printed = closed_form("algorithm_1", s, Format::fp32, {}, 64, Bc)->traffic +
                            closed_form("algorithm_4", s, Format::fp32, {}, 64, Bc)->traffic;
    CHECK(find(2, fmt::format("Bc = {}, Algorithms 1 and 4 as printed", Bc)).total() == bytes(printed, Format::fp16));
  }
  CHECK(find(2, "no statistics").total() == 33 * Nd);
  for (const auto& figure : figures)
    CHECK(figure.remark.find("one of several accountings that fit") != std::string::npos);
}

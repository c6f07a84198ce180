// Every stage's ledger against its closed form, as integers: reads, writes and read-modify-writes apart, tensor by
// tensor.
#include <map>
#include <string>

#include "tests/catch.hpp"
#include "tests/support/random_problem.hpp"

using namespace flash;

namespace {

using Elements = std::map<std::string, Index>;

Elements moved(const sim::Ledger& ledger, sim::Access access) {
  Elements elements = ledger.by_tensor(access);
  std::erase_if(elements, [](const auto& entry) { return entry.second == 0; });  // loads of empty tiles
  return elements;
}

theory::ClosedForm closed_form_of(const std::string& law, const RandomProblem& p, const Pass& pass) {
  const Blocks blocks = pass.blocks.value_or(Blocks{1, 1});
  return theory::closed_form(law, p.shape(), p.inputs.dtype, closed_form_options(p), blocks.Br, blocks.Bc).value();
}

/// What a law computes, from the sums over its visited tiles: A elements, R query rows.
struct Work {
  Index products_d, products_dv;  ///< matrix products with d, or dv, as one of their three sizes
  Index exps_A, exps_R;           ///< exps for each element, and for each row, of a visited tile
};

const std::map<std::string, Work> kWork{
    {"materialized", {1, 1, 1, 0}},                                    // P
    {"materialized_backward", {2, 2, 0, 0}}, {"tiled", {1, 1, 2, 1}},  // the sum, P; the old sum under the new maximum
    {"algorithm_1", {1, 1, 1, 1}},                                     // P; the old sum under the new maximum
    {"lse_forward", {1, 1, 1, 1}},                                     // P; the old sum under the new maximum
    {"lse_backward", {3, 2, 1, 0}},                                    // P
    {"fa2_forward", {1, 1, 1, 1}},                                     // P; what is left of old sums
    {"fa2_backward", {3, 2, 1, 0}},                                    // P
};

void check_pass(const std::string& law, const RandomProblem& p, const Pass& pass) {
  const theory::ClosedForm form = closed_form_of(law, p, pass);
  INFO(law << ": " << form.text);
  const sim::Ledger& ledger = pass.ledger;
  REQUIRE(moved(ledger, sim::Access::read) == form.traffic.read);
  REQUIRE(moved(ledger, sim::Access::write) == form.traffic.write);
  REQUIRE(moved(ledger, sim::Access::rmw) == form.traffic.rmw);
  REQUIRE(ledger.elements() == form.traffic.elements());
  REQUIRE(ledger.bytes() == theory::bytes(form.traffic, p.inputs.dtype));
}

void check_work(const std::string& law, const RandomProblem& p, const Pass& pass) {
  const Shape& s = p.shape();
  Index A = s.batch * s.heads * s.Nq * s.Nk, R = 0;
  if (pass.blocks) {  // 02's form writes S once and reads Q once for each visited tile
    theory::ClosedFormOptions options = closed_form_options(p);
    options.first_touch = false, options.splits = 1, options.deterministic = false;
    theory::Traffic visited =
        theory::closed_form("tiled", s, p.inputs.dtype, options, pass.blocks->Br, pass.blocks->Bc)->traffic;
    A = visited.write["S"];
    R = visited.read["Q"] / s.d;
  }
  const Work& work = kWork.at(law);
  if (p.options.warps == Warps::split_k)
    R = pass.ledger.exchange().read / (s.dv + 2);  // each warp has exps for each row
  INFO(law << " A " << A << " R " << R);
  REQUIRE(pass.ledger.flops().matmul == 2 * A * (work.products_d * s.d + work.products_dv * s.dv));
  const Index combined = moved(pass.ledger, sim::Access::read)["partial_LSE"];  // rows of the parts: two exps for each
  REQUIRE(pass.ledger.flops().exp == work.exps_A * A + work.exps_R * R + 2 * combined);
}

/// FA1, Theorem 1: O(N) beyond inputs and outputs, and fp32 accumulators where the run has 16 bits; N² in 01 and 02.
void check_extra_memory(const Stage& stage, const RandomProblem& p, const RunResult& result) {
  const Shape& s = p.shape();
  const Index rows = s.batch * s.heads * s.Nq;
  Index statistics = 0;
  for (const auto& [tensor, info] : result.forward.ledger.extra_hbm()) {
    if (tensor == "l" || tensor == "m" || tensor == "LSE") {
      REQUIRE(info.elements() == rows);
      ++statistics;
    } else if (tensor == "O_acc") {
      REQUIRE(is_16_bit(p.inputs.dtype));
      REQUIRE(info.elements() == rows * s.dv);
    } else if (tensor.starts_with("partial_")) {
      REQUIRE(info.elements() <= p.options.splits * rows * info.cols);
    } else {
      REQUIRE(stage.lse == "S");  // the stages that keep S
      REQUIRE(info.elements() == rows * s.Nk);
    }
  }
  if (s.Nq > 0) REQUIRE(statistics == (stage.lse == "S" ? 0 : stage.lse == "LSE" ? 1 : 2));
  if (result.backward && stage.lse == "LSE")
    for (const auto& [tensor, info] : result.backward->ledger.extra_hbm())
      REQUIRE((tensor == "LSE" || tensor == "D" || (tensor == "turn" && p.options.deterministic) ||
               (tensor == "dQ_acc" && is_16_bit(p.inputs.dtype))));
}

/// How often the options met, by name.
void tally(std::map<std::string, int>& met, const Stage& stage, const RandomProblem& p, const RunResult& result) {
  const Shape& s = p.shape();
  const auto blocks = result.forward.blocks;
  const std::pair<const char*, bool> asked[] = {
      {"causal", p.options.causal},
      {"window", p.windowed()},
      {"softcap", p.options.softcap > 0},
      {"alibi", !p.inputs.slopes.empty()},
      {"mask", !p.inputs.mask.empty()},
      {"dropout", p.options.dropout > 0},
      {"scale", p.options.scale.has_value()},
      {"block-mask", !p.inputs.block_mask.empty()},
      {"first-touch", p.options.first_touch},
      {"br and bc", p.options.br > 0},
      {"warps", p.options.warps.has_value()},
      {"splits", p.options.splits > 1},
      {"deterministic", p.options.deterministic},
  };
  for (const auto& [option, is_asked] : asked)
    if (stage.takes(option)) met[option] += is_asked;
  met["GQA"] += s.heads != s.kv_heads;
  met["one query head per KV head"] += s.heads == s.kv_heads;
  met["16 bit"] += is_16_bit(p.inputs.dtype);
  met["fp64"] += p.inputs.dtype == Format::fp64;
  met["Nq ≠ Nk"] += s.Nq != s.Nk;
  met["dv ≠ d"] += s.dv != s.d;
  met["Nq = 0"] += s.Nq == 0;
  met["Nk = 0"] += s.Nk == 0;
  met["batch > 1"] += s.batch > 1;
  if (blocks) {
    met["ragged"] += s.Nq % blocks->Br != 0 || s.Nk % blocks->Bc != 0;
    met["several tiles both ways"] += s.Nq > blocks->Br && s.Nk > blocks->Bc;
    met["strict"] += p.config.machine.budget == sim::Budget::strict;
  }
}

/// Runs `problems` problems of each stage; each option that it takes must be met `at_least` times.
void check_all_stages(std::uint64_t seed, int problems, int at_least) {
  Random random(seed);
  for (const Stage& stage : stages_on(Side::cpu)) {
    std::map<std::string, int> met;
    for (int n = 0; n < problems; ++n) {
      const RandomProblem p = random_problem(random, stage, /*count_only=*/false);
      INFO(stage.id << " " << p.text());
      const RunResult result = run(stage, p.inputs, p.options, p.config);
      check_pass(stage.forward_facts.law, p, result.forward);
      check_work(stage.forward_facts.law, p, result.forward);
      if (result.backward) {
        check_pass(stage.backward_facts.law, p, *result.backward);
        check_work(stage.backward_facts.law, p, *result.backward);
      }
      check_extra_memory(stage, p, result);
      tally(met, stage, p, result);
    }
    for (const auto& [option, times] : met) {
      INFO(stage.id << ": " << option);
      CHECK(times >= at_least);
    }
  }
}

}  // namespace

TEST_CASE("ledger equals closed form on random problems", "[io_exact]") { check_all_stages(1, 100, 5); }

TEST_CASE("ledger equals closed form on thousands of random problems", "[io_exact][full]") {
  REQUIRE(stages().size() * 1000 >= 2000);
  check_all_stages(2, 1000, 100);
}

TEST_CASE("ledger equals closed form at the sizes of real models", "[io_exact]") {
  for (const Stage& stage : stages_on(Side::cpu)) {
    for (const bool causal : {false, true}) {
      RandomProblem p;
      p.inputs.shape = {2, 32, 8, 1000, 1513, 128, 64};
      p.inputs.dtype = Format::bf16;
      p.options.causal = causal;
      p.config.machine = {.sram_bytes = 192 * 1024, .count_only = true};
      p.config.backward = stage.has_backward();
      const RunResult result = run(stage, p.inputs, p.options, p.config);
      check_pass(stage.forward_facts.law, p, result.forward);
      check_work(stage.forward_facts.law, p, result.forward);
      if (result.backward) check_pass(stage.backward_facts.law, p, *result.backward);
    }
  }
}

// The ledger of whole stages: counted lines, observers, threads, and count-only runs.
#include <fstream>
#include <map>
#include <string>
#include <tuple>

#include "tests/catch.hpp"
#include "tests/support/random_problem.hpp"

using namespace flash;
using sim::Access;
using sim::Event;
using sim::EventKind;

namespace {

/// 04's or any stage's problem with grouped heads, ragged tiles and every mask it takes.
RandomProblem rich_problem(const Stage& stage, Format dtype = Format::fp16) {
  RandomProblem p;
  p.inputs = draw_inputs({2, 4, 2, 21, 27, 5, 6}, dtype, 3);
  draw_dout(p.inputs, 3);
  p.options.causal = true;
  p.options.softcap = 3;
  p.options.dropout = 0.25;
  p.inputs.slopes.assign(4, 0.5f);
  p.inputs.mask.assign(21 * 27, 1);
  p.config.backward = stage.has_backward();
  if (stage.takes("br and bc")) p.options.br = 4, p.options.bc = 8;
  if (stage.takes("splits")) p.options.splits = 3;
  p.options.deterministic = stage.takes("deterministic");
  return p;
}

std::string line_of(const std::string& file_name, std::uint32_t line) {
  std::ifstream file(std::string(FLASH_SOURCE_DIR) + "/" + file_name);
  std::string text;
  for (std::uint32_t n = 0; n < line; ++n) std::getline(file, text);
  return text;
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

void check_same(const sim::Ledger& a, const sim::Ledger& b) {
  REQUIRE(a.lines().size() == b.lines().size());
  for (std::size_t n = 0; n < a.lines().size(); ++n) {
    const sim::LedgerLine &x = a.lines()[n], &y = b.lines()[n];
    REQUIRE(std::tie(x.file, x.line, x.tensor, x.access) == std::tie(y.file, y.line, y.tensor, y.access));
    REQUIRE((x.elements == y.elements && x.bytes == y.bytes));
  }
  REQUIRE(a.sram() == b.sram());
  REQUIRE(a.flops() == b.flops());
  REQUIRE(a.sram_peak().bytes == b.sram_peak().bytes);
  REQUIRE(a.sram_peak().worker == b.sram_peak().worker);
  REQUIRE(a.extra_elements() == b.extra_elements());
}

}  // namespace

TEST_CASE("each counted line is the source line that moves the tensor", "[ledger]") {
  for (const Stage& stage : stages_on(Side::cpu)) {
    const RandomProblem p = rich_problem(stage);
    const RunResult result = run(stage, p.inputs, p.options, p.config);
    std::vector<sim::LedgerLine> lines = result.forward.ledger.lines();
    if (result.backward) std::ranges::copy(result.backward->ledger.lines(), std::back_inserter(lines));
    REQUIRE(lines.size() > 6);
    for (const sim::LedgerLine& l : lines) {
      const std::string text = line_of(l.file, l.line);
      INFO(l.file << ":" << l.line << " " << l.tensor << ": " << text);
      CHECK(l.file.starts_with(fmt::format("stages/{}/", stage.folder())));
      if (l.tensor == "slopes" || l.tensor == "mask") {  // loaded on the lesson's behalf
        CHECK(contains(text, l.tensor == "slopes" ? "ScoreMask mask(" : "mask.apply("));
        continue;
      }
      if (l.tensor == "turn" || l.tensor.starts_with("partial_")) {  // made for the run's tiles
        CHECK(contains(text, l.tensor));
        if (contains(text, "take_turn(")) continue;
      } else {
        CHECK(contains(text, "p." + l.tensor));
      }
      CHECK(contains(text, l.access == Access::read ? "load(" : l.access == Access::write ? "store(" : "accumulate("));
    }
  }
}

TEST_CASE("the sums over lines and tensors equal a stage's totals", "[ledger]") {
  for (const Stage& stage : stages_on(Side::cpu)) {
    const RandomProblem p = rich_problem(stage);
    const RunResult result = run(stage, p.inputs, p.options, p.config);
    for (const Pass* pass : {&result.forward, result.backward ? &*result.backward : &result.forward}) {
      const sim::Ledger& ledger = pass->ledger;
      std::map<Access, Index> of_lines, of_tensors;
      Index bytes = 0, bytes_of_tensors = 0;
      for (const sim::LedgerLine& l : ledger.lines()) {
        of_lines[l.access] += l.elements;
        bytes += (l.access == Access::rmw ? 2 : 1) * l.bytes;
      }
      for (const auto& [tensor, n] : ledger.bytes_by_tensor()) bytes_of_tensors += n;
      for (const Access access : {Access::read, Access::write, Access::rmw}) {
        for (const auto& [tensor, n] : ledger.by_tensor(access)) of_tensors[access] += n;
        CHECK(of_lines[access] == ledger.total(access));
        CHECK(of_tensors[access] == ledger.total(access));
      }
      CHECK(ledger.elements() == of_lines[Access::read] + of_lines[Access::write] + 2 * of_lines[Access::rmw]);
      CHECK((ledger.bytes() == bytes && ledger.bytes() == bytes_of_tensors));
    }
  }
}

// ---- observers

TEST_CASE("observers get every event with its tile", "[ledger]") {
  for (const Stage& stage : stages_on(Side::cpu)) {
    RandomProblem p = rich_problem(stage);
    const Shape& s = p.shape();
    std::map<EventKind, std::map<std::string, Index>> moved;
    Index worker = 0, computed = 0;
    p.config.observer = [&](const Event& e) {
      const Index size = e.rows.size() * e.cols.size();
      REQUIRE((e.rows.begin >= 0 && e.cols.begin >= 0 && e.values.rows == e.rows.size()));
      REQUIRE((e.batch < s.batch && e.head < s.heads));
      if (e.worker < worker) REQUIRE(e.worker == 0);  // a new launch
      worker = e.worker;
      if (e.kind == EventKind::compute) {
        ++computed;
        return;
      }
      if (e.kind == EventKind::take || e.kind == EventKind::give_back || e.kind == EventKind::fill) return;
      moved[e.kind][e.name] += size;
      REQUIRE(e.rows.end <= e.tensor->rows);
    };
    const RunResult observed = run(stage, p.inputs, p.options, p.config);
    p.config.observer = nullptr;
    const RunResult alone = run(stage, p.inputs, p.options, p.config);

    const std::pair<EventKind, Access> kinds[] = {
        {EventKind::load, Access::read}, {EventKind::store, Access::write}, {EventKind::accumulate, Access::rmw}};
    for (const auto& [kind, access] : kinds) {
      auto counted = alone.forward.ledger.by_tensor(access);
      if (alone.backward)
        for (const auto& [tensor, n] : alone.backward->ledger.by_tensor(access)) counted[tensor] += n;
      INFO(stage.id);
      CHECK(moved[kind] == counted);
    }
    CHECK(computed > 0);
    check_same(observed.forward.ledger, alone.forward.ledger);
    CHECK(observed.outputs.o == alone.outputs.o);
    CHECK(observed.outputs.dk == alone.outputs.dk);
  }
}

TEST_CASE("tile coordinates say where a tile lies and its values are there", "[ledger]") {
  RandomProblem p = rich_problem(find_stage("3"), Format::fp64);
  const Shape& s = p.shape();
  std::map<std::string, std::vector<sim::Range>> loads;
  p.config.observer = [&](const Event& e) {
    if (e.kind != EventKind::load || e.worker != 5) return;
    CHECK((e.batch == 1 && e.head == 1));
    loads[e.name].push_back(e.rows);
    if (std::string(e.name) != "K") return;
    const Index kv_head = 0, row = (e.batch * s.kv_heads + kv_head) * s.Nk + e.rows.begin;
    for (Index j = 0; j < e.values.rows; ++j)
      for (Index c = 0; c < e.values.cols; ++c) REQUIRE(e.values(j, c) == p.inputs.k[(row + j) * s.d + c]);
  };
  run(find_stage("3"), p.inputs, p.options, p.config);
  CHECK(loads["K"] == std::vector<sim::Range>{{0, 8}, {8, 16}, {16, 24}, {24, 27}});
  CHECK(loads["V"] == loads["K"]);
  CHECK(loads["Q"].size() == loads["m"].size());
}

TEST_CASE("each event has its line in the lesson, its tile and what it cost", "[ledger]") {
  for (const Stage& stage : stages_on(Side::cpu)) {
    RandomProblem p = rich_problem(stage);
    std::map<const void*, std::string> held;  // by memory
    Index most_held = 0, matmul = 0;
    const sim::Tally* tally = nullptr;
    p.config.observer = [&](const Event& e) {
      INFO(stage.id << " " << e.name << " in " << e.where.file_name() << ":" << e.where.line());
      const std::string text = line_of(e.where.file_name(), e.where.line());
      if (e.kind == EventKind::take) {
        REQUIRE(held.emplace(e.values.data, e.name).second);
        most_held = std::max(most_held, e.held_bytes);
      }
      REQUIRE(held.contains(e.values.data));
      if (e.kind == EventKind::give_back) {
        held.erase(e.values.data);
        return;
      }
      REQUIRE(std::string(e.where.file_name()).starts_with(fmt::format("stages/{}/", stage.folder())));
      REQUIRE((e.rows.size() == e.values.rows && e.cols.size() == e.values.cols));
      if (e.kind != EventKind::compute) return;
      if (tally != e.tally) matmul = 0;  // another launch
      tally = e.tally;
      if (e.tally->flops.matmul > matmul) REQUIRE((contains(text, " * ") && contains(text, "=")));
      matmul = e.tally->flops.matmul;
    };
    const RunResult result = run(stage, p.inputs, p.options, p.config);
    CHECK(held.empty());
    CHECK(most_held == std::max(result.forward.ledger.sram_peak().bytes,
                                result.backward ? result.backward->ledger.sram_peak().bytes : 0));
  }
}

TEST_CASE("a tile of S knows where in S it lies", "[ledger]") {
  for (const Stage& stage : stages_on(Side::cpu)) {
    RandomProblem p;
    p.inputs = draw_inputs({1, 1, 1, 10, 14, 3, 3}, Format::fp64, 7);
    if (stage.takes("br and bc")) p.options.br = 4, p.options.bc = 5;
    Index seen = 0;
    p.config.observer = [&](const Event& e) {
      if (e.kind != EventKind::compute || std::string(e.name) != "S") return;
      for (Index i = 0; i < e.values.rows; ++i)
        for (Index j = 0; j < e.values.cols; ++j) {
          double s = 0;
          for (Index c = 0; c < 3; ++c)
            s += p.inputs.q[(e.rows.begin + i) * 3 + c] * p.inputs.k[(e.cols.begin + j) * 3 + c];
          REQUIRE(std::abs(e.values(i, j) - s / std::sqrt(3.0)) < 1e-12);
          ++seen;
        }
    };
    run(stage, p.inputs, p.options, p.config);
    CHECK(seen == 10 * 14);
  }
}

TEST_CASE("without an observer nothing is called", "[ledger]") {
  Machine<float> machine;
  int calls = 0;
  const auto tile = [](Worker<float>& w) {
    Tile t = w.zeros("t", 2, 2);
    t += t;
  };
  machine.observe([&](const Event&) { ++calls; });
  machine.parallel({}, tile);
  const int observed = calls;
  CHECK(observed > 0);
  machine.observe(nullptr);
  machine.parallel({1, 8, 8}, tile);
  CHECK(calls == observed);
}

// ---- threads and count-only

TEST_CASE("a stage's ledger and outputs do not depend on threads", "[ledger]") {
  for (const Stage& stage : stages_on(Side::cpu)) {
    RandomProblem p = rich_problem(stage, Format::bf16);
    p.config.machine.threads = 1;
    const RunResult one = run(stage, p.inputs, p.options, p.config);
    for (const int threads : {2, 5, 16}) {
      p.config.machine.threads = threads;
      const RunResult many = run(stage, p.inputs, p.options, p.config);
      check_same(many.forward.ledger, one.forward.ledger);
      CHECK((many.outputs.o == one.outputs.o && many.outputs.lse == one.outputs.lse));
      if (!one.backward) continue;
      check_same(many.backward->ledger, one.backward->ledger);
      CHECK((many.outputs.dq == one.outputs.dq && many.outputs.dk == one.outputs.dk &&
             many.outputs.dv == one.outputs.dv));
    }
  }
}

namespace {

void check_count_only(std::uint64_t seed, int problems) {
  Random random(seed);
  for (const Stage& stage : stages_on(Side::cpu)) {
    for (int n = 0; n < problems; ++n) {
      RandomProblem p = random_problem(random, stage, /*count_only=*/false);
      INFO(stage.id << " " << p.text());
      const RunResult counted = run(stage, p.inputs, p.options, p.config);
      p.config.machine.count_only = true;
      const RunResult count_only = run(stage, p.inputs, p.options, p.config);
      check_same(count_only.forward.ledger, counted.forward.ledger);
      if (counted.backward) check_same(count_only.backward->ledger, counted.backward->ledger);
      REQUIRE(count_only.outputs.o.empty());
    }
  }
}

}  // namespace

TEST_CASE("count-only counts the same", "[ledger]") { check_count_only(4, 40); }

TEST_CASE("count-only counts the same on many problems", "[ledger][full]") { check_count_only(5, 300); }

TEST_CASE("count-only takes no memory", "[ledger]") {
  for (const Stage& stage : stages_on(Side::cpu)) {
    RandomProblem p;
    p.inputs.shape = {1, 1, 1, 1 << 22, 1 << 22, 64, 64};  // S alone would be 64 TiB
    p.config.machine.count_only = true;
    p.config.backward = stage.has_backward();
    if (stage.takes("br and bc")) p.options.br = p.options.bc = 1 << 20;
    CHECK(run(stage, p.inputs, p.options, p.config).forward.ledger.flops().matmul == 4 * 64 * (Index(1) << 44));
  }
}

TEST_CASE("Theorem 1: extra HBM grows as N² before stage 03 and as N from it on", "[ledger]") {
  for (const Stage& stage : stages_on(Side::cpu)) {
    for (const Format dtype : {Format::fp32, Format::fp16}) {
      const auto extra = [&](Index N) {
        RandomProblem p;
        p.inputs.shape = {1, 1, 1, N, N, 64, 64};
        p.inputs.dtype = dtype;
        p.config.machine.count_only = true;
        p.config.backward = stage.has_backward();
        const RunResult result = run(stage, p.inputs, p.options, p.config);
        return std::pair(result.forward.ledger.extra_elements(),
                         result.backward ? result.backward->ledger.extra_elements() : 0);
      };
      INFO(stage.id << " " << name(dtype));
      const Index growth = stage.number() < "03" ? 4 : 2;
      const auto [forward, backward] = extra(512);
      const auto [forward_2N, backward_2N] = extra(1024);
      CHECK(forward > 0);
      CHECK(forward_2N == growth * forward);
      CHECK(backward_2N == growth * backward);
      if (stage.number() >= "03") {
        const Index accumulator = is_16_bit(dtype) ? 512 * 64 : 0;  // O_acc, dQ_acc
        CHECK(forward <= 2 * 512 + accumulator);
        CHECK(backward <= 2 * 512 + accumulator);
      }
    }
  }
}

// ---- the warps of a worker

TEST_CASE("warps with rows of their own hand nothing to each other; warps with keys hand O, l and m of every tile",
          "[ledger]") {
  const Stage& stage = find_stage("05b");
  for (const bool causal : {false, true}) {
    RandomProblem p;
    const Index Nq = 70, Nk = 96, Br = 12, Bc = 16, dv = 5;  // four keys of a tile for each warp
    p.inputs.shape = {2, 4, 2, Nq, Nk, 3, dv};
    p.config.machine.count_only = true;
    p.options.br = Br, p.options.bc = Bc, p.options.causal = causal;
    p.options.warps = Warps::split_q;
    CHECK(run(stage, p.inputs, p.options, p.config).forward.ledger.exchange() == sim::SramTraffic{0, 0});
    Index R = 0;  // rows of all visited tiles of a head
    for (Index i = 0; i < Nq; i += Br)
      for (Index j = 0; j < Nk; j += Bc) {
        const Index last = std::min(Nq, i + Br) - 1;
        if (!causal || j <= last + Nk - Nq) R += last - i + 1;
      }
    p.options.warps = Warps::split_k;
    const Index moved = 2 * 4 * 4 * R * (dv + 2);  // batch, heads, warps
    CHECK(run(stage, p.inputs, p.options, p.config).forward.ledger.exchange() == sim::SramTraffic{moved, moved});
  }
}

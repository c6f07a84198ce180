// Faults that real attention code has had, each with the smallest input that shows it and the answer that is right: the
// softmax, head sizes and heads, indices, and what is counted. test_faults_masks.cpp has the others. F15–F17 are about
// launches, architectures and shared memory of a GPU, F21 about pointers off alignment: here every array is dense and
// owned, so that F20's strided views can't come in either; its arithmetic is tested.
#include "sim/theory/closed_forms.hpp"
#include "stages/common/oracle.hpp"
#include "tests/catch.hpp"
#include "tests/support/stage_runs.hpp"

using namespace flash;

namespace {

double channel_number(Index, Index c) { return static_cast<double>(c); }

RunConfig counting() {
  RunConfig config;
  config.machine.count_only = true;
  return config;
}

Inputs without_values(const Shape& shape, Format dtype = Format::fp32) {
  Inputs in;
  in.shape = shape;
  in.dtype = dtype;
  return in;
}

}  // namespace

TEST_CASE("F05 N is not a multiple of the tile", "[faults]") {
  for (const Index Nq : {1, 2, 15, 16, 17, 31, 33, 63, 65, 127, 129, 193})
    for (const Index Nk : {Index(1), Nq, Nq + 5}) {
      Inputs in = equal_scores({1, 1, 1, Nq, Nk, 2, 1}, [](Index j, Index) { return static_cast<double>(j); });
      in.dout.assign(Nq, 1);
      INFO("Nq " << Nq << ", Nk " << Nk);
      for (const Index block : {16, 32, 64}) {
        Options o;
        o.br = o.bc = block;
        on_every_stage(in, o, [&](const Stage&, const RunResult& result) {
          CHECK(differs(result.outputs.o, std::vector<double>(Nq, (Nk - 1) / 2.0), 2e-6) == "");
          CHECK(differs(result.outputs.lse, std::vector<double>(Nq, std::log(Nk))) == "");
          if (result.backward) CHECK(differs(result.outputs.dv, std::vector<double>(Nk, 1.0 * Nq / Nk), 2e-6) == "");
        });
      }
    }
}

TEST_CASE("F08 huge logits: the product is rounded apart from the subtraction of its maximum", "[faults]") {
  Inputs in = equal_scores(
      {1, 1, 1, 1, 1, 64, 64}, [](Index, Index) { return 133120; }, Format::bf16);
  in.q.assign(64, 133120);
  in.k = in.q;
  in.dout.assign(64, 1);
  on_every_stage(in, {}, [&](const Stage& stage, const RunResult& result) {
    const Outputs& out = result.outputs;
    const double score = 1.417675e11;
    CHECK(out.o == in.v);
    CHECK(differs(out.lse, {stage.lse == "S" ? rounded(score, Format::bf16) : score}) == "");
    if (!result.backward) return;
    CHECK(out.dv == in.dout);
    CHECK(out.dq == std::vector<double>(64, 0));
    CHECK(out.dk == std::vector<double>(64, 0));
  });
}

TEST_CASE("F09 a tile's maximum taken without the running one", "[faults]") {
  for (const Index Bc : {1, 2, 3, 4}) {
    Options o = with_scale(1);
    o.br = 1, o.bc = Bc;
    on_every_stage(one_row({200, 200, 0, 0}, {1, 3, 9, 9}), o, [](const Stage&, const RunResult& result) {
      CHECK(differs(result.outputs.o, {2}) == "");
      CHECK(differs(result.outputs.lse, {200.6931}) == "");
    });
  }
}

TEST_CASE("F10 the old part is rescaled by the inverse factor", "[faults]") {
  for (const std::vector<double>& scores : {std::vector<double>{0, std::log(3)}, {std::log(3), 0}}) {
    Inputs in = one_row(scores, {1, 0});
    in.dout = {1};
    const double P = scores[0] == 0 ? 0.25 : 0.75;
    on_every_stage(in, with_scale(1), [&](const Stage&, const RunResult& result) {  // Bc = 1 among the tiles
      CHECK(differs(result.outputs.o, {P}) == "");
      CHECK(differs(result.outputs.lse, {std::log(4)}) == "");
      if (!result.backward) return;
      CHECK(differs(result.outputs.dv, {P, 1 - P}) == "");
      CHECK(differs(result.outputs.dk, {P * (1 - P), -P * (1 - P)}) == "");
    });
  }
}

TEST_CASE("F13 32-bit offsets", "[faults]") {
  static_assert(sizeof(Index) == 8);
  const Index N = Index(1) << 26;  // × d = 2³² elements of Q
  Options o;
  o.br = N / 8, o.bc = 64;
  for (const Stage& stage : stages_on(Side::cpu)) {
    INFO(stage.id);
    RunConfig config = counting();
    config.backward = stage.has_backward();
    const RunResult result = run(stage, without_values({1, 1, 1, N, 64, 64, 64}), options_for(stage, o), config);
    CHECK(result.forward.ledger.by_tensor(sim::Access::read).at("Q") == 64 * N);
    CHECK(result.forward.ledger.by_tensor(sim::Access::write).at("O") >= 64 * N);
    CHECK(result.forward.ledger.flops().matmul == 4 * N * 64 * 64);
    if (result.backward) CHECK(result.backward->ledger.by_tensor(sim::Access::read).at("dO") >= 64 * N);
  }
}

TEST_CASE("F13 a ledger beyond 2³¹: S of 50000 × 50000", "[faults]") {
  const Index N = 50'000;
  const RunResult result = run(find_stage("01"), without_values({1, 1, 1, N, N, 8, 8}), {}, counting());
  CHECK(result.forward.ledger.by_tensor(sim::Access::write).at("S") == N * N);
  CHECK(result.forward.ledger.extra_bytes() == 2 * 4 * N * N);
}

TEST_CASE("F14 65 536 in one dimension of the grid", "[faults][full]") {
  for (const Shape& shape : {Shape{65'536, 1, 1, 1, 1, 16, 2}, Shape{1, 65'536, 65'536, 1, 1, 16, 2}}) {
    const Inputs in = draw_inputs(shape, Format::fp32, 14);
    for (const Stage& stage : stages_on(Side::cpu)) {
      INFO(stage.id);
      const Outputs out = run(stage, in, {}, {}).outputs;
      CHECK(out.o == in.v);
      const auto score = [&](Index n) {
        double s = 0;
        for (Index c = 0; c < 16; ++c) s += in.q[16 * n + c] * in.k[16 * n + c];
        return s / 4;
      };
      CHECK(differs(out.lse, array(65'536, score)) == "");
    }
  }
}

TEST_CASE("F18 head sizes that are no multiple of anything", "[faults]") {
  for (const Index d : {1, 3, 7, 8, 24, 40, 64, 72, 80, 96, 128, 136, 192, 256}) {
    INFO("d " << d);
    Inputs in = equal_scores({1, 1, 1, 5, 5, d, d}, channel_number);
    in.q.assign(5 * d, 1);  // each channel adds 1 to the score
    in.dout = array(5 * d, [&](Index n) { return static_cast<double>(n % d); });
    on_every_stage(in, {}, [&](const Stage&, const RunResult& result) {
      CHECK(differs(result.outputs.o, in.v, 1e-6) == "");
      CHECK(differs(result.outputs.lse, std::vector<double>(5, std::sqrt(d) + std::log(5)), 1e-6) == "");
      if (result.backward) CHECK(differs(result.outputs.dv, in.dout, 1e-6) == "");
    });
  }
}

TEST_CASE("F19 the scale is taken from a padded d", "[faults]") {
  Inputs in = equal_scores({1, 1, 1, 1, 2, 40, 1}, [](Index j, Index) { return j == 0 ? 1 : 0; });
  in.q.assign(40, 1);
  std::fill_n(in.k.begin() + 40, 40, 0);
  in.dout = {1};
  const double P = 0.998211, dS = P * (1 - P), scale = 1 / std::sqrt(40);
  on_every_stage(in, {}, [&](const Stage&, const RunResult& result) {
    CHECK(differs(result.outputs.o, {P}) == "");
    if (result.backward) CHECK(differs(result.outputs.dq, std::vector<double>(40, scale * dS)) == "");
  });
}

TEST_CASE("F20 dO of ones, as the gradient of a sum gives it", "[faults]") {
  const Index Nq = 7, Nk = 5, d = 3;
  Inputs in = draw_inputs({1, 2, 1, Nq, Nk, d, d}, Format::fp32, 20);
  in.v = array(Nk * d, [](Index n) { return static_cast<double>((n % 3 + n / 3) % 3); });  // V's rows sum to 3
  in.dout.assign(2 * Nq * d, 1);
  on_every_stage(in, {}, [&](const Stage&, const RunResult& result) {
    if (!result.backward) return;
    const Outputs& out = result.outputs;
    CHECK(differs(out.dq, std::vector<double>(2 * Nq * d, 0)) == "");
    CHECK(differs(out.dk, std::vector<double>(Nk * d, 0)) == "");
    for (Index c = 0; c < d; ++c) {
      double sum = 0;
      for (Index j = 0; j < Nk; ++j) sum += out.dv[j * d + c];
      CHECK(differs({sum}, {2.0 * Nq}) == "");  // two heads
    }
  });
}

TEST_CASE("F22 KV heads are tiled where they should repeat", "[faults]") {
  const auto values_by_head = [](Index heads, Index kv_heads) {
    Inputs in = equal_scores({1, heads, kv_heads, 1, 3, 2, 1}, [](Index, Index) { return 1; });
    for (std::size_t n = 0; n < in.v.size(); ++n) in.v[n] = 1 + n / 3;  // 1 in KV head 0, 2 in KV head 1
    return in;
  };
  const auto expect = [](const Inputs& in, const std::vector<double>& o) {
    on_every_stage(in, {}, [&](const Stage&, const RunResult& result) { CHECK(differs(result.outputs.o, o) == ""); });
  };
  expect(values_by_head(6, 2), {1, 1, 1, 2, 2, 2});
  expect(values_by_head(8, 2), {1, 1, 1, 1, 2, 2, 2, 2});
  expect(values_by_head(4, 1), {1, 1, 1, 1});
  expect(values_by_head(3, 3), {1, 2, 3});
  for (const Stage& stage : stages_on(Side::cpu))
    CHECK(not_refused_with("3 query heads were asked of 2 key/value heads", stage, values_by_head(3, 2), {}) == "");
}

TEST_CASE("F23 dK and dV are not summed over the group", "[faults]") {
  Inputs in = equal_scores({1, 4, 1, 1, 1, 2, 1}, [](Index, Index) { return 5; });
  in.q = array(8, [](Index n) { return 1.0 + n; });
  in.dout = {1, 2, 3, 4};
  on_every_stage(in, {}, [](const Stage&, const RunResult& result) {
    if (!result.backward) return;
    CHECK(result.outputs.dv == std::vector<double>{10});
    CHECK(result.outputs.dk == std::vector<double>{0, 0});
    CHECK(result.outputs.dq == std::vector<double>(8, 0));
  });
}

TEST_CASE("F24 dv is not d", "[faults]") {
  // Two keys; what differs stands in channel 20, beyond the smaller of the two sizes.
  Inputs wide = equal_scores({1, 1, 1, 1, 2, 8, 24}, [](Index j, Index c) { return c == 20 ? 1 + 2 * j : 0; });
  std::fill_n(wide.k.begin() + 8, 8, 0);
  wide.dout = array(24, [](Index c) { return c == 20 ? 1 : 0; });
  on_every_stage(wide, {}, [&](const Stage&, const RunResult& result) {
    CHECK(differs(result.outputs.o, array(24, [](Index c) { return c == 20 ? 2 : 0; })) == "");
    if (!result.backward) return;  // dP = 1 3, D = 2, dS = −½ ½
    CHECK(differs(result.outputs.dq, std::vector<double>(8, -0.5 / std::sqrt(8))) == "");
    CHECK(differs(result.outputs.dv, array(48, [](Index n) { return n % 24 == 20 ? 0.5 : 0; })) == "");
  });

  Inputs narrow = equal_scores({1, 1, 1, 1, 2, 24, 8}, [](Index j, Index) { return 1 - j; });
  narrow.q[20] = std::sqrt(24) * std::log(3);
  narrow.k = array(48, [](Index n) { return n == 24 + 20 ? 1 : 0; });  // scores 0 and ln 3
  narrow.dout.assign(8, 1);
  const double scale = 1 / std::sqrt(24);
  on_every_stage(narrow, {}, [&](const Stage&, const RunResult& result) {
    CHECK(differs(result.outputs.o, std::vector<double>(8, 0.25)) == "");
    if (!result.backward) return;  // dP = 8 0, D = 2, dS = ¼·6 and ¾·(−2)
    CHECK(differs(result.outputs.dq, array(24, [&](Index c) { return c == 20 ? -1.5 * scale : 0; })) == "");
    CHECK(differs({result.outputs.dk[20], result.outputs.dk[44]}, {1.5 * std::log(3), -1.5 * std::log(3)}) == "");
  });
}

TEST_CASE("F28 LSE: natural logarithm, one for each head and row, and halves of K merge", "[faults]") {
  const auto ones = [](Index, Index) { return 1; };
  on_every_stage(equal_scores({1, 1, 1, 1, 4, 2, 1}, ones), {},
                 [](const Stage&, const RunResult& result) { CHECK(differs(result.outputs.lse, {1.386294}) == ""); });
  Inputs heads = equal_scores({1, 2, 1, 3, 3, 1, 1}, ones);
  heads.q = {0, 0, 0, 10, 20, 30};
  on_every_stage(heads, with_scale(1), [](const Stage&, const RunResult& result) {
    const double ln3 = std::log(3);
    CHECK(differs(result.outputs.lse, {ln3, ln3, ln3, 10 + ln3, 20 + ln3, 30 + ln3}) == "");
  });

  const Inputs whole = draw_inputs({1, 1, 1, 5, 12, 4, 4}, Format::fp32, 28);
  Inputs left = whole, right = whole;
  left.shape.Nk = right.shape.Nk = 6;
  for (std::vector<double> Inputs::*array : {&Inputs::k, &Inputs::v}) {
    (left.*array).resize(24);
    (right.*array).erase((right.*array).begin(), (right.*array).begin() + 24);
  }
  for (const Stage& stage : stages_on(Side::cpu)) {
    const Outputs all = run(stage, whole, {}, {}).outputs, a = run(stage, left, {}, {}).outputs,
                  b = run(stage, right, {}, {}).outputs;
    const auto lse = array(5, [&](Index i) { return std::log(std::exp(a.lse[i]) + std::exp(b.lse[i])); });
    const auto merged = array(20, [&](Index n) {
      return std::exp(a.lse[n / 4] - lse[n / 4]) * a.o[n] + std::exp(b.lse[n / 4] - lse[n / 4]) * b.o[n];
    });
    INFO(stage.id);
    CHECK(differs(all.lse, lse) == "");
    CHECK(differs(all.o, merged) == "");
  }
}

TEST_CASE("F34 fp32 computed in less", "[faults]") {
  Inputs in = draw_inputs({1, 1, 1, 128, 128, 32, 32}, Format::fp32, 34);
  draw_dout(in, 34);
  Options o;
  o.causal = true;
  Judge judge(in, o);
  const auto relative = [](const std::vector<double>& got, const std::vector<double>& exact) {
    double error = 0, largest = 0;
    for (std::size_t n = 0; n < exact.size(); ++n) {
      error = std::max(error, std::abs(got[n] - exact[n]));
      largest = std::max(largest, std::abs(exact[n]));
    }
    return error / largest;
  };
  on_every_stage(in, o, [&](const Stage&, const RunResult& result) {
    CHECK(!(relative(result.outputs.o, judge.oracle().o) > 1e-5));
    if (!result.backward) return;
    CHECK(!(relative(result.outputs.dq, judge.oracle().dq) > 1e-5));
    CHECK(!(relative(result.outputs.dk, judge.oracle().dk) > 1e-5));
    CHECK(!(relative(result.outputs.dv, judge.oracle().dv) > 1e-5));
  });
}

TEST_CASE("F34 bf16 at N = 2048 loses no more than twice what a plain program does", "[faults][full]") {
  const Inputs in = draw_inputs({1, 1, 1, 2048, 2048, 32, 32}, Format::bf16, 34);
  Options o;
  o.causal = true;
  const Outputs exact = oracle(in, o, false), plain = baseline(in, o, false, false);
  const auto error = [&](const std::vector<double>& got) {
    double largest = 0;
    for (std::size_t n = 0; n < got.size(); ++n) largest = std::max(largest, std::abs(got[n] - exact.o[n]));
    return largest;
  };
  for (const Stage& stage : stages_on(Side::cpu)) {
    if (stage.lse == "S") continue;  // it also rounds S: the baseline of test_correctness.cpp does so too
    INFO(stage.id);
    CHECK(error(run(stage, in, o, {}).outputs.o) <= 2 * error(plain.o) + 1e-5);
  }
}

TEST_CASE("F35 a sum in fp16 overflows", "[faults]") {
  const Inputs in = equal_scores(
      {1, 1, 1, 3, 4096, 8, 2}, [](Index, Index) { return 100; }, Format::fp16);
  RunConfig config;
  for (const Stage& stage : stages_on(Side::cpu))
    for (const Index bytes : {2 * 1024, 64 * 1024, 1024 * 1024}) {
      config.machine.sram_bytes = bytes;
      INFO(stage.id << ", SRAM of " << bytes << " bytes");
      const Outputs out = run(stage, in, {}, config).outputs;
      CHECK(out.o == std::vector<double>(6, 100));
      CHECK(differs(out.lse, std::vector<double>(3, std::log(4096))) == "");
    }
}

TEST_CASE("F38 FLOPs: 4·d for each pair of a visited tile, and 5/2 of it backward", "[faults]") {
  const Index B = 2, H = 4, Nq = 37, Nk = 53, d = 8, Br = 6, Bc = 10;
  for (const bool causal : {false, true}) {
    Options o;
    o.causal = causal;
    o.br = Br, o.bc = Bc;
    Index tiled = 0, visible = 0;  // pairs of visited tiles, and pairs that see each other, of one head
    for (Index i = 0; i < Nq; i += Br)
      for (Index j = 0; j < Nk; j += Bc) {
        const Index rows = std::min(Br, Nq - i), cols = std::min(Bc, Nk - j);
        if (!causal || j <= i + rows - 1 + Nk - Nq) tiled += rows * cols;
      }
    for (Index i = 0; i < Nq; ++i) visible += causal ? i + Nk - Nq + 1 : Nk;
    for (const Stage& stage : stages_on(Side::cpu)) {
      INFO(stage.id << (causal ? " causal" : ""));
      RunConfig config = counting();
      config.backward = stage.has_backward();
      const RunResult result = run(stage, without_values({B, H, 2, Nq, Nk, d, d}), options_for(stage, o), config);
      const Index pairs = B * H * (result.forward.blocks ? tiled : Nq * Nk);
      CHECK(result.forward.ledger.flops().matmul == 4 * d * pairs);
      if (!result.backward) continue;
      const Index products = result.backward->blocks ? 5 : 4;  // one that keeps P need not make it again
      CHECK(result.backward->ledger.flops().matmul == 2 * products * d * pairs);
    }
    theory::ClosedFormOptions options;
    options.causal = causal;
    CHECK(theory::visible_pairs({B, H, 2, Nq, Nk, d, d}, options) == B * H * visible);
    CHECK(theory::visible_pairs({1, 1, 1, Nq, Nq, d, d}, options) == (causal ? Nq * (Nq + 1) / 2 : Nq * Nq));
  }
}

TEST_CASE("F39 M counts elements of the run's format, not bytes", "[faults]") {
  const auto blocks = [](const Stage& stage, Format dtype, Index sram_bytes, Index d) {
    RunConfig config = counting();
    config.machine.sram_bytes = sram_bytes;
    return run(stage, without_values({1, 1, 1, 300, 300, d, d}, dtype), {}, config).forward.blocks;
  };
  for (const Stage& stage : stages_on(Side::cpu)) {
    INFO(stage.id);
    const auto fp32 = blocks(stage, Format::fp32, 64 * 1024, 64);  // M = 16 384
    if (!fp32) continue;
    CHECK((fp32->Bc == 64 && fp32->Br == 64));
    const auto fewer = blocks(stage, Format::fp32, 16 * 1024, 64);
    CHECK((fewer->Bc == 16 && fewer->Br == 16));
    Index Blocks::*longer = stage.forward.side == Long::cols ? &Blocks::Bc : &Blocks::Br;
    for (const Format dtype : {Format::fp16, Format::bf16}) {
      const auto half = blocks(stage, dtype, 64 * 1024, 64);
      CHECK(((*half).*longer == 128 && half->Br + half->Bc == 128 + 64));
    }
    CHECK((*blocks(stage, Format::fp64, 64 * 1024, 64)).*longer == 32);
    CHECK((*blocks(stage, Format::fp32, 64 * 1024 + 4, 64)).*longer == 65);  // ⌈M/4d⌉
    RunConfig tiny;
    tiny.machine.sram_bytes = 4 * 4 * 64 - 4;
    CHECK(not_refused_with("M >= 4d", stage, draw_inputs({1, 1, 1, 2, 2, 64, 64}, Format::fp32, 1), {}, tiny) == "");
  }
}

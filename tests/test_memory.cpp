// The counted memory hierarchy by itself: what moves, what is held. With whole stages on it: test_ledger.cpp.
#include <cmath>
#include <cstdint>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "sim/memory/machine.hpp"
#include "tests/catch.hpp"
#include "tests/support/march_native.hpp"

using namespace flash;
using namespace flash::sim;

namespace {

template <class Real = float>
HbmMatrix<Real> matrix(const char* name, Index rows, Index cols, Format format = Format::fp32, Role role = Role::input,
                       Index heads = 1, Index batch = 1) {
  const HbmMatrix<Real> tensor({name, format, role, batch, heads, rows, cols});
  Real x = 1;
  for (Real& value : tensor.host()) value = x++;
  return tensor;
}

HbmVector<float> column(const char* name, Index rows) {
  const HbmVector<float> tensor({name, Format::fp32, Role::extra, 1, 1, rows, 1});
  for (float& value : tensor.host()) value = 1;
  return tensor;
}

/// Runs `body` on one worker and gives the ledger.
template <class Body>
Ledger ledger_of(Body body, const MachineConfig& config = {}) {
  Machine<float> machine(config);
  machine.parallel({}, body);
  return machine.ledger();
}

using W = Worker<float>;

std::vector<std::string> names(const std::vector<Holder>& holders) {
  std::vector<std::string> all;
  for (const Holder& h : holders) all.push_back(h.name);
  std::ranges::sort(all);
  return all;
}

Index here(const std::source_location& where = std::source_location::current()) { return where.line(); }

}  // namespace

// ---- what does not compile: a tile has no element that can be written without being counted

template <class T>
concept ElementAssignable = requires(T t) {
  t(0, 0) = 1.0f;
};
template <class T>
concept CoeffAssignable = requires(T t) {
  t.coeffRef(0, 0) = 1.0f;
};
template <class T>
concept DataAssignable = requires(T t) {
  t.data()[0] = 1.0f;
};
template <class T>
concept ValuesReachable = requires(T t) {
  t.values();
};
template <class T>
concept HbmElementReadable = requires(T t) {
  t(0, 0);
}
|| requires(T t) { t[0]; };

static_assert(ElementAssignable<RowMajor<float>> && CoeffAssignable<RowMajor<float>> &&
              DataAssignable<RowMajor<float>>);
static_assert(!ElementAssignable<Tile<float>> && !ElementAssignable<Column<float>>);
static_assert(!CoeffAssignable<Tile<float>> && !CoeffAssignable<Column<double>>);
static_assert(!DataAssignable<Tile<float>> && !DataAssignable<Column<float>>);
static_assert(!ValuesReachable<Tile<float>> && !ValuesReachable<Column<float>>);
static_assert(!HbmElementReadable<HbmMatrix<float>> && !HbmElementReadable<HbmVector<float>>);
static_assert(!std::is_copy_constructible_v<Tile<float>>, "a copy would be a second tile that nobody counts");

// ---- tiles of an axis

TEST_CASE("a range is within an axis only with both ends in their order", "[memory]") {
  CHECK((sim::is_within({0, 4}, 4) && sim::is_within({4, 4}, 4)));
  CHECK_FALSE((sim::is_within({-1, 1}, 4) || sim::is_within({3, 1}, 4) || sim::is_within({2, 5}, 4)));
}

TEST_CASE("tiles cover an axis in order, the last one shorter", "[memory]") {
  std::vector<Range> all;
  for (Range r : tiles(10, 4)) all.push_back(r);
  CHECK(all == std::vector<Range>{{0, 4}, {4, 8}, {8, 10}});
  CHECK(all.back().size() == 2);
  for (Range r : tiles(0, 4)) FAIL("an empty axis has a tile at " << r.begin);
  for (Range r : tiles(3, 100)) CHECK(r == Range{0, 3});
  CHECK(tile_range(1, 7, 4) == Range{4, 7});
  CHECK((ceil_div(8, 4) == 2 && ceil_div(9, 4) == 3 && ceil_div(0, 4) == 0));
}

// ---- HBM traffic

TEST_CASE("loads, stores and accumulations are counted by tensor, line and byte", "[memory]") {
  const auto Q = matrix("Q", 10, 4), O = matrix("O", 10, 4, Format::fp16), G = matrix("G", 10, 4, Format::bf16);
  const auto l = column("l", 10);
  Index first = 0;
  const Ledger ledger = ledger_of([&](W& w) {
    for (Range rows : tiles(10, 3)) {
      first = here() + 1;
      const Tile Qi = w.load(Q, rows);
      const Column li = w.load(l, rows);
      w.store(O, rows, Qi);
      w.accumulate(G, rows, Qi);
    }
  });

  CHECK(ledger.by_tensor(Access::read) == std::map<std::string, Index>{{"Q", 40}, {"l", 10}});
  CHECK(ledger.by_tensor(Access::write) == std::map<std::string, Index>{{"O", 40}});
  CHECK(ledger.by_tensor(Access::rmw) == std::map<std::string, Index>{{"G", 40}});
  CHECK(ledger.bytes_by_tensor() == std::map<std::string, Index>{{"Q", 160}, {"l", 40}, {"O", 80}, {"G", 160}});
  CHECK(ledger.total(Access::read) == 50);
  CHECK(ledger.elements() == 50 + 40 + 2 * 40);  // a read-modify-write moves each element twice
  CHECK(ledger.bytes() == 160 + 40 + 80 + 2 * 80);

  REQUIRE(ledger.lines().size() == 4);
  const char* order[] = {"Q", "l", "O", "G"};
  for (int n = 0; n < 4; ++n) {
    CHECK(ledger.lines()[n].file == "tests/test_memory.cpp");
    CHECK(ledger.lines()[n].line == first + n);
    CHECK(ledger.lines()[n].tensor == order[n]);
  }
}

TEST_CASE("the sums over lines and tensors equal the totals", "[memory]") {
  const auto Q = matrix("Q", 9, 4), O = matrix("O", 9, 4);
  const Ledger ledger = ledger_of([&](W& w) {
    for (Range rows : tiles(9, 2)) w.store(O, rows, w.load(Q, rows));
    for (Range rows : tiles(9, 4)) w.store(O, rows, w.load(Q, rows));
    w.accumulate(O, {0, 9}, w.load(O, {0, 9}));
  });
  Index elements = 0, bytes = 0, of_tensors = 0, bytes_of_tensors = 0;
  for (const LedgerLine& l : ledger.lines()) {
    const Index times = l.access == Access::rmw ? 2 : 1;
    elements += times * l.elements, bytes += times * l.bytes;
  }
  for (const Access access : {Access::read, Access::write, Access::rmw})
    for (const auto& [tensor, n] : ledger.by_tensor(access)) of_tensors += (access == Access::rmw ? 2 : 1) * n;
  for (const auto& [tensor, n] : ledger.bytes_by_tensor()) bytes_of_tensors += n;
  CHECK((elements == ledger.elements() && of_tensors == ledger.elements()));
  CHECK((bytes == ledger.bytes() && bytes_of_tensors == ledger.bytes()));
  CHECK(ledger.elements() == 36 * 4 + 36 + 2 * 36);
}

TEST_CASE("an element has its format's bytes", "[memory]") {
  const std::pair<Format, Index> sizes[] = {
      {Format::fp64, 8}, {Format::fp32, 4}, {Format::fp16, 2}, {Format::bf16, 2}, {Format::u8, 1}};
  for (const auto& [format, size] : sizes) {
    const auto X = matrix("X", 3, 5, format);
    const Ledger ledger = ledger_of([&](W& w) { const Tile x = w.load(X, {0, 3}); });
    CHECK(ledger.bytes() == 15 * size);
    CHECK(ledger.sram_peak().bytes == 15 * size);
    CHECK(bytes_per_element(format) == size);
  }
}

TEST_CASE("a block of a matrix goes to SRAM and back to its place", "[memory]") {
  const auto X = matrix("X", 4, 6), Y = matrix("Y", 4, 6);
  std::ranges::fill(Y.host(), -1.0f);
  const Ledger ledger = ledger_of([&](W& w) { w.store(Y, {1, 3}, {2, 5}, w.load(X, {1, 3}, {2, 5})); });
  for (Index i = 0; i < 4; ++i)
    for (Index j = 0; j < 6; ++j) {
      const bool inside = i >= 1 && i < 3 && j >= 2 && j < 5;
      CHECK(Y.host()[i * 6 + j] == (inside ? X.host()[i * 6 + j] : -1));
    }
  CHECK(ledger.total(Access::read) == 6);
}

TEST_CASE("workers reach their own head, a group its KV head, all one mask", "[memory]") {
  const auto Q = matrix("Q", 1, 1, Format::fp32, Role::input, 4, 2),
             K = matrix("K", 1, 1, Format::fp32, Role::input, 2, 2);
  const auto mask = matrix("mask", 1, 1, Format::u8);
  std::vector<std::vector<float>> seen(8);
  Machine<float> machine;
  machine.parallel({2, 4, 2}, [&](W& w) {
    const Tile q = w.load(Q, {0, 1}), k = w.load(K, {0, 1}), m = w.load(mask, {0, 1});
    seen[w.batch * 4 + w.head] = {q(0), k(0), m(0)};
  });
  for (int n = 0; n < 8; ++n) CHECK(seen[n] == std::vector<float>{n + 1.0f, n / 2 + 1.0f, 1});
}

TEST_CASE("stores round to the tensor's format", "[memory]") {
  const auto X = matrix("X", 1, 4), half = matrix("H", 1, 4, Format::fp16), brain = matrix("B", 1, 4, Format::bf16);
  const float values[] = {1 + 0x1p-12f, 1 + 0x1.8p-10f, 65520, 1e-8f};
  std::ranges::copy(values, X.host().begin());
  ledger_of([&](W& w) {
    const Tile x = w.load(X, {0, 1});
    w.store(half, {0, 1}, x);
    w.store(brain, {0, 1}, x);
  });
  CHECK(std::vector<float>(half.host().begin(), half.host().end()) ==
        std::vector<float>{1, 1 + 0x1p-9f, INFINITY, 0});  // ties to even; beyond 65504
  CHECK((brain.host()[0] == 1 && brain.host()[2] == 65536 && brain.host()[3] == rounded(1e-8f, Format::bf16)));
}

TEST_CASE("memory that nobody wrote is NaN", "[memory]") {
  const HbmMatrix<float> X({"X", Format::fp32, Role::extra, 1, 1, 2, 2});
  for (const float x : X.host()) CHECK(std::isnan(x));
}

TEST_CASE("extra memory is what a run touches beyond inputs and outputs", "[memory]") {
  const auto Q = matrix("Q", 4, 4), S = matrix("S", 4, 8, Format::fp16, Role::extra);
  const auto untouched = matrix("P", 100, 100, Format::fp16, Role::extra),
             O = matrix("O", 4, 4, Format::fp32, Role::output);
  const auto l = column("l", 4);
  const Ledger ledger = ledger_of([&](W& w) {
    w.store(O, {0, 4}, w.load(Q, {0, 4}));
    w.store(S, {0, 4}, w.load(S, {0, 4}));
    w.store(l, {0, 4}, w.load(l, {0, 4}));
  });
  CHECK(ledger.extra_elements() == 4 * 8 + 4);
  CHECK(ledger.extra_bytes() == 4 * 8 * 2 + 4 * 4);
  CHECK(ledger.extra_hbm().size() == 2);
}

// ---- SRAM traffic and operations

TEST_CASE("a product reads each operand once and reads and writes its accumulator once", "[memory]") {
  const Index m = 3, n = 5, k = 4;
  for (const bool adds : {false, true}) {
    const Ledger ledger = ledger_of([&](W& w) {
      const Tile A = w.zeros("A", m, k), B = w.zeros("B", n, k);
      Tile C = w.zeros("C", m, n);
      adds ? C += 2.0f * A * B.transpose() : C = 2.0f * A * B.transpose();
    });
    const Index zeros = m * k + n * k + m * n;  // one write each
    CHECK(ledger.sram() == SramTraffic{m * k + n * k + m * n, zeros + m * n});
    CHECK(ledger.flops() == Flops{2 * m * n * k, 0, 0});
    CHECK(ledger.elements() == 0);
  }
}

TEST_CASE("a load is a write to SRAM, a store and an accumulation are reads", "[memory]") {
  const auto X = matrix("X", 3, 5);
  CHECK(ledger_of([&](W& w) { const Tile x = w.load(X, {0, 3}); }).sram() == SramTraffic{0, 15});
  CHECK(ledger_of([&](W& w) { w.store(X, {0, 3}, w.load(X, {0, 3})); }).sram() == SramTraffic{15, 15});
  CHECK(ledger_of([&](W& w) { w.accumulate(X, {0, 3}, w.load(X, {0, 3})); }).sram() == SramTraffic{15, 15});
}

namespace {

struct PassCost {
  SramTraffic sram;
  Flops flops;
  bool operator==(const PassCost&) const = default;
};

/// Cost of the one statement `body` on S [3,5], T [3,5], m [3], l [3].
template <class Body>
PassCost cost_of(Body body) {
  const auto prepare = [](W& w, auto&& use) {
    Tile S = w.zeros("S", 3, 5), T = w.zeros("T", 3, 5);
    Column m = w.constant("m", 3, 0), l = w.constant("l", 3, 1);
    use(S, T, m, l);
  };
  const Ledger with = ledger_of([&](W& w) { prepare(w, body); });
  const Ledger without = ledger_of([&](W& w) { prepare(w, [](auto&&...) {}); });
  return {{with.sram().read - without.sram().read, with.sram().write - without.sram().write},
          {with.flops().matmul - without.flops().matmul, with.flops().exp - without.flops().exp,
           with.flops().other - without.flops().other}};
}

}  // namespace

TEST_CASE("a pass reads its inputs once and writes its output once", "[memory]") {
  constexpr Index n = 15, r = 3;  // elements of a tile, rows
  CHECK(cost_of([](auto& S, auto&, auto& m, auto&) { m = S.rowwise().maxCoeff(); }) == PassCost{{n, r}, {0, 0, n}});
  CHECK(cost_of([](auto& S, auto&, auto& m, auto&) { m = S.rowwise().maxCoeff().cwiseMax(m); }) ==
        PassCost{{n + r, r}, {0, 0, n + r}});
  CHECK(cost_of([](auto& S, auto&, auto& m, auto&) { S = (S.colwise() - m).array().exp(); }) ==
        PassCost{{n + r, n}, {0, n, n}});
  CHECK(cost_of([](auto&, auto&, auto& m, auto& l) { l = (m - l).array().exp() * l.array(); }) ==
        PassCost{{3 * r, r}, {0, r, 2 * r}});
  CHECK(cost_of([](auto& S, auto&, auto&, auto& l) { S = l.asDiagonal() * S; }) == PassCost{{n + r, n}, {0, 0, n}});
  CHECK(cost_of([](auto& S, auto& T, auto&, auto&) { S = S.cwiseProduct(T); }) == PassCost{{2 * n, n}, {0, 0, n}});
  CHECK(cost_of([](auto& S, auto& T, auto&, auto&) { S += T; }) == PassCost{{2 * n, n}, {0, 0, n}});
  CHECK(cost_of([](auto& S, auto& T, auto&, auto&) { S = T; }) == PassCost{{n, n}, {0, 0, 0}});
  CHECK(cost_of([](auto& S, auto& T, auto&, auto&) { S = (T.array() != 0).select(S, -1.0f); }) ==
        PassCost{{2 * n, n}, {0, 0, 2 * n}});  // comparing and choosing
  CHECK(cost_of([](auto& S, auto&, auto&, auto&) { S.transform([](Index, Index, float x) { return x; }); }) ==
        PassCost{{n, n}, {0, 0, n}});
  CHECK(cost_of([](auto& S, auto&, auto&, auto&) { S.fill(3); }) == PassCost{{0, n}, {0, 0, 0}});
  CHECK(cost_of([](auto& S, auto&, auto&, auto&) { S.round(Format::fp16); }) == PassCost{});  // on the way to a product
  CHECK(cost_of([](auto&, auto&, auto& m, auto& l) { l = (m.array().exp() + l.array().exp()).log(); }) ==
        PassCost{{2 * r, r}, {0, 2 * r, 2 * r}});
}

TEST_CASE("statements compute what they say", "[memory]") {
  ledger_of([](W& w) {
    Tile A = w.sram("A", 2, 3), B = w.sram("B", 2, 3), C = w.zeros("C", 2, 2);
    A.transform([](Index i, Index j, float) { return static_cast<float>(i + j); });
    B = A;
    C += A * B.transpose();
    C += A * B.transpose();
    CHECK((C(0, 0) == 10 && C(0, 1) == 16 && C(1, 1) == 28));
    Column m = w.sram("m", 2);
    m = A.rowwise().maxCoeff();
    B = m.asDiagonal() * A;
    CHECK((B(0, 2) == 4 && B(1, 0) == 3));
    A = (A.array() != 0).select(A, -INFINITY);
    CHECK((A(0, 0) == -INFINITY && A(1, 0) == 1));
  });
}

TEST_CASE("e^(−∞) is 0 in every lane", "[memory]") {  // a packet's exp of its own accord ends at 3e-39
  ledger_of([](W& w) {
    for (const Index n : {1, 3, 4, 7, 8, 16, 33}) {
      Column x = w.constant("x", n, -INFINITY), y = w.constant("y", n, -200);
      x = x.array().exp();
      y = y.array().exp();
      for (Index i = 0; i < n; ++i) CHECK((x(i) == 0 && y(i) == 0));
    }
  });
}

// ---- who holds what

TEST_CASE("the peak is the fullest moment, with its holders", "[memory]") {
  const auto X = matrix("X", 4, 4, Format::fp16);
  const Ledger ledger = ledger_of([&](W& w) {
    const Tile x = w.load(X, {0, 4});  // 32 bytes
    { const Tile big = w.sram("big", 10, 10); }
    {
      Tile S = w.sram("S", 10, 10);
      Tile again = S.alias();  // no memory of its own
      const Column m = w.sram("m", 10);
    }
    const Tile small = w.sram("small", 2, 2);
  });
  CHECK(ledger.sram_peak().bytes == 32 + 400 + 40);
  CHECK(names(ledger.sram_peak().holders) == std::vector<std::string>{"S", "X", "m"});
  Index held = 0;
  for (const Holder& h : ledger.sram_peak().holders) held += h.bytes;
  CHECK(held == ledger.sram_peak().bytes);
}

TEST_CASE("a moved tile is held once", "[memory]") {
  const Ledger ledger = ledger_of([](W& w) {
    Tile a = w.sram("a", 2, 2);
    const Tile b = std::move(a);
    const Tile c = w.sram("c", 2, 2);
  });
  CHECK(ledger.sram_peak().bytes == 32);
}

TEST_CASE("strict refuses the tile that does not fit and says who holds the rest", "[memory]") {
  const MachineConfig strict{.sram_bytes = 600, .budget = Budget::strict};
  const auto body = [](W& w) {
    const Tile K = w.sram("K", 10, 10);
    const Column l = w.sram("l", 10);
    const Tile S = w.sram("S", 5, 8);  // 160 bytes to the 160 that are left
    const Tile P = w.sram("P", 1, 1);
  };
  std::string said;
  try {
    ledger_of(body, strict);
  } catch (const CapacityError& error) {
    said = error.what();
  }
  for (const char* part : {"P [1 x 1]", "4 bytes", "600 bytes", "K [10 x 10] 400 bytes", "l [10 x 1] 40 bytes",
                           "S [5 x 8] 160 bytes", "paper"}) {
    INFO(said);
    CHECK(said.find(part) != std::string::npos);
  }
  CHECK(ledger_of(body, {.sram_bytes = 1, .budget = Budget::paper}).sram_peak().bytes == 604);  // paper never throws
}

// ---- workers on threads

TEST_CASE("threads merge to the same ledger and the same values", "[memory]") {
  const Index heads = 13;
  const auto run = [&](int threads) {
    const auto X = matrix("X", 7, 3, Format::fp32, Role::input, heads),
               Y = matrix("Y", 7, 3, Format::fp32, Role::output, heads);
    Machine<float> machine({.threads = threads});
    machine.parallel({1, heads, heads}, [&](W& w) {
      for (Range rows : tiles(7, 1 + w.head % 4)) {  // uneven: another peak for each head
        Tile x = w.load(X, rows), held = w.zeros("held", 1 + w.head % 5, 4);
        x = x.array().exp();
        w.store(Y, rows, x);
      }
    });
    return std::pair(machine.ledger(), std::vector<float>(Y.host().begin(), Y.host().end()));
  };
  const auto [one, values] = run(1);
  for (const int threads : {2, 3, 8, 64}) {
    const auto [many, same] = run(threads);
    REQUIRE(many.lines().size() == one.lines().size());
    for (std::size_t n = 0; n < one.lines().size(); ++n) {
      CHECK(many.lines()[n].line == one.lines()[n].line);
      CHECK(many.lines()[n].elements == one.lines()[n].elements);
    }
    CHECK(many.sram() == one.sram());
    CHECK(many.flops() == one.flops());
    CHECK(many.sram_peak().bytes == one.sram_peak().bytes);
    CHECK(many.sram_peak().worker == one.sram_peak().worker);
    CHECK(names(many.sram_peak().holders) == names(one.sram_peak().holders));
    CHECK(same == values);
  }
}

TEST_CASE("accumulations are applied in the workers' order", "[memory]") {
  const Index heads = 64;
  const auto sums = [&](Format format, int threads) {
    const HbmMatrix<float> G({"G", format, Role::output, 1, 1, 2, 2});
    std::ranges::fill(G.host(), 0.0f);
    Machine<float> machine({.threads = threads});
    machine.parallel({1, heads, 1}, [&](W& w) {
      Tile g = w.sram("g", 2, 2);
      const float term = w.head % 3 == 0 ? 1e8f : w.head % 3 == 1 ? 1.25f : -1e8f;  // any other order sums differently
      g.fill(format == Format::fp32 ? term : 1 + 0x1p-9f * static_cast<float>(w.head));
      w.accumulate(G, {0, 2}, g);
    });
    return std::vector<float>(G.host().begin(), G.host().end());
  };
  float in_order = 0, rounded_in_order = 0;
  for (Index h = 0; h < heads; ++h) {
    in_order += h % 3 == 0 ? 1e8f : h % 3 == 1 ? 1.25f : -1e8f;
    rounded_in_order = rounded(rounded_in_order + 1 + 0x1p-9f * static_cast<float>(h), Format::bf16);
  }
  for (int repeat = 0; repeat < 20; ++repeat) {
    CHECK(sums(Format::fp32, 4) == std::vector<float>(4, in_order));
    CHECK(sums(Format::bf16, 4) == std::vector<float>(4, rounded_in_order));
  }
  CHECK(sums(Format::fp32, 1) == std::vector<float>(4, in_order));
}

TEST_CASE("a worker's exception reaches the caller, the first worker's of several", "[memory]") {
  for (const int threads : {1, 4}) {
    Machine<float> machine({.threads = threads});
    std::string said;
    try {
      machine.parallel({1, 16, 16}, [](W& w) {
        const Tile held = w.sram("held", 4, 4);
        if (w.head == 3 || w.head == 4) throw std::runtime_error("worker " + std::to_string(w.head));
      });
    } catch (const std::runtime_error& error) {
      said = error.what();
    }
    CHECK(said == "worker 3");
    machine.parallel({}, [](W& w) { const Tile t = w.sram("t", 2, 2); });  // and the machine still runs
    CHECK(machine.ledger().sram_peak().bytes == 64);
  }
}

TEST_CASE("after an exception only the workers before it have accumulated", "[memory]") {
  const auto G = matrix("G", 1, 1);
  Machine<float> machine({.threads = 1});
  const auto body = [&](W& w) {
    w.accumulate(G, {0, 1}, w.zeros("g", 1, 1));
    if (w.head == 2) throw std::runtime_error("too late");
    Tile one = w.sram("g", 1, 1);
    one.fill(1);
    w.accumulate(G, {0, 1}, one);
  };
  CHECK_THROWS_AS(machine.parallel({1, 4, 1}, body), std::runtime_error);
  CHECK(G.host()[0] == 3);  // it was 1; two workers were done
}

// ---- objects of code that was compiled for this very processor

TEST_CASE("code compiled with -march=native and the library share objects", "[memory]") {
  static_assert(EIGEN_MAX_ALIGN_BYTES == 64);
  for (const Index n : {1, 7, 16, 33}) {
    const RowMajor<double> A = RowMajor<double>::Constant(n, 5, 2), B = RowMajor<double>::Constant(5, n, 3);
    for (int repeat = 0; repeat < 8; ++repeat) {  // several, so that some allocation is not aligned by luck
      const RowMajor<double> C = march_native::product(A, B);
      CHECK(C(n - 1, n - 1) == 30);
      CHECK(reinterpret_cast<std::uintptr_t>(C.data()) % 64 == 0);
    }
  }
  ledger_of([](W& w) {
    Tile A = w.sram("A", 5, 17), B = w.sram("B", 3, 17), S = w.sram("S", 5, 3);
    Column sums = w.sram("sums", 5);
    A.fill(1);
    B.fill(2);
    march_native::scores_and_sums(A, B, S, sums);
    CHECK((S(4, 2) == 68 && sums(4) == 204));
  });
  const auto Q = matrix("Q", 11, 3), O = matrix("O", 11, 3);
  Machine<float> machine;
  march_native::add_one(Q, O, 4, machine);
  for (Index n = 0; n < 33; ++n) CHECK(O.host()[n] == Q.host()[n] + 1);
  CHECK(machine.ledger().elements() == 66);
}

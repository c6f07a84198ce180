// The forward passes under one strict SRAM: what is compared is held to M, in the largest blocks that fit, and counted.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "app/equal_memory.hpp"
#include "tests/catch.hpp"

using namespace flash;
using namespace flash::app;

namespace {

/// Its place in contenders(), or one beyond them.
std::size_t at(std::string_view name) {
  const auto& all = contenders();
  const auto found = std::ranges::find(all, name, &Contender::name);
  return static_cast<std::size_t>(found - all.begin());
}

const std::size_t ideal = at("01 materialized, ideal"), fa1 = at("03 K, V stay"),
                  fa2 = at("05a Q, O stay, roles swapped"), capped = at("05a Q, O stay, Algorithm 1's blocks"),
                  fa1_alone = at("03 K, V stay, all of M for them"), fa2_alone = at("05a Q, O stay, all of M for them");

Index sram_bytes(const Contender& c, const MemoryProblem& p, Blocks blocks) {
  return find_stage(c.stage).forward.sram_bytes({blocks.Br, blocks.Bc, p.d, p.d, 4, 4, 0, 0});
}

/// Elements that go by while K and V stay, or Q and O, and those that move once.
Index fa1_count(const MemoryProblem& p, Index Bc) {
  Index count = p.N * (3 * p.d + 2);
  for (Index j = 0; j < p.N; j += Bc) count += p.N * (3 * p.d + 4);
  return count;
}

Index fa2_count(const MemoryProblem& p, Index Br) {
  Index count = p.N * (2 * p.d + 1);
  for (Index i = 0; i < p.N; i += Br) count += p.N * 2 * p.d;
  return count;
}

}  // namespace

TEST_CASE("passes compared are held to M, in the largest blocks that fit", "[theory]") {
  for (const MemoryProblem p : {MemoryProblem{}, MemoryProblem{512, 32, 4096}, MemoryProblem{300, 20, 9001}}) {
    for (const Contender& c : contenders()) {
      const Pass pass = count_within(p, c);
      INFO(c.name << " N " << p.N << " d " << p.d << " M " << p.M);
      if (c.stage == "01") continue;
      const auto [Br, Bc] = pass.blocks.value();
      CHECK(pass.ledger.sram_peak().bytes <= 4 * p.M);
      CHECK(sram_bytes(c, p, {Br, Bc}) <= 4 * p.M);
      const Blocks more = Br == Bc  ? Blocks{Br + 1, Bc + 1}  // a square smaller than d grows both ways
                          : Br > Bc ? Blocks{Br + 1, Bc}
                                    : Blocks{Br, Bc + 1};
      CHECK(sram_bytes(c, p, more) > 4 * p.M);
    }
  }
}

TEST_CASE("loop order and shape of blocks are told apart by counts", "[theory][io_exact]") {
  const MemoryProblem p;
  const EqualMemory found = equal_memory(p);
  const auto count = [&](std::size_t n) { return found.passes.at(n).ledger.elements(); };
  const auto blocks = [&](std::size_t n) { return found.passes.at(n).blocks.value(); };
  CHECK(count(ideal) == 4 * p.N * p.N + 4 * p.N * p.d);
  for (const std::size_t n : {fa1, fa1_alone}) CHECK(count(n) == fa1_count(p, blocks(n).Bc));
  for (const std::size_t n : {fa2, capped, fa2_alone}) CHECK(count(n) == fa2_count(p, blocks(n).Br));
  CHECK(blocks(fa1).Br == p.d);
  CHECK(blocks(capped).Br == p.d);
  CHECK(blocks(fa2).Bc == p.d);
  CHECK(blocks(fa1_alone).Br == 1);
  CHECK(blocks(fa2_alone).Bc == 1);

  const auto over = [&](std::size_t a, std::size_t b) {
    return static_cast<double>(count(a)) / static_cast<double>(count(b));
  };
  CHECK(found.order == over(fa1, fa2));
  CHECK(found.shape == over(capped, fa2));
  CHECK(found.all_of_M[0] == over(fa1, fa1_alone));
  CHECK(found.all_of_M[1] == over(fa2, fa2_alone));
  CHECK(!(std::abs(found.order - 1.5) > 0.05));
  for (const double two : {found.shape, found.all_of_M[0], found.all_of_M[1]}) CHECK(!(std::abs(two - 2) > 0.2));
}

TEST_CASE("Algorithm 1's blocks keep FA2's order from gaining by M", "[theory]") {
  const MemoryProblem small{2048, 32, 8 * 32 * 32}, large{2048, 32, 32 * 32 * 32};
  const auto count = [](const MemoryProblem& p, std::size_t n) {
    return count_within(p, contenders().at(n)).ledger.elements();
  };
  CHECK(count(large, capped) == count(small, capped));
  CHECK(3 * count(large, fa2) < count(small, fa2));
}

TEST_CASE("equal memory as text and JSON", "[theory]") {
  const EqualMemory found = equal_memory();
  const std::string text = to_text(found);
  const std::vector<std::string> said{"8d² elements", fmt::format("The order of the loops gives {:.2f}", found.order),
                                      fmt::format("The shape of the blocks gives {:.2f}", found.shape),
                                      "2Nd + N + 2Tr·Nd"};
  for (const std::string& words : said) {
    INFO(words);
    CHECK(text.find(words) != std::string::npos);
  }
  const auto json = to_json(found);
  CHECK(json.at("passes").size() == contenders().size());
  CHECK(json.at("passes").at(fa2).at("tiles").at("bc") == found.problem.d);
  CHECK(json.at("order") == found.order);
}

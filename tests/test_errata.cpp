// The errata are right: what each calls right is what a stage's run, the ledger or the oracle gives, and what the
// statement leads to is not.
#include <cmath>

#include "docs/site/errata.hpp"
#include "stages/common/run.hpp"
#include "tests/catch.hpp"

using flash::site::Erratum;

TEST_CASE("each erratum's right number is what the stages give, and its wrong one is not") {
  const std::vector<Erratum> all = flash::site::errata();
  CHECK(all.size() >= 13);
  for (const Erratum& e : all) {
    INFO(e.statement << ": " << e.wrong << " and " << e.right << ", reference " << e.reference);
    CHECK(std::abs(e.right - e.reference) <= 1e-12 * std::abs(e.reference));
    CHECK(!(std::abs(e.wrong - e.reference) <= 0.05 * std::abs(e.reference)));
    CHECK(!e.statement.empty());
    CHECK(!e.source.empty());
    CHECK(!e.holds.empty());
    CHECK(!e.shown_by.empty());
  }
}

TEST_CASE("warps that split the keys hand on what the erratum says") {
  using namespace flash;
  RunConfig config;
  config.machine.count_only = true;
  Inputs in;
  in.shape = {1, 1, 1, 512, 512, 64, 64};
  Options options;
  options.br = options.bc = 64;
  options.warps = Warps::split_k;
  const sim::SramTraffic handed_on = run(find_stage("05b"), in, options, config).forward.ledger.exchange();
  int found = 0;
  for (const Erratum& e : flash::site::errata()) {
    if (e.statement.find("across warps") == std::string::npos) continue;
    ++found;
    CHECK(e.wrong == static_cast<double>(handed_on.read + handed_on.write));
    CHECK(e.right == 0);
  }
  CHECK(found == 1);
}

TEST_CASE("the inverted rescaling factors give 4/3 and 9/4 instead of 1/4") {
  for (const Erratum& e : flash::site::errata()) {
    if (e.statement.find("diag(l/l′)⁻¹") != std::string::npos) CHECK(std::abs(e.wrong - 4.0 / 3) < 1e-12);
    if (e.statement.find("diag(e^(m − m′))⁻¹") != std::string::npos) CHECK(std::abs(e.wrong - 9.0 / 4) < 1e-12);
  }
}

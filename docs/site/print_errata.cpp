// Prints the errata as JSON, for the site.
#include <fmt/format.h>

#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>

#include "app/output.hpp"
#include "docs/site/errata.hpp"

int main() {
  using namespace flash;
  const auto number = [](double x) { return x >= 1000 ? app::grouped(std::llround(x)) : fmt::format("{:.6g}", x); };
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const site::Erratum& e : site::errata())
    all.push_back({{"statement", e.statement},
                   {"source", e.source},
                   {"holds", e.holds},
                   {"shown_by", e.shown_by},
                   {"wrong", number(e.wrong)},
                   {"right", number(e.right)}});
  std::cout << all.dump(1) << "\n";
}

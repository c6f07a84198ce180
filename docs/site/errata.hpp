// Statements of papers and of popular summaries that do not hold, each with the number that it leads to and the right
// one, both computed here. The site prints them, tests/test_errata.cpp holds them to what the stages and the oracle
// give.
#pragma once

#include <string>
#include <vector>

namespace flash::site {

struct Erratum {
  std::string statement;  ///< as one finds it
  std::string source;     ///< where
  std::string holds;      ///< what is true instead
  std::string shown_by;   ///< what the two numbers are
  double wrong;           ///< what the statement leads to
  double right;
  double reference;  ///< `right` once more, from a stage's run, the ledger or the oracle
};

/// All of them. @throws Refused where a stage refuses its run.
std::vector<Erratum> errata();

}  // namespace flash::site

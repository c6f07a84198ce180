// Other people's attention kernels, timed by cuda/bench/peers.py, which runs beside this program.
#pragma once

#include "app/bench.hpp"
#include "app/conversation.hpp"

namespace flash::app {

class Peers {
 public:
  Peers();

  /// All of them, checked on a small problem of the cell's kind; those that can't be timed say why.
  std::vector<PeerRow> rows(const BenchProblem& problem);

  /// Seconds of so many launches. What goes wrong becomes the row's `why_not`, and the time is 0.
  double run(PeerRow& row, const BenchProblem& problem, int launches);

 private:
  std::unique_ptr<Conversation> child_;
};

}  // namespace flash::app

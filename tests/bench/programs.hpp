// One head in fp32, N = Nq = Nk, by a stage's own source. Included twice: as flash, against sim/memory, and as
// flash_uncounted, against plain matrices.
#include <vector>

#include "stages/01_materialized/forward.hpp"
#include "stages/03_online_softmax/forward.hpp"
#include "stages/04_recomputed_backward/backward.hpp"
#include "stages/04_recomputed_backward/forward.hpp"
#include "stages/05_fa2_partitioning/a_loop_swap.hpp"
#include "stages/05_fa2_partitioning/a_loop_swap_backward.hpp"
#include "stages/05_fa2_partitioning/b_split_q_warps.hpp"
#include "stages/05_fa2_partitioning/e_split_kv.hpp"

namespace flash {

enum class Which {
  materialized,
  online_softmax,
  recomputed_forward,
  recomputed_backward,
  loop_swap,
  loop_swap_backward,
  split_q_warps,
  split_kv,
};

/// A problem in HBM, to be run again and again.
class Bench {
 public:
  Bench(Which which, Index N, Index d, Index Br, Index Bc) : which_(which), problem_(inputs(N, d)) {
    options_.br = Br, options_.bc = Bc;
    if (which == Which::split_kv) options_.splits = 4;
    sim::Machine<float> machine;
    if (is_backward()) recomputed_backward::forward(problem_, options_, machine);  // O and LSE
    run();                                                                         // takes the memory
  }

  void run() {
    sim::Machine<float> machine({.threads = 1});  // whose time is taken
    namespace fa2 = fa2_partitioning;
    switch (which_) {
      case Which::materialized: return materialized::forward(problem_, options_, machine);
      case Which::online_softmax: return online_softmax::forward(problem_, options_, machine);
      case Which::recomputed_forward: return recomputed_backward::forward(problem_, options_, machine);
      case Which::recomputed_backward: return recomputed_backward::backward(problem_, options_, machine);
      case Which::loop_swap: return fa2::a_loop_swap::forward(problem_, options_, machine);
      case Which::loop_swap_backward: return fa2::a_loop_swap::backward(problem_, options_, machine);
      case Which::split_q_warps: return fa2::b_split_q_warps::forward(problem_, options_, machine);
      case Which::split_kv: return fa2::e_split_kv::forward(problem_, options_, machine);
    }
  }

  /// What was computed, as one number.
  double sum() const {
    double sum = 0;
    for (const float x : (is_backward() ? problem_.dK : problem_.O).host()) sum += x * x;
    return sum;
  }

 private:
  bool is_backward() const { return which_ == Which::recomputed_backward || which_ == Which::loop_swap_backward; }

  static Inputs inputs(Index N, Index d) {
    Inputs in;
    in.shape = {1, 1, 1, N, N, d, d};
    std::uint32_t state = 1;
    for (std::vector<double>* x : {&in.q, &in.k, &in.v, &in.dout})
      for (Index n = 0; n < N * d; ++n) x->push_back((state = state * 1664525u + 1013904223u) * 0x1p-31 - 1);
    return in;
  }

  Which which_;
  Problem<float> problem_;
  Options options_;
};

}  // namespace flash

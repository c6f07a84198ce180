#include "sim/theory/nests.hpp"

#include <algorithm>

#include "sim/theory/blocks.hpp"

namespace flash::theory {

namespace {

/// Stands for HBM: each load and store moves a rows×cols tile of so many tensors.
struct Counter {
  Index elements = 0;
  void load(Index tensors, Index rows, Index cols) { elements += tensors * rows * cols; }
  void store(Index tensors, Index rows, Index cols) { elements += tensors * rows * cols; }
};

}  // namespace

Index walk_algorithm_4(Index N, Index d, Index M) {
  const auto [Br, Bc] = paper_blocks(M, d);
  Counter hbm;
  hbm.store(3, N, d);  // dQ, dK, dV = 0
  for (Index j = 0; j < N; j += Bc) {
    const Index cols = std::min(Bc, N - j);
    hbm.load(2, cols, d);  // Kj, Vj
    for (Index i = 0; i < N; i += Br) {
      const Index rows = std::min(Br, N - i);
      hbm.load(4, rows, d);   // Qi, Oi, dOi, dQi
      hbm.load(2, rows, 1);   // li, mi
      hbm.store(1, rows, d);  // dQi
    }
    hbm.store(2, cols, d);  // dKj, dVj
  }
  return hbm.elements;
}

}  // namespace flash::theory

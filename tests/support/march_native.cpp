#include "tests/support/march_native.hpp"

namespace flash::march_native {

sim::RowMajor<double> product(const sim::RowMajor<double>& A, const sim::RowMajor<double>& B) { return A * B; }

void scores_and_sums(const sim::Tile<float>& A, const sim::Tile<float>& B, sim::Tile<float>& S,
                     sim::Column<float>& sums) {
  S = 2.0f * A * B.transpose();
  sums = S.rowwise().sum();
}

void add_one(const sim::HbmMatrix<float>& Q, const sim::HbmMatrix<float>& O, Index block,
             sim::Machine<float>& machine) {
  machine.parallel({}, [&](sim::Worker<float>& w) {
    for (sim::Range rows : sim::tiles(Q.info().rows, block)) {
      sim::Tile<float> tile = w.load(Q, rows);
      tile = (tile.array() + 1).matrix();
      w.store(O, rows, tile);
    }
  });
}

}  // namespace flash::march_native

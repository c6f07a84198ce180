// What a notebook includes first: the product's headers, its compiled part as one library, and what shows results.
//
//   show(p.Q, picture(S, "scores"))    matrices as drawings, side by side
//   Bench<float> bench(…)              a worker that stays open from cell to cell; bench.moves(), bench.ledger()
//   print_by_line(ledger)              what each source line moved
//   Stepper vgpu({"03/forward"}, in)   a kernel on the virtual GPU, to be stepped
//   %%kernel NAME                      compiles the cell as a kernel
#pragma once

#ifdef __CLING__
#pragma cling add_library_path("$FLASH_BUILD_DIR")
#pragma cling add_library_path("../build/cuda")
#pragma cling add_library_path("../build/cpu")
#pragma cling load("libflash_notebooks.so")
#endif

#include <functional>
#include <iostream>

#include "notebooks-cling/kernel/cling_kernel/nb.hpp"
#include "notebooks-cling/library/kernels.hpp"
#include "notebooks-cling/library/ledgers.hpp"
#include "notebooks-cling/library/pictures.hpp"
#include "sim/theory/closed_forms.hpp"
#include "stages/common/draw.hpp"
#include "stages/common/oracle.hpp"
#include "stages/common/run.hpp"
#include "stages/common/stage.hpp"

namespace flash::notebook {

/// Draws side by side whatever picture() takes: matrices, tiles, tensors.
template <class... Matrices>
void show(const Matrices&... matrices) {
  nb::svg(trace::matrices_svg({picture(matrices)...}));
}
inline void show(const trace::Plot& plot) { nb::svg(trace::plot_svg(plot)); }
inline void show(const trace::Timeline& timeline) { nb::svg(trace::timeline_svg(timeline)); }

inline std::string line_of_cell(const std::string& file, Index line) { return nb::line_of(file, line); }

inline void print(const std::string& text) { std::cout << text << std::flush; }
inline void print_by_tensor(const sim::Ledger& ledger) { print(by_tensor(ledger)); }
inline void print_by_line(const sim::Ledger& ledger) { print(by_line(ledger, line_of_cell)); }

/// A machine whose only worker stays open from cell to cell: tiles can be loaded one cell at a time. Its counts are
/// what it moved so far.
template <class Real>
class Bench {
 public:
  explicit Bench(const Problem<Real>& p, Index sram_bytes = 64 * 1024, sim::Budget budget = sim::Budget::paper)
      : observer_([this](const sim::Event& e) { moves_.add(e); }),
        state_{sim::Sram(sram_bytes, budget, true), {}, false, true, &observer_},
        worker(state_, sums_, p.grid(), 0) {}
  Bench(const Bench&) = delete;

  sim::Ledger ledger() const {
    sim::Tally tally = state_.tally;
    tally.peak = state_.sram.peak;
    sim::Ledger ledger;
    ledger.add(tally);
    return ledger;
  }
  /// Prints what moved since the last call.
  void moves() { print(moves_.text(line_of_cell)); }

 private:
  Moves moves_;
  sim::Observer observer_;
  sim::WorkerState state_;
  std::vector<sim::PendingSum<Real>> sums_;

 public:
  Worker<Real> worker;
};

}  // namespace flash::notebook

#ifdef __CLING__
namespace cling {
/// A tile, a column or a matrix as a cell's last value: its numbers.
template <class Derived>
std::string numbers_of(const Eigen::DenseBase<Derived>& matrix) {
  std::ostringstream text;
  text << '\n' << matrix.derived().format(Eigen::IOFormat(4));
  return text.str();
}
template <class Real>
std::string printValue(const flash::Tile<Real>* tile) {
  return numbers_of(*tile);
}
template <class Real>
std::string printValue(const flash::Column<Real>* column) {
  return numbers_of(*column);
}
template <class Real, int Rows, int Cols, int Order, int MaxRows, int MaxCols>
std::string printValue(const Eigen::Matrix<Real, Rows, Cols, Order, MaxRows, MaxCols>* matrix) {
  return numbers_of(*matrix);
}
}  // namespace cling
#endif

/// `%%kernel NAME`: the cell is a kernel's file. `%%kernel NAME = 03/forward`: lines "- old" and "+ new" edit that one.
inline void kernel_cell(const std::string& words, const std::string& text, const std::string&) {
  flash::notebook::print(flash::notebook::compile_kernel(words, text));
}

/// Puts a stage's kernel into a new cell below, to be edited and compiled as `name`.
inline void edit_kernel(const std::string& kernel, const std::string& name) {
  nb::next_cell(flash::notebook::cell_of_kernel(kernel, name));
}

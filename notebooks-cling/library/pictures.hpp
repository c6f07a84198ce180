// What a run holds as drawings: tiles, columns and tensors become trace::Matrix, to be changed and shown.
#pragma once

#include "sim/memory/tile.hpp"
#include "sim/trace/svg.hpp"
#include "stages/common/inputs.hpp"

namespace flash::notebook {

std::string against_oracle(const sim::TensorInfo& info, const std::vector<double>& values,
                           const std::vector<double>& oracle);

/// A tile or column in SRAM, under its own name if no title is given. Its rows and columns are those of its matrix.
template <class Plain>
trace::Matrix picture(const sim::SramArray<Plain>& array, const std::string& title = "") {
  trace::Matrix m{.title = title.empty() ? array.name() : title,
                  .rows = array.rows(),
                  .cols = array.cols(),
                  .first_row = array.row_range().begin,
                  .first_col = array.col_range().begin};
  for (Index i = 0; i < m.rows; ++i)
    for (Index j = 0; j < m.cols; ++j) m.values.push_back(array(i, j));
  return m;
}

/// Any Eigen matrix.
template <class Expression>
trace::Matrix picture(const Eigen::DenseBase<Expression>& e, const std::string& title = "") {
  trace::Matrix m{.title = title, .rows = e.rows(), .cols = e.cols()};
  for (Index i = 0; i < m.rows; ++i)
    for (Index j = 0; j < m.cols; ++j) m.values.push_back(static_cast<double>(e.derived()(i, j)));
  return m;
}

/// @throws Refused for a head that the tensor hasn't.
void require_head(const sim::TensorInfo& info, Index head);

/// One head of a tensor in HBM, of the first batch. What nobody wrote yet is unknown.
template <class Real>
trace::Matrix picture(const sim::HbmTensor<Real>& tensor, Index head = 0, const std::string& title = "") {
  const sim::TensorInfo& info = tensor.info();
  require_head(info, head);
  trace::Matrix m{.title = title.empty() ? info.name : title, .rows = info.rows, .cols = info.cols};
  for (const Real x : tensor.host().subspan(head * info.rows * info.cols, info.rows * info.cols)) {
    m.values.push_back(x);
    m.unknown.push_back(x != x);
  }
  return m;
}

inline const trace::Matrix& picture(const trace::Matrix& matrix) { return matrix; }

/// "O is the fp64 oracle's", within 1e-5 of the largest element, or the first element that is not.
template <class Real>
std::string against_oracle(const sim::HbmTensor<Real>& tensor, const std::vector<double>& oracle) {
  return against_oracle(tensor.info(), {tensor.host().begin(), tensor.host().end()}, oracle);
}

/// Which keys a query sees: seen cells are filled, the others masked; with tiles of Br × Bc. Its title is the rule.
trace::Matrix who_sees_whom(const Inputs& inputs, const Options& options, Index Br = 0, Index Bc = 0);

/// The same matrix with lines between tiles.
trace::Matrix in_tiles(trace::Matrix matrix, Index Br, Index Bc);

/// The same matrix with an outline around a part.
trace::Matrix outlined(trace::Matrix matrix, sim::Range rows, sim::Range cols, const std::string& words,
                       trace::Outline::Tone tone = trace::Outline::Tone::plain);

/// Which lane's register holds which element of an operand of mma.m16n8k8: "A" (16 × 8), "B" (8 × 8) or "C" (16 × 8).
/// A cell reads lane.element. @throws Refused for other names.
trace::Matrix fragment(const std::string& operand);

/// Rows of 16 bytes at these byte offsets, as ldmatrix reads eight at once, against shared memory's 32 banks of 4
/// bytes. Rows that want one bank wait for each other: it takes as many turns (wavefronts) as the bank most wanted has
/// rows.
struct Banks {
  trace::Matrix matrix;
  int wavefronts = 0;
};
Banks banks(const std::vector<Index>& offsets);

}  // namespace flash::notebook

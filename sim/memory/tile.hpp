// Tiles: what a worker holds in SRAM. A tile reads like an Eigen matrix and can only be written by counted statements:
// `S = scale * Q * K.transpose()`, `O += P * V`, `P = (S.colwise() - m).array().exp()`.
#pragma once

#include <functional>
#include <limits>
#include <source_location>
#include <utility>

#include "sim/memory/cost.hpp"
#include "sim/memory/range.hpp"
#include "sim/memory/sram.hpp"

namespace flash::sim {

/// The values behind an event, for viewers.
struct Values {
  const void* data = nullptr;  // row-major; null in count-only mode
  Index rows = 0, cols = 0;
  bool is_double = false;
  double operator()(Index i, Index j) const {
    const Index at = i * cols + j;
    return is_double ? static_cast<const double*>(data)[at] : static_cast<const float*>(data)[at];
  }
};

enum class EventKind { load, store, accumulate, compute };

/// One thing a worker did, with tile coordinates. `where` is empty for `compute`.
struct Event {
  EventKind kind;
  const char* name;  // of the tensor, or of the tile computed
  Index worker = 0, batch = 0, head = 0;
  Range rows, cols;  // of the tensor; the tile's own for `compute`
  std::source_location where;
  Values values;
};

using Observer = std::function<void(const Event&)>;

/// One worker's SRAM and counters.
struct WorkerState {
  Sram sram;
  Tally tally;
  bool count_only = false, poison = false;
  const Observer* observer = nullptr;
  Index worker = 0, batch = 0, head = 0;
};

template <class Real>
using RowMajor = Eigen::Matrix<Real, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// Common to Tile and Column. Read-only to Eigen, so that no element changes uncounted.
template <class Plain>
class SramArray : public Eigen::Map<const Plain, Eigen::AlignedMax> {
 public:
  using Real = typename Plain::Scalar;
  using View = Eigen::Map<const Plain, Eigen::AlignedMax>;

  SramArray(WorkerState& state, const char* name, Index rows, Index cols, Format format)
      : SramArray(state, state.sram.take(name, rows, cols, format), name, rows, cols) {
    if (state.poison && !state.count_only) values().setConstant(std::numeric_limits<Real>::quiet_NaN());
  }
  SramArray(SramArray&& other) noexcept
      : View(other), state_(other.state_), slot_(std::exchange(other.slot_, -1)), name_(other.name_) {}
  struct Alias {};
  SramArray(SramArray& other, Alias) : View(other), state_(other.state_), slot_(-1), name_(other.name_) {}
  ~SramArray() {
    if (slot_ >= 0) state_->sram.give_back(slot_);
  }

  const char* name() const { return name_; }

  SramArray& operator=(const SramArray& other) { return assign(static_cast<const View&>(other)); }
  template <class Expression>
  SramArray& operator=(const Eigen::DenseBase<Expression>& e) {
    return assign(e.derived());
  }
  template <class Expression>
  SramArray& operator+=(const Eigen::DenseBase<Expression>& e) {
    if constexpr (is_matrix_product<Expression>) {
      count_product(e.derived());
      if (!state_->count_only) values().noalias() += e.derived();
      computed();
      return *this;
    } else {
      return assign(*this + e.derived().matrix());
    }
  }

  /// Each element becomes f(row, column, element): one pass. Rows and columns are the tile's own.
  template <class Function>
  SramArray& transform(Function f) {
    count_pass({.reads = this->size(), .others = this->size()});
    if (!state_->count_only) {
      auto all = values();
      for (Index i = 0; i < this->rows(); ++i)
        for (Index j = 0; j < this->cols(); ++j) all(i, j) = f(i, j, all(i, j));
    }
    computed();
    return *this;
  }

  SramArray& fill(Real value) {
    count_pass({});
    if (!state_->count_only) values().setConstant(value);
    return *this;
  }

  /// Rounds the tile's values to `format`, as on the way to the matrix unit: no pass of its own.
  SramArray& round(Format format) {
    if (!state_->count_only && bytes_per_element(format) < static_cast<Index>(sizeof(Real)))
      values() = this->unaryExpr([format](Real x) { return rounded(x, format); });
    return *this;
  }

 private:
  template <class>
  friend class Worker;  // its loads fill tiles from HBM
  Eigen::Map<Plain, Eigen::AlignedMax> values() {
    return {const_cast<Real*>(this->data()), this->rows(), this->cols()};
  }

  SramArray(WorkerState& state, int slot, const char* name, Index rows, Index cols)
      : View(static_cast<Real*>(state.sram.memory(slot, rows * cols * sizeof(Real))), rows, cols),
        state_(&state),
        slot_(slot),
        name_(name) {}

  template <class Expression>
  SramArray& assign(const Expression& e) {
    eigen_assert(e.rows() == this->rows() && e.cols() == this->cols());
    if constexpr (is_matrix_product<Expression>) {
      count_product(e);
      if (!state_->count_only) values().noalias() = e;
    } else {
      count_pass(cost(e));
      if (!state_->count_only) evaluate(e);
    }
    computed();
    return *this;
  }

  template <class Expression>
  void evaluate(const Expression& e) {
    if constexpr (is_diagonal_product<Expression>)  // the diagonal once, not for every element
      values().noalias() = e.lhs().diagonal().eval().asDiagonal() * e.rhs();
    else
      values() = e.matrix();
  }

  /// A product reads each operand once and reads and writes its accumulator once; 2mnk operations.
  template <class Product>
  void count_product(const Product& e) {
    Tally& tally = state_->tally;
    tally.sram.read += e.lhs().size() + e.rhs().size() + this->size();
    tally.sram.write += this->size();
    tally.flops.matmul += 2 * this->size() * e.lhs().cols();
  }

  void count_pass(const Cost& cost) {
    Tally& tally = state_->tally;
    tally.sram.read += cost.reads;
    tally.sram.write += this->size();
    tally.flops.exp += cost.exps;
    tally.flops.other += cost.others;
  }

  void computed() {
    if (state_->observer) [[unlikely]]
      (*state_->observer)({EventKind::compute, name_, state_->worker, state_->batch, state_->head,
                           {0, this->rows()}, {0, this->cols()}, {},
                           {this->data(), this->rows(), this->cols(), sizeof(Real) == sizeof(double)}});
  }

  WorkerState* state_;
  int slot_;

 protected:
  const char* name_;
};

/// A matrix [rows, cols] in SRAM, row-major.
template <class Real>
class Tile : public SramArray<RowMajor<Real>> {
 public:
  using Base = SramArray<RowMajor<Real>>;
  using Base::Base;
  using Base::operator=;
  Tile(Tile&&) noexcept = default;
  Tile& operator=(const Tile& other) { return Base::operator=(other), *this; }
  Tile alias() { return Tile(*this, typename Base::Alias{}); }  ///< a second handle of the same memory
  Tile& as(const char* name) { return Base::name_ = name, *this; }  ///< the same memory under a new name: it now holds something else
};

/// One number for each row of a tile [rows] in SRAM: a maximum, a sum, an LSE.
template <class Real>
class Column : public SramArray<Eigen::Matrix<Real, Eigen::Dynamic, 1>> {
 public:
  using Base = SramArray<Eigen::Matrix<Real, Eigen::Dynamic, 1>>;
  using Base::Base;
  using Base::operator=;
  Column(Column&&) noexcept = default;
  Column& operator=(const Column& other) { return Base::operator=(other), *this; }
};

}  // namespace flash::sim

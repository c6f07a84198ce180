// Tiles: what a worker holds in SRAM. A tile reads like an Eigen matrix and can only be written by counted statements:
// `S = scale * Q * K.transpose()`, `O += P * V`, `P = (S.colwise() - m).array().exp()`.
#pragma once

#include <limits>
#include <utility>

#include "sim/memory/cost.hpp"
#include "sim/memory/event.hpp"

namespace flash::sim {

template <class Real>
using RowMajor = Eigen::Matrix<Real, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// The right side of `tile = …` or `tile += …` with its source line, which an operator has no argument for.
template <class Array, class Action>
class Statement {
 public:
  template <class Expression>
  Statement(const Eigen::DenseBase<Expression>& e, Location where = Location::current())
      : where(where), expression_(&e.derived()), run_([](Array& array, const void* expression) {
          Action()(array, *static_cast<const Expression*>(expression));
        }) {}
  void run(Array& array) const { run_(array, expression_); }

  const Location where;

 private:
  const void* expression_;
  void (*run_)(Array&, const void*);
};

/// Common to Tile and Column. Read-only to Eigen, so that no element changes uncounted.
template <class Plain>
class SramArray : public Eigen::Map<const Plain, Eigen::AlignedMax> {
 public:
  using Real = typename Plain::Scalar;
  using View = Eigen::Map<const Plain, Eigen::AlignedMax>;

  SramArray(WorkerState& state, const char* name, Range rows, Range cols, Format format, Location where)
      : SramArray(state, state.sram.take(name, rows.size(), cols.size(), format), name, rows, cols, format) {
    if (state.poison && !state.count_only) values().setConstant(std::numeric_limits<Real>::quiet_NaN());
    observe(EventKind::take, where);
  }
  SramArray(SramArray&& other) noexcept : SramArray(other, std::exchange(other.slot_, -1)) {}
  struct Alias {};
  SramArray(SramArray& other, Alias) : SramArray(other, -1) {}
  ~SramArray() {
    if (slot_ < 0) return;
    observe(EventKind::give_back, {});
    state_->sram.give_back(slot_);
  }

  const char* name() const { return name_; }
  Range row_range() const { return rows_; }  ///< where it lies in its matrix
  Range col_range() const { return cols_; }

  /// Rows of it, by where they lie in their matrix.
  auto at(Range rows) const { return this->middleRows(rows.begin - rows_.begin, rows.size()); }

  SramArray& operator=(const SramArray&) requires false;  // it, too, is a Statement
  SramArray& operator=(Statement<SramArray, struct Assign> statement) {
    statement.run(*this);
    observe(EventKind::compute, statement.where);
    return *this;
  }
  SramArray& operator+=(Statement<SramArray, struct Add> statement) {
    statement.run(*this);
    observe(EventKind::compute, statement.where);
    return *this;
  }

  /// Each element becomes f(row, column, element): one pass. Rows and columns are the tile's own.
  template <class Function>
  SramArray& transform(Function f, Location where = Location::current()) {
    count_pass({.reads = this->size(), .others = this->size()});
    if (!state_->count_only) {
      auto all = values();
      for (Index i = 0; i < this->rows(); ++i)
        for (Index j = 0; j < this->cols(); ++j) all(i, j) = f(i, j, all(i, j));
    }
    observe(EventKind::compute, where);
    return *this;
  }

  SramArray& fill(Real value, Location where = Location::current()) {
    count_pass({});
    if (!state_->count_only) values().setConstant(value);
    observe(EventKind::fill, where);
    return *this;
  }

  /// Rounds the tile's values to `format`, as on the way to the matrix unit: no pass of its own.
  SramArray& round(Format format, Location where = Location::current()) {
    if (bytes_per_element(format) >= static_cast<Index>(sizeof(Real))) return *this;
    if (!state_->count_only) values() = this->unaryExpr([format](Real x) { return rounded(x, format); });
    observe(EventKind::compute, where);
    return *this;
  }

 private:
  template <class>
  friend class Worker;  // its loads fill tiles from HBM
  friend struct Assign;
  friend struct Add;

  SramArray(WorkerState& state, int slot, const char* name, Range rows, Range cols, Format format)
      : View(static_cast<Real*>(state.sram.memory(slot, rows.size() * cols.size() * sizeof(Real))), rows.size(),
             cols.size()),
        state_(&state),
        slot_(slot),
        rows_(rows),
        cols_(cols),
        format_(format),
        name_(name) {}
  SramArray(const SramArray& other, int slot)
      : View(other),
        state_(other.state_),
        slot_(slot),
        rows_(other.rows_),
        cols_(other.cols_),
        format_(other.format_),
        name_(other.name_) {}

  Eigen::Map<Plain, Eigen::AlignedMax> values() {
    return {const_cast<Real*>(this->data()), this->rows(), this->cols()};
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

  void observe(EventKind kind, const Location& where) const {
    if (state_->observer) [[unlikely]]
      tell({.kind = kind, .name = name_, .rows = rows_, .cols = cols_, .where = where});
  }
  void observe(EventKind kind, const TensorInfo& tensor, Index first, Range rows, Range cols,
               const Location& where) const {
    if (state_->observer) [[unlikely]]
      tell({.kind = kind,
            .name = tensor.name.c_str(),
            .rows = rows,
            .cols = cols,
            .where = where,
            .tensor = &tensor,
            .first = first});
  }
  void tell(Event event) const {
    event.worker = state_->worker, event.batch = state_->batch, event.head = state_->head;
    event.values = {this->data(), this->rows(), this->cols(), sizeof(Real) == sizeof(double)};
    event.format = format_;
    event.tally = &state_->tally;
    event.held_bytes = state_->sram.held_bytes();
    (*state_->observer)(event);
  }

  WorkerState* state_;
  int slot_;  // -1: an alias
  Range rows_, cols_;
  Format format_;

 protected:
  const char* name_;
};

/// What a Statement does with its tile.
struct Assign {
  template <class Array, class Expression>
  void operator()(Array& array, const Expression& e) const {
    eigen_assert(e.rows() == array.rows() && e.cols() == array.cols());
    if constexpr (is_matrix_product<Expression>) {
      array.count_product(e);
      if (!array.state_->count_only) array.values().noalias() = e;
    } else {
      array.count_pass(cost(e));
      if (!array.state_->count_only) array.evaluate(e);
    }
  }
};
struct Add {
  template <class Array, class Expression>
  void operator()(Array& array, const Expression& e) const {
    if constexpr (is_matrix_product<Expression>) {
      array.count_product(e);
      if (!array.state_->count_only) array.values().noalias() += e;
    } else {
      Assign()(array, array + e.matrix());
    }
  }
};

/// A matrix [rows, cols] in SRAM, row-major.
template <class Real>
class Tile : public SramArray<RowMajor<Real>> {
 public:
  using Base = SramArray<RowMajor<Real>>;
  using Base::Base;
  using Base::operator=;
  Tile(Tile&&) noexcept = default;
  Tile& operator=(const Tile&) requires false;
  Tile alias() { return Tile(*this, typename Base::Alias{}); }  ///< a second handle of the same memory
  Tile& as(const char* name) {
    return Base::name_ = name, *this;
  }  ///< the same memory under a new name: it now holds something else
};

/// One number for each row of a tile [rows] in SRAM: a maximum, a sum, an LSE.
template <class Real>
class Column : public SramArray<Eigen::Matrix<Real, Eigen::Dynamic, 1>> {
 public:
  using Base = SramArray<Eigen::Matrix<Real, Eigen::Dynamic, 1>>;
  using Base::Base;
  using Base::operator=;
  Column(Column&&) noexcept = default;
  Column& operator=(const Column&) requires false;
};

}  // namespace flash::sim

// A stand-in for the counted hierarchy: plain matrices, the same copies, and nobody counts. A stage compiled against it
// is what the stage would cost without a ledger. Only what the stages use is here.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <source_location>
#include <span>
#include <string>
#include <vector>

#include "sim/memory/format.hpp"
#include "sim/memory/range.hpp"
#include "stages/common/rules.hpp"

namespace flash::sim {

using Location = std::source_location;  // nobody looks at it

enum class Role { input, output, extra };
enum class Budget { paper, strict };

struct TensorInfo {
  std::string name;
  Format format = Format::fp32;
  Role role = Role::input;
  Index batch = 0, heads = 0, rows = 0, cols = 0;
};

template <class Real>
class HbmTensor {
 public:
  HbmTensor() = default;
  explicit HbmTensor(TensorInfo info)
      : info_(std::make_shared<const TensorInfo>(std::move(info))), values_(std::make_shared<std::vector<Real>>()) {}
  const TensorInfo& info() const { return *info_; }
  bool empty() const { return !info_; }
  std::span<Real> host() const {
    if (values_->empty()) values_->resize(info_->batch * info_->heads * info_->rows * info_->cols);
    return *values_;
  }

 private:
  std::shared_ptr<const TensorInfo> info_;
  std::shared_ptr<std::vector<Real>> values_;
};

template <class Real>
class HbmMatrix : public HbmTensor<Real> {
  using HbmTensor<Real>::HbmTensor;
};
template <class Real>
class HbmVector : public HbmTensor<Real> {
  using HbmTensor<Real>::HbmTensor;
};

// ---- tiles

template <class T>
constexpr bool is_product = false;
template <class Left, class Right, int option>
constexpr bool is_product<Eigen::Product<Left, Right, option>> = true;
template <class X, class Right, int option>
constexpr bool is_product<Eigen::Product<Eigen::DiagonalWrapper<X>, Right, option>> = false;
template <class T>
constexpr bool is_diagonal = false;
template <class X, class Right, int option>
constexpr bool is_diagonal<Eigen::Product<Eigen::DiagonalWrapper<X>, Right, option>> = true;

/// An expression with its source line, `S = {expression, where}`.
template <class Array>
struct Statement {
  template <class Expression>
  Statement(const Eigen::DenseBase<Expression>& e, Location) : run([&e](Array& array) { array = e; }) {}
  std::function<void(Array&)> run;
};

/// A matrix that owns its memory; products are assigned without a temporary, as anyone who cares for speed would.
template <class Plain>
class Array : public Eigen::Map<Plain, Eigen::AlignedMax> {
 public:
  using Real = typename Plain::Scalar;
  using View = Eigen::Map<Plain, Eigen::AlignedMax>;

  Array(Axis rows, Index cols) : Array(allocate(rows.size() * cols), rows, cols) {}
  Array(Array&&) noexcept = default;
  Array& operator=(const Array& other) { return View::operator=(other), *this; }

  auto at(Range rows) const { return this->middleRows(rows.begin - first_row_, rows.size()); }

  template <class Expression>
  Array& operator=(const Eigen::DenseBase<Expression>& e) {
    if constexpr (is_product<Expression>)
      this->noalias() = e.derived();
    else if constexpr (is_diagonal<Expression>)
      this->noalias() = e.derived().lhs().diagonal().eval().asDiagonal() * e.derived().rhs();
    else
      View::operator=(e.derived().matrix());
    return *this;
  }
  Array& operator=(const Statement<Array>& statement) { return statement.run(*this), *this; }
  template <class Expression>
  Array& operator+=(const Eigen::DenseBase<Expression>& e) {
    if constexpr (is_product<Expression>)
      this->noalias() += e.derived();
    else
      View::operator+=(e.derived().matrix());
    return *this;
  }

  template <class Function>
  Array& transform(Function f, Location = {}) {
    for (Index i = 0; i < this->rows(); ++i)
      for (Index j = 0; j < this->cols(); ++j) (*this)(i, j) = f(i, j, (*this)(i, j));
    return *this;
  }
  Array& round(Format format, Location = {}) {
    if (bytes_per_element(format) < static_cast<Index>(sizeof(Real)))
      View::operator=(this->unaryExpr([format](Real x) { return rounded(x, format); }));
    return *this;
  }

 protected:
  struct Free {
    void operator()(Real* p) const { Eigen::internal::aligned_free(p); }
  };
  using Memory = std::unique_ptr<Real, Free>;
  Array(Memory memory, Axis rows, Index cols)
      : View(memory.get(), rows.size(), cols), memory_(std::move(memory)), first_row_(rows.begin) {}
  struct Alias {};
  Array(Array& other, Alias) : View(other), first_row_(other.first_row_) {}

 private:
  static Memory allocate(Index size) {
    return Memory(static_cast<Real*>(Eigen::internal::aligned_malloc(size * sizeof(Real))));  // as a matrix does
  }
  Memory memory_;    // null: an alias
  Index first_row_;  // in its matrix
};

template <class Real>
class Tile : public Array<Eigen::Matrix<Real, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>> {
 public:
  using Base = Array<Eigen::Matrix<Real, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>;
  using Base::Base;
  using Base::operator=;
  Tile(Tile&&) noexcept = default;
  Tile& operator=(const Tile& other) { return Base::operator=(other), *this; }
  Tile alias() { return Tile(*this, typename Base::Alias{}); }
  Tile& as(const char*) { return *this; }
};

template <class Real>
class Column : public Array<Eigen::Matrix<Real, Eigen::Dynamic, 1>> {
 public:
  using Base = Array<Eigen::Matrix<Real, Eigen::Dynamic, 1>>;
  using Base::Base;
  using Base::operator=;
  Column(Column&&) noexcept = default;
  Column& operator=(const Column& other) { return Base::operator=(other), *this; }
};

// ---- workers

struct Grid {
  Index batch = 1, heads = 1, kv_heads = 1, blocks = 1;
};

template <class Real>
class Worker {
 public:
  const Index batch, head, kv_head, block;

  Worker(const Grid& grid, Index id)
      : batch(id / (grid.blocks * grid.heads)),
        head(id / grid.blocks % grid.heads),
        kv_head(rules::kv_head(head, grid.heads, grid.kv_heads)),
        block(id % grid.blocks),
        grid_(grid) {}
  Worker(const Worker& kv, Index heads, Index head)
      : batch(kv.batch), head(head), kv_head(kv.head), block(kv.block), grid_(kv.grid_) {
    grid_.heads = heads;
  }

  Tile<Real> load(const HbmMatrix<Real>& tensor, Range rows, Range cols, Location = {}) {
    Tile<Real> tile(rows, cols.size());
    const Real* from = at(tensor, rows, cols);
    for (Index i = 0; i < rows.size(); ++i)
      std::copy_n(from + i * tensor.info().cols, cols.size(), tile.data() + i * cols.size());
    return tile;
  }
  Tile<Real> load(const HbmMatrix<Real>& tensor, Range rows) { return load(tensor, rows, {0, tensor.info().cols}); }
  Column<Real> load(const HbmVector<Real>& tensor, Range rows, Location = {}) {
    Column<Real> column(rows, 1);
    std::copy_n(at(tensor, rows, {0, 1}), rows.size(), column.data());
    return column;
  }

  void store(const HbmMatrix<Real>& tensor, Range rows, Range cols, const Tile<Real>& tile) {
    copy_out(at(tensor, rows, cols), tensor.info(), rows, cols, tile.data());
  }
  void store(const HbmMatrix<Real>& tensor, Range rows, const Tile<Real>& tile) {
    store(tensor, rows, {0, tensor.info().cols}, tile);
  }
  void store(const HbmVector<Real>& tensor, Range rows, const Column<Real>& column) {
    copy_out(at(tensor, rows, {0, 1}), tensor.info(), rows, {0, 1}, column.data());
  }
  void accumulate(const HbmMatrix<Real>& tensor, Range rows, const Tile<Real>& tile) {
    Real* to = at(tensor, rows, {0, tensor.info().cols});
    for (Index n = 0; n < tile.size(); ++n) to[n] = rounded(to[n] + tile.data()[n], tensor.info().format);
  }

  Tile<Real> sram(const char*, Axis rows, Axis cols, Location = {}) { return {rows, cols.size()}; }
  Column<Real> sram(const char*, Axis rows) { return {rows, 1}; }
  Tile<Real> zeros(const char* name, Axis rows, Axis cols) {
    Tile<Real> tile = sram(name, rows, cols);
    tile.setZero();
    return tile;
  }
  Column<Real> constant(const char* name, Axis rows, Real value) {
    Column<Real> column = sram(name, rows);
    column.setConstant(value);
    return column;
  }
  bool count_only() const { return false; }

  void take_turn(const HbmVector<Real>& turn, Index place) { *at(turn, {place, place + 1}, {0, 1}) += 1; }
  template <class Array>
  void exchange(const Array&) {}
  std::vector<Worker> query_heads(Index heads) const {
    const Index group = heads / grid_.heads;
    std::vector<Worker> all;
    for (Index h = head * group; h < (head + 1) * group; ++h) all.emplace_back(*this, heads, h);
    return all;
  }

 private:
  Real* at(const HbmTensor<Real>& tensor, Range rows, Range cols) const {
    const TensorInfo& t = tensor.info();
    const Index h = t.heads == grid_.heads ? head : t.heads == grid_.kv_heads ? kv_head : 0;
    const Index b = t.batch == grid_.batch ? batch : 0;
    return tensor.host().data() + ((b * t.heads + h) * t.rows + rows.begin) * t.cols + cols.begin;
  }

  static void copy_out(Real* to, const TensorInfo& info, Range rows, Range cols, const Real* from) {
    for (Index i = 0; i < rows.size(); ++i, from += cols.size(), to += info.cols) {
      if (is_16_bit(info.format))
        std::transform(from, from + cols.size(), to, [&](Real x) { return rounded(x, info.format); });
      else
        std::copy_n(from, cols.size(), to);
    }
  }

  Grid grid_;
};

struct MachineConfig {
  Index sram_bytes = 0;
  Budget budget = Budget::paper;
  int threads = 0;
};

template <class Real>
class Machine {
 public:
  explicit Machine(const MachineConfig& config = {}) : config_(config) {}
  const MachineConfig& config() const { return config_; }
  template <class Body>
  void parallel(const Grid& grid, Body body) {
    for (Index id = 0; id < grid.batch * grid.heads * grid.blocks; ++id) {
      Worker<Real> worker(grid, id);
      body(worker);
    }
  }

 private:
  MachineConfig config_;
};

}  // namespace flash::sim

// A worker stands for one thread block: it moves tiles between HBM and its own SRAM, and every move is counted.
#pragma once

#include <algorithm>
#include <cassert>
#include <vector>

#include "sim/memory/tile.hpp"
#include "stages/common/rules.hpp"

namespace flash::sim {

/// The workers of one launch: one for each (batch, head, block).
struct Grid {
  Index batch = 1, heads = 1, kv_heads = 1, blocks = 1;
  Index size() const { return batch * heads * blocks; }
};

/// Rows to add to a tensor in HBM once all workers are done, so that the sums' order is the workers'.
template <class Real>
struct PendingSum {
  HbmMatrix<Real> tensor;
  Index first = 0;  // element of the tensor
  std::vector<Real> values;
};

/// Each load, store and accumulate takes the caller's source line, by which the ledger can be read.
template <class Real>
class Worker {
 public:
  const Index batch, head, kv_head;
  const Index block;  ///< of the head's work; 0 where a worker has a whole head

  Worker(WorkerState& state, std::vector<PendingSum<Real>>& sums, const Grid& grid, Index id)
      : batch(id / (grid.blocks * grid.heads)),
        head(id / grid.blocks % grid.heads),
        kv_head(rules::kv_head(head, grid.heads, grid.kv_heads)),
        block(id % grid.blocks),
        grid_(grid),
        state_(state),
        sums_(sums) {
    state_.worker = state_.sram.worker = id;
    state_.batch = batch;
    state_.head = head;
  }

  /// HBM → SRAM: rows [and columns] of this worker's head.
  Tile<Real> load(const HbmMatrix<Real>& tensor, Range rows, Range cols, Location where = Location::current()) {
    Tile<Real> tile(state_, tensor.info().name.c_str(), rows, cols, tensor.info().format, where);
    copy_in(tile, tensor, rows, cols, where);
    return tile;
  }
  Tile<Real> load(const HbmMatrix<Real>& tensor, Range rows, Location where = Location::current()) {
    return load(tensor, rows, {0, tensor.info().cols}, where);
  }
  Column<Real> load(const HbmVector<Real>& tensor, Range rows, Location where = Location::current()) {
    Column<Real> column(state_, tensor.info().name.c_str(), rows, {0, 1}, tensor.info().format, where);
    copy_in(column, tensor, rows, {0, 1}, where);
    return column;
  }

  /// SRAM → HBM, rounded to the tensor's format.
  void store(const HbmMatrix<Real>& tensor, Range rows, Range cols, const Tile<Real>& tile,
             Location where = Location::current()) {
    copy_out(tile, tensor, rows, cols, where);
  }
  void store(const HbmMatrix<Real>& tensor, Range rows, const Tile<Real>& tile, Location where = Location::current()) {
    copy_out(tile, tensor, rows, {0, tensor.info().cols}, where);
  }
  void store(const HbmVector<Real>& tensor, Range rows, const Column<Real>& column,
             Location where = Location::current()) {
    copy_out(column, tensor, rows, {0, 1}, where);
  }

  /// HBM += SRAM: an atomic read-modify-write, rounded to the tensor's format at each addition. The sums of all workers
  /// are made in the workers' order when the last one is done: nobody may load the tensor in the same launch.
  void accumulate(const HbmMatrix<Real>& tensor, Range rows, const Tile<Real>& tile,
                  Location where = Location::current()) {
    const TensorInfo& info = tensor.info();
    state_.tally.count(info, Access::rmw, tile.size(), where);
    state_.tally.sram.read += tile.size();
    const Index first = first_element(info, rows.begin, 0);
    if (!state_.count_only) sums_.push_back({tensor, first, {tile.data(), tile.data() + tile.size()}});
    tile.observe(EventKind::accumulate, info, first, rows, {0, info.cols}, where);
  }

  /// Room for a tile in SRAM, uninitialised, in fp32 (fp64 in an fp64 run). @throws CapacityError when strict.
  Tile<Real> sram(const char* name, Axis rows, Axis cols, Location where = Location::current()) {
    return {state_, name, rows, cols, accumulators, where};
  }
  Column<Real> sram(const char* name, Axis rows, Location where = Location::current()) {
    return {state_, name, rows, {0, 1}, accumulators, where};
  }
  Tile<Real> zeros(const char* name, Axis rows, Axis cols, Location where = Location::current()) {
    Tile<Real> tile = sram(name, rows, cols, where);
    tile.fill(0, where);
    return tile;
  }
  Column<Real> constant(const char* name, Axis rows, Real value, Location where = Location::current()) {
    Column<Real> column = sram(name, rows, where);
    column.fill(value, where);
    return column;
  }

  bool count_only() const { return state_.count_only; }

  /// The next accumulate() in the workers' order, as a GPU has to ask for it: waits for its turn, which is in `turn` at
  /// `place` (a read), and passes it on (a write). Here sums have that order anyway: it is counted, and shown to
  /// observers.
  void take_turn(const HbmVector<Real>& turn, Index place, Location where = Location::current()) {
    const TensorInfo& info = turn.info();
    assert(is_within({place, place + 1}, info.rows));
    state_.tally.count(info, Access::read, 1, where);
    state_.tally.count(info, Access::write, 1, where);
    if (!state_.observer) return;
    const Index first = first_element(info, place, 0);
    Real value = state_.count_only ? 0 : turn.host()[static_cast<std::size_t>(first)];  // observed runs take one thread
    Event event{.name = info.name.c_str(), .worker = state_.worker, .batch = batch, .head = head};
    event.rows = {place, place + 1}, event.cols = {0, 1}, event.first = first;
    event.values = {&value, 1, 1, sizeof(Real) == sizeof(double)}, event.format = info.format;
    event.tally = &state_.tally, event.held_bytes = state_.sram.held_bytes();
    for (const EventKind kind :
         {EventKind::take, EventKind::load, EventKind::compute, EventKind::store, EventKind::give_back}) {
      event.kind = kind, event.where = kind == EventKind::give_back ? Location() : where;
      event.tensor = kind == EventKind::load || kind == EventKind::store ? &info : nullptr;
      if (kind == EventKind::compute) value += 1;
      (*state_.observer)(event);
    }
    if (!state_.count_only) turn.host()[static_cast<std::size_t>(first)] = value;
  }

  /// Between the worker's warps: one reads what the others have put in SRAM and puts there what it makes of it.
  template <class Array>
  void exchange(const Array& array) {
    state_.tally.exchange.read += array.size();
    state_.tally.exchange.write += array.size();
  }

  /// For a worker that has a KV head: itself at each query head of the group, in the same SRAM.
  class QueryHeads {
   public:
    struct Iterator {
      const Worker* kv;
      Index heads, head;
      Worker operator*() const { return Worker(*kv, heads, head); }
      Iterator& operator++() { return ++head, *this; }
      bool operator!=(const Iterator& end) const {
        if (head == end.head) kv->state_.head = kv->head;  // back at the KV head
        return head != end.head;
      }
    };
    QueryHeads(const Worker& kv, Index heads) : kv_(kv), heads_(heads) {}
    Iterator begin() const { return {&kv_, heads_, kv_.head * group()}; }
    Iterator end() const { return {&kv_, heads_, (kv_.head + 1) * group()}; }

   private:
    Index group() const { return heads_ / kv_.grid_.heads; }
    const Worker& kv_;
    Index heads_;
  };
  QueryHeads query_heads(Index heads) const { return {*this, heads}; }

 private:
  Worker(const Worker& kv, Index heads, Index head)
      : batch(kv.batch),
        head(head),
        kv_head(kv.head),
        block(kv.block),
        grid_{kv.grid_.batch, heads, kv.grid_.heads, kv.grid_.blocks},
        state_(kv.state_),
        sums_(kv.sums_) {
    state_.head = head;
  }

  static constexpr Format accumulators = sizeof(Real) == sizeof(double) ? Format::fp64 : Format::fp32;

  /// Of this worker's head: a tensor with the KV heads belongs to the group, one with a single head to all.
  Index first_element(const TensorInfo& t, Index row, Index col) const {
    const Index h = t.heads == grid_.heads ? head : t.heads == grid_.kv_heads ? kv_head : 0;
    const Index b = t.batch == grid_.batch ? batch : 0;
    return ((b * t.heads + h) * t.rows + row) * t.cols + col;
  }

  template <class Array>
  void copy_in(Array& array, const HbmTensor<Real>& tensor, Range rows, Range cols, const Location& where) {
    const TensorInfo& info = tensor.info();
    assert(is_within(rows, info.rows) && is_within(cols, info.cols));
    state_.tally.count(info, Access::read, array.size(), where);
    state_.tally.sram.write += array.size();
    const Index first = first_element(info, rows.begin, cols.begin);
    if (!state_.count_only) {
      const Real* from = tensor.host().data() + first;
      Real* to = array.values().data();
      for (Index i = 0; i < rows.size(); ++i) std::copy_n(from + i * info.cols, cols.size(), to + i * cols.size());
    }
    array.observe(EventKind::load, info, first, rows, cols, where);
  }

  template <class Array>
  void copy_out(const Array& array, const HbmTensor<Real>& tensor, Range rows, Range cols, const Location& where) {
    const TensorInfo& info = tensor.info();
    assert(array.rows() == rows.size() && array.cols() == cols.size());
    assert(is_within(rows, info.rows) && is_within(cols, info.cols));
    state_.tally.count(info, Access::write, array.size(), where);
    state_.tally.sram.read += array.size();
    const Index first = first_element(info, rows.begin, cols.begin);
    if (!state_.count_only) {
      Real* to = tensor.host().data() + first;
      const Real* from = array.data();
      const bool rounds = is_16_bit(info.format);
      for (Index i = 0; i < rows.size(); ++i, from += cols.size(), to += info.cols) {
        if (rounds)
          std::transform(from, from + cols.size(), to, [&](Real x) { return rounded(x, info.format); });
        else
          std::copy_n(from, cols.size(), to);
      }
    }
    array.observe(EventKind::store, info, first, rows, cols, where);
  }

  const Grid grid_;
  WorkerState& state_;
  std::vector<PendingSum<Real>>& sums_;
};

}  // namespace flash::sim

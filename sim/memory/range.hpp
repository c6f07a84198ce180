// Ranges of rows or columns, and the cutting of an axis into tiles.
#pragma once

#include <algorithm>
#include <vector>

#include "sim/memory/eigen.hpp"

namespace flash::sim {

/// Indices begin … end−1 of one axis.
struct Range {
  Index begin = 0, end = 0;
  Index size() const { return end - begin; }
  bool operator==(const Range&) const = default;
};

/// Is it a part of 0 … n−1?
constexpr bool is_within(Range r, Index n) { return 0 <= r.begin && r.begin <= r.end && r.end <= n; }

constexpr Index ceil_div(Index a, Index b) { return (a + b - 1) / b; }

/// A range cut into `count` neighbours of the same size, the last one shorter; no empty ones.
inline std::vector<Range> shares(Range whole, Index count) {
  std::vector<Range> all;
  const Index size = ceil_div(whole.size(), count);
  for (Index begin = whole.begin; begin < whole.end; begin += size)
    all.push_back({begin, std::min(begin + size, whole.end)});
  return all;
}

/// Where a tile lies along an axis of its matrix: some indices, or the first n.
struct Axis : Range {
  Axis(Range range) : Range(range) {}
  Axis(Index n) : Range{0, n} {}
};

/// The tile number `index` of an axis of `length` cut every `block`: the last one may be shorter.
inline Range tile_range(Index index, Index length, Index block) {
  return {index * block, std::min(length, (index + 1) * block)};
}

/// All tiles of an axis, in order: `for (Range rows : tiles(Nq, Br))`.
class tiles {
 public:
  tiles(Index length, Index block) : length_(length), block_(block) {}
  struct Iterator {
    Index index, length, block;
    Range operator*() const { return tile_range(index, length, block); }
    Iterator& operator++() { return ++index, *this; }
    bool operator!=(const Iterator& other) const { return index != other.index; }
  };
  Iterator begin() const { return {0, length_, block_}; }
  Iterator end() const { return {ceil_div(length_, block_), length_, block_}; }

 private:
  Index length_, block_;
};

}  // namespace flash::sim

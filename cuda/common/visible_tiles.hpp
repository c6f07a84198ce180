// Which tiles of S a kernel visits: causal and window skip the others, as in stages/common/visible_tiles.hpp. Ranges
// named rows are queries, those named cols keys.
#pragma once

#include "cuda/common/problem.hpp"

namespace flash::cuda {

__host__ __device__ inline i64 ceil_div(i64 a, i64 b) { return (a + b - 1) / b; }

/// Indices begin … end−1 of one axis.
struct Range {
  i64 begin, end;
  __device__ __forceinline__ int size() const { return static_cast<int>(end - begin); }
};

/// The tile number `index` of an axis of `length` cut every `block`: the last one may be shorter.
__device__ __forceinline__ Range tile_range(i64 index, i64 length, int block) {
  return {index * block, min(length, (index + 1) * block)};
}

/// Neighbouring tiles of an axis, in order: `for (Range rows : tiles(Nq, Br))`.
class Tiles {
 public:
  /// Indices begin … end−1, cut every `block`.
  __device__ __forceinline__ Tiles(i64 begin, i64 end, int block) : begin_(begin), end_(end), block_(block) {}

  /// The tile after `range`: an empty one after the last.
  __device__ __forceinline__ Range next(Range range) const { return {range.end, min(range.end + block_, end_)}; }
  __device__ __forceinline__ bool empty() const { return begin_ >= end_; }
  /// Those among them that lie in [begin, end), two boundaries of tiles.
  __device__ __forceinline__ Tiles within(i64 begin, i64 end) const {
    return {max(begin_, begin), min(end_, end), block_};
  }
  /// Empty where there is none.
  __device__ __forceinline__ Range first() const { return next({begin_, begin_}); }

  struct Iterator {
    Range range;
    const Tiles* tiles;
    __device__ __forceinline__ Range operator*() const { return range; }
    __device__ __forceinline__ Iterator& operator++() { return range = tiles->next(range), *this; }
    __device__ __forceinline__ bool operator!=(const Iterator& end) const { return range.begin < end.range.begin; }
  };
  __device__ __forceinline__ Iterator begin() const { return {first(), this}; }
  __device__ __forceinline__ Iterator end() const { return {{end_, end_}, this}; }

 private:
  i64 begin_, end_;
  int block_;
};

/// All tiles of an axis.
__device__ __forceinline__ Tiles tiles(i64 length, int block) { return {0, length, block}; }

/// Which tiles of S some query sees, on the device.
class VisibleTiles {
 public:
  __device__ __forceinline__ VisibleTiles(const Problem& p, int Br, int Bc) : sees_(p.sees), Br_(Br), Bc_(Bc) {}

  /// Row tiles of which some query sees some key of `cols`: the queries in sight of a range of keys are a range, too.
  __device__ __forceinline__ Tiles rows(Range cols) const {
    const i64 offset = sees_.Nk - sees_.Nq;
    return around({cols.begin - sees_.right - offset, cols.end + sees_.left - offset}, sees_.Nq, Br_);
  }

  /// Column tiles that some query of `rows` sees.
  __device__ __forceinline__ Tiles cols(Range rows) const {
    return around({rules::centre(sees_, rows.begin) - sees_.left, rules::centre(sees_, rows.end - 1) + sees_.right + 1},
                  sees_.Nk, Bc_);
  }

  /// No column tile after `cols` visits `rows`.
  __device__ __forceinline__ bool last(Range rows, Range cols) const { return none(rows, cols.end); }
  /// No column tile at all visits `rows`.
  __device__ __forceinline__ bool none(Range rows) const { return none(rows, 0); }

 private:
  __device__ __forceinline__ bool none(Range rows, i64 first_key) const {
    return first_key >= sees_.Nk || !rules::tile_visible(sees_, rows.begin, rows.end, first_key, sees_.Nk);
  }

  /// The tiles that a range, which may stick out of the axis, touches.
  __device__ __forceinline__ static Tiles around(Range range, i64 length, int block) {
    const i64 begin = max(range.begin, i64(0)), end = min(range.end, length);
    if (begin >= end) return {0, 0, block};
    return {begin / block * block, min((end + block - 1) / block * block, length), block};
  }

  rules::Visibility sees_;
  int Br_, Bc_;
};

/// The keys in equal parts of whole column tiles: as many parts as asked for, or fewer where they would be empty.
class Splits {
 public:
  int count;

  __host__ __device__ Splits(const Problem& p, int Bc) {
    const i64 Tc = ceil_div(p.Nk, Bc), tiles = Tc > 0 ? ceil_div(Tc, p.splits) : 1;
    keys_ = tiles * Bc;
    count = Tc > 0 ? static_cast<int>(ceil_div(Tc, tiles)) : 1;
  }

  /// Of some column tiles those of one part.
  __device__ __forceinline__ Tiles part(const Tiles& tiles, int split) const {
    return tiles.within(split * keys_, (split + 1) * keys_);
  }

 private:
  i64 keys_;
};

}  // namespace flash::cuda

// A program for each thread of a CTA, which program.cu executes: accesses to a few words, and barriers.
#pragma once

#include <cstdint>

namespace program {

constexpr int threads = 96, steps = 24, words = 6;

enum class Kind : std::uint32_t {
  nothing,
  read,
  write,
  atomic,
  copy,
  commit,
  wait,
  sync_threads,
  sync_warp,
  arrive,
  sync
};

/// What a thread does in one step. `at` and `bytes` are of an access or of what cp.async writes, `at` and `count` of a
/// named barrier; `at` says how many groups of copies may stay in flight.
struct Op {
  Kind kind;
  std::uint32_t at, bytes, count;
};

}  // namespace program

// Threads of one OS thread that run until they hand over (Boost.Context).
#pragma once

#include <boost/context/fiber.hpp>
#include <cstddef>
#include <functional>
#include <vector>

namespace flash::gpu {

/// A place where execution can go on: a CUDA thread, the host's program, or the caller of Machine::step().
class Fiber {
 public:
  /// The caller's own context: where it is.
  Fiber() = default;

  /// `body` begins at the first switch to the fiber; when it returns, execution goes on in what it returns.
  void begin(std::size_t stack_bytes, std::function<Fiber*()> body);
  void unwind();  ///< if it is in the middle of something
  void forget();  ///< never goes on; nothing on its stack is destroyed, and the stack may be used again
  bool begun() const { return static_cast<bool>(context_); }

  /// Leaves the running fiber, this, for `to`. Returns when something switches back.
  void switch_to(Fiber& to);

  /// Below each stack lies memory that nobody can touch: more than any frame of the machine's own functions.
  static constexpr std::size_t guard_bytes = 64 * 1024;
  const std::byte* stack() const { return stack_; }
  std::size_t stack_bytes() const { return stack_bytes_; }

 private:
  boost::context::fiber context_;
  const std::byte* stack_ = nullptr;
  std::size_t stack_bytes_ = 0;
};

}  // namespace flash::gpu

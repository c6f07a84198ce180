#include "sim/gpu/fiber.hpp"

#include <sys/mman.h>

#include <boost/context/stack_context.hpp>
#include <new>
#include <utility>

namespace flash::gpu {
namespace {

/// Stacks are kept for the next fiber: a CTA begins hundreds. What lies below each catches an overflow.
class StackPool {
 public:
  explicit StackPool(std::size_t bytes) : bytes_(bytes) {}

  boost::context::stack_context allocate() {
    auto& free = pool();
    for (std::size_t i = free.size(); i-- > 0;)
      if (free[i].size == bytes_) {
        const auto stack = free[i];
        free.erase(free.begin() + static_cast<std::ptrdiff_t>(i));
        return stack;
      }
    constexpr std::size_t guard = Fiber::guard_bytes;
    void* memory =
        mmap(nullptr, bytes_ + guard, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    mprotect(memory, guard, PROT_NONE);
    boost::context::stack_context stack;
    stack.size = bytes_;
    stack.sp = static_cast<char*>(memory) + guard + bytes_;
    return stack;
  }

  void deallocate(boost::context::stack_context& stack) noexcept { pool().push_back(stack); }

 private:
  static std::vector<boost::context::stack_context>& pool() {
    static thread_local std::vector<boost::context::stack_context> free;
    return free;
  }
  std::size_t bytes_;
};

thread_local Fiber* leaving = nullptr;  // who made the switch that is under way

}  // namespace

void Fiber::begin(std::size_t stack_bytes, std::function<Fiber*()> body) {
  StackPool pool(stack_bytes);
  const boost::context::stack_context stack = pool.allocate();
  stack_ = static_cast<const std::byte*>(stack.sp) - stack.size;
  stack_bytes_ = stack.size;
  context_ = boost::context::fiber(std::allocator_arg, boost::context::preallocated(stack.sp, stack.size, stack), pool,
                                   [this, body = std::move(body)](boost::context::fiber&& caller) {
                                     leaving->context_ = std::move(caller);
                                     Fiber* next = body();
                                     leaving = this;
                                     return std::move(next->context_);
                                   });
}

void Fiber::unwind() { context_ = {}; }

void Fiber::forget() {
  if (!context_) return;
  new (&context_) boost::context::fiber();  // it holds a pointer and nothing else
  boost::context::stack_context stack;
  stack.size = stack_bytes_;
  stack.sp = const_cast<std::byte*>(stack_) + stack_bytes_;
  StackPool(stack_bytes_).deallocate(stack);
}

void Fiber::switch_to(Fiber& to) {
  leaving = this;
  boost::context::fiber caller = std::move(to.context_).resume();
  leaving->context_ = std::move(caller);
}

}  // namespace flash::gpu

// Kernels are compiled with -fsanitize=thread, which puts a call before each load and store. The calls end here, and
// not in that sanitizer's library. Code that is no CUDA thread's, such as host code of the same file, is let through.
#include <cstring>

#include "sim/gpu/parts.hpp"

namespace flash::gpu {
namespace {

thread_local std::uint64_t outside = 0;

/// Registers and local memory are on the thread's own stack: nobody else's business.
inline bool is_local(const Thread& t, const void* p) {
  return static_cast<std::size_t>(static_cast<const std::byte*>(p) - t.fiber.stack()) < t.fiber.stack_bytes();
}

inline bool is_watched(const void* p) {
  if (!current) {
    ++outside;
    return false;
  }
  return !is_local(*current, p);
}

inline void plain(const void* p, std::size_t bytes, Way way, Pc pc, std::size_t alignment) {
  if (is_watched(p)) access(p, bytes, way, pc, way == Way::write ? "write" : "read", alignment);
}

/// Of a struct that is less aligned than it is large. The hardware takes it apart: any alignment will do.
inline void members(const void* p, std::size_t bytes, Way way, Pc pc) { plain(p, bytes, way, pc, 1); }

/// A volatile access is seen by everyone in time: a read may be a loop that waits for another thread, which has to run
/// before the look.
inline void strong(const void* p, std::size_t bytes, bool write, Pc pc) {
  if (!is_watched(p)) return;
  const char* doing = write ? "volatile write" : "volatile read";
  if (!write) poll(p, pc, doing);
  access(p, bytes, write ? Way::strong_write : Way::strong_read, pc, doing, bytes);
  pass_knowledge(p, write, !write);
}

}  // namespace

std::uint64_t hooks_outside_kernels() { return outside; }

}  // namespace flash::gpu

// clang-format off: one hook a line
#define HOOK extern "C" FLASH_GPU_API void
#define CALLER __builtin_return_address(0)
#define HOOKS(N)                                                                                              \
  HOOK __tsan_read##N(void* p) { flash::gpu::plain(p, N, flash::gpu::Way::read, CALLER, N); }                 \
  HOOK __tsan_write##N(void* p) { flash::gpu::plain(p, N, flash::gpu::Way::write, CALLER, N); }               \
  HOOK __tsan_unaligned_read##N(void* p) { flash::gpu::members(p, N, flash::gpu::Way::read_struct, CALLER); } \
  HOOK __tsan_unaligned_write##N(void* p) { flash::gpu::members(p, N, flash::gpu::Way::write, CALLER); }      \
  HOOK __tsan_volatile_read##N(void* p) { flash::gpu::strong(p, N, false, CALLER); }                          \
  HOOK __tsan_volatile_write##N(void* p) { flash::gpu::strong(p, N, true, CALLER); }                          \
  HOOK __tsan_unaligned_volatile_read##N(void* p) { flash::gpu::strong(p, N, false, CALLER); }                \
  HOOK __tsan_unaligned_volatile_write##N(void* p) { flash::gpu::strong(p, N, true, CALLER); }

HOOKS(1)
HOOKS(2)
HOOKS(4)
HOOKS(8)
HOOKS(16)

HOOK __tsan_read_range(void* p, unsigned long n) { flash::gpu::members(p, n, flash::gpu::Way::read_struct, CALLER); }
HOOK __tsan_write_range(void* p, unsigned long n) { flash::gpu::members(p, n, flash::gpu::Way::write, CALLER); }
HOOK __tsan_init() {}
HOOK __tsan_func_entry(void*) {}
HOOK __tsan_func_exit() {}
HOOK __tsan_vptr_update(void*, void*) {}
HOOK __tsan_vptr_read(void*) {}

// Host code of a kernel's file may have std::atomic, shared pointers and guarded statics.
#define GIVES(T) extern "C" FLASH_GPU_API T
#define ATOMICS(B, T)                                                                                                 \
  GIVES(T) __tsan_atomic##B##_load(const volatile T* p, int) { return __atomic_load_n(p, __ATOMIC_SEQ_CST); }         \
  HOOK __tsan_atomic##B##_store(volatile T* p, T x, int) { __atomic_store_n(p, x, __ATOMIC_SEQ_CST); }                \
  GIVES(T) __tsan_atomic##B##_exchange(volatile T* p, T x, int) {                                                     \
    return __atomic_exchange_n(p, x, __ATOMIC_SEQ_CST);                                                               \
  }                                                                                                                   \
  GIVES(T) __tsan_atomic##B##_fetch_add(volatile T* p, T x, int) {                                                    \
    return __atomic_fetch_add(p, x, __ATOMIC_SEQ_CST);                                                                \
  }                                                                                                                   \
  GIVES(T) __tsan_atomic##B##_fetch_sub(volatile T* p, T x, int) {                                                    \
    return __atomic_fetch_sub(p, x, __ATOMIC_SEQ_CST);                                                                \
  }                                                                                                                   \
  GIVES(T) __tsan_atomic##B##_fetch_or(volatile T* p, T x, int) { return __atomic_fetch_or(p, x, __ATOMIC_SEQ_CST); } \
  GIVES(T) __tsan_atomic##B##_fetch_and(volatile T* p, T x, int) {                                                    \
    return __atomic_fetch_and(p, x, __ATOMIC_SEQ_CST);                                                                \
  }                                                                                                                   \
  GIVES(int) __tsan_atomic##B##_compare_exchange_strong(volatile T* p, T* old, T x, int, int) {                       \
    return __atomic_compare_exchange_n(p, old, x, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                         \
  }                                                                                                                   \
  GIVES(int) __tsan_atomic##B##_compare_exchange_weak(volatile T* p, T* old, T x, int, int) {                         \
    return __atomic_compare_exchange_n(p, old, x, true, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);                          \
  }

ATOMICS(8, std::uint8_t)
ATOMICS(16, std::uint16_t)
ATOMICS(32, std::uint32_t)
ATOMICS(64, std::uint64_t)
HOOK __tsan_atomic_thread_fence(int) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
HOOK __tsan_atomic_signal_fence(int) { __atomic_signal_fence(__ATOMIC_SEQ_CST); }
// clang-format on

// ---- functions of C, whose own accesses no compiler has marked
namespace flash::gpu {

void* copy(void* to, const void* from, std::size_t bytes) {
  const Pc pc = CALLER;
  if (bytes > 0) {
    plain(from, bytes, Way::read, pc, 1);
    plain(to, bytes, Way::write, pc, 1);
  }
  return std::memmove(to, from, bytes);
}

void* fill(void* to, int byte, std::size_t bytes) {
  if (bytes > 0) plain(to, bytes, Way::write, CALLER, 1);
  return std::memset(to, byte, bytes);
}

}  // namespace flash::gpu

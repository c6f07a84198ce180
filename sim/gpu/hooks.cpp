// Kernels are compiled with -fsanitize=thread, which puts a call before each load and store. The calls end here, and
// not in that sanitizer's library. Code that is no CUDA thread's, such as host code of the same file, is let through.
#include "sim/gpu/parts.hpp"

namespace flash::gpu {
namespace {

/// Registers and local memory are on the thread's own stack: nobody else's business.
inline bool is_local(const Thread& t, const void* p) {
  return static_cast<std::size_t>(static_cast<const std::byte*>(p) - t.fiber.stack()) < t.fiber.stack_bytes();
}

inline void plain(const void* p, std::size_t bytes, Way way, Pc pc) {
  if (!current || is_local(*current, p)) return;
  access(p, bytes, way, pc, way == Way::read ? "read" : "write");
}

/// A volatile read may be a loop that waits for another thread.
inline void volatile_read(const void* p, std::size_t bytes, Pc pc) {
  plain(p, bytes, Way::read, pc);
  if (!current || is_local(*current, p) || bytes > 4) return;
  std::uint32_t value = 0;
  __builtin_memcpy(&value, p, bytes);
  poll(p, value, pc, "volatile read");
}

}  // namespace
}  // namespace flash::gpu

#define HOOK extern "C" FLASH_GPU_API void
#define CALLER __builtin_return_address(0)
#define HOOKS(N)                                                                                       \
  HOOK __tsan_read##N(void* p) { flash::gpu::plain(p, N, flash::gpu::Way::read, CALLER); }             \
  HOOK __tsan_write##N(void* p) { flash::gpu::plain(p, N, flash::gpu::Way::write, CALLER); }           \
  HOOK __tsan_unaligned_read##N(void* p) { flash::gpu::plain(p, N, flash::gpu::Way::read, CALLER); }   \
  HOOK __tsan_unaligned_write##N(void* p) { flash::gpu::plain(p, N, flash::gpu::Way::write, CALLER); } \
  HOOK __tsan_volatile_read##N(void* p) { flash::gpu::volatile_read(p, N, CALLER); }                   \
  HOOK __tsan_volatile_write##N(void* p) { flash::gpu::plain(p, N, flash::gpu::Way::write, CALLER); }  \
  HOOK __tsan_unaligned_volatile_read##N(void* p) { flash::gpu::volatile_read(p, N, CALLER); }         \
  HOOK __tsan_unaligned_volatile_write##N(void* p) { flash::gpu::plain(p, N, flash::gpu::Way::write, CALLER); }

HOOKS(1)
HOOKS(2)
HOOKS(4)
HOOKS(8)
HOOKS(16)

HOOK __tsan_read_range(void* p, unsigned long bytes) { flash::gpu::plain(p, bytes, flash::gpu::Way::read, CALLER); }
HOOK __tsan_write_range(void* p, unsigned long bytes) { flash::gpu::plain(p, bytes, flash::gpu::Way::write, CALLER); }
HOOK __tsan_init() {}
HOOK __tsan_func_entry(void*) {}
HOOK __tsan_func_exit() {}
HOOK __tsan_vptr_update(void*, void*) {}
HOOK __tsan_vptr_read(void*) {}

// What clang calls for copies of structs.
extern "C" FLASH_GPU_API void* __tsan_memcpy(void* to, const void* from, unsigned long bytes) {
  flash::gpu::plain(from, bytes, flash::gpu::Way::read, CALLER);
  flash::gpu::plain(to, bytes, flash::gpu::Way::write, CALLER);
  return __builtin_memcpy(to, from, bytes);
}
extern "C" FLASH_GPU_API void* __tsan_memmove(void* to, const void* from, unsigned long bytes) {
  flash::gpu::plain(from, bytes, flash::gpu::Way::read, CALLER);
  flash::gpu::plain(to, bytes, flash::gpu::Way::write, CALLER);
  return __builtin_memmove(to, from, bytes);
}
extern "C" FLASH_GPU_API void* __tsan_memset(void* to, int value, unsigned long bytes) {
  flash::gpu::plain(to, bytes, flash::gpu::Way::write, CALLER);
  return __builtin_memset(to, value, bytes);
}

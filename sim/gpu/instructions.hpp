// What the virtual GPU executes for a kernel: one function for each instruction family of cuda/ptx and for what CUDA
// spells itself. Called by kernel code alone, on the fiber of a CUDA thread; the functions read their caller's return
// address, which names the kernel's source line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "sim/gpu/cuda_types.hpp"
#include "sim/gpu/matrix.hpp"

#define FLASH_GPU_API __attribute__((visibility("default")))

namespace flash::gpu {

// ---- shared memory
FLASH_GPU_API void* dynamic_smem(std::size_t bytes_used);
FLASH_GPU_API std::uint32_t shared_address(const void* p);

// ---- warp: every lane must arrive at the same call
enum class Operand { f16, bf16 };
enum class Shuffle { from_lane, up, down, exclusive_or };
enum class Vote { any, all, ballot };
enum class Match { any, all };
enum class Reduction { add, min, max, bit_and, bit_or, bit_xor };
FLASH_GPU_API void ldmatrix(std::uint32_t* r, int matrices, bool transposed, const void* row);
FLASH_GPU_API void mma(float* d, int k, Operand operand, const std::uint32_t* a, const std::uint32_t* b);
FLASH_GPU_API std::uint32_t shuffle(Shuffle kind, std::uint32_t mask, std::uint32_t value, unsigned operand, int width);
FLASH_GPU_API std::uint32_t vote(Vote kind, std::uint32_t mask, bool predicate);
/// Lanes with the caller's value, or all where they all have it. `bytes`: 4 or 8, of the instruction.
FLASH_GPU_API std::uint32_t match(Match kind, std::uint32_t mask, std::uint64_t value, std::size_t bytes);
FLASH_GPU_API std::uint32_t reduce(Reduction kind, std::uint32_t mask, std::uint32_t value, bool is_signed);
FLASH_GPU_API void sync_warp(std::uint32_t mask);

// ---- warp, by those of its lanes that come to the call while the others run as far as they can
FLASH_GPU_API std::uint32_t active_mask();
FLASH_GPU_API std::int64_t clock_cycles();

// ---- barriers of a CTA; threads = 0: all of them
FLASH_GPU_API void bar_sync(std::uint32_t id, std::uint32_t threads);
FLASH_GPU_API void bar_arrive(std::uint32_t id, std::uint32_t threads);
FLASH_GPU_API int bar_count(bool predicate);  ///< __syncthreads_count: how many threads said true

// ---- asynchronous copies
FLASH_GPU_API void cp_async(void* to_shared, const void* from_global, std::uint32_t size, std::uint32_t bytes_read);
FLASH_GPU_API void cp_async_commit();
FLASH_GPU_API void cp_async_wait(std::uint32_t groups_in_flight);
FLASH_GPU_API void cp_async_wait_all();

// ---- atomics: relaxed, on global or shared memory; a fence makes them order other accesses
enum class Atomic { add, max, min, exchange, bit_or, bit_and, bit_xor, increment, decrement };
FLASH_GPU_API float atomic_add(float* to, float x);
FLASH_GPU_API double atomic_add(double* to, double x);
FLASH_GPU_API std::uint32_t atomic(Atomic kind, std::uint32_t* to, std::uint32_t x, bool is_signed);
FLASH_GPU_API std::uint64_t atomic(Atomic kind, std::uint64_t* to, std::uint64_t x, bool is_signed);
FLASH_GPU_API std::uint32_t atomic_cas(std::uint32_t* to, std::uint32_t expected, std::uint32_t desired);
FLASH_GPU_API std::uint64_t atomic_cas(std::uint64_t* to, std::uint64_t expected, std::uint64_t desired);
FLASH_GPU_API void red_add_f32(float* to, float x);
FLASH_GPU_API void red_add_f16x2(void* to, std::uint32_t pair);
FLASH_GPU_API void thread_fence();
FLASH_GPU_API void pause();  ///< __nanosleep: another warp may run

// ---- arithmetic whose cost or rounding is the hardware's
FLASH_GPU_API float ex2(float x);
FLASH_GPU_API std::uint32_t pack_f16(float low, float high);
FLASH_GPU_API std::uint32_t pack_bf16(float low, float high);
FLASH_GPU_API float widen_f16(std::uint16_t x);
FLASH_GPU_API std::uint16_t round_f16(float x);
FLASH_GPU_API std::uint16_t round_bf16(float x);
/// To fp32, to odd where it is not exact: rounding this to 16 bits is rounding once.
FLASH_GPU_API float to_odd(long double x);
FLASH_GPU_API float fma_to_odd(float x, float y, float z);
FLASH_GPU_API float2 unpack_f16(std::uint32_t pair);

// ---- functions of C that a kernel calls
FLASH_GPU_API void* copy(void* to, const void* from, std::size_t bytes);  ///< memcpy and memmove
FLASH_GPU_API void* fill(void* to, int byte, std::size_t bytes);
FLASH_GPU_API void trap();  ///< a fatal report

// ---- the stepper's view
FLASH_GPU_API void mark(const char* name, int value);
FLASH_GPU_API void watch(const char* name, const void* local, std::size_t bytes, const RegisterLayout& layout);
FLASH_GPU_API void name(const char* text, const void* shared, std::size_t bytes, const SharedLayout& layout);

// ---- where the thread is
FLASH_GPU_API uint3 thread_index();
FLASH_GPU_API uint3 block_index();
FLASH_GPU_API dim3 block_size();
FLASH_GPU_API dim3 grid_size();

// ---- launching, called by host code
struct DeviceLimits {
  std::string device;
  std::size_t smem_per_cta;
};
FLASH_GPU_API DeviceLimits device_limits();
/// Runs the kernel to its end: each thread makes `call(closure)`. @throws std::runtime_error outside Machine::run().
FLASH_GPU_API void launch(const char* kernel, dim3 grid, dim3 block, std::size_t smem, const void* closure,
                          std::size_t closure_bytes, void (*call)(const void* closure));

}  // namespace flash::gpu

/// What assert() calls: in a kernel a fatal report, in host code the end of the program.
extern "C" FLASH_GPU_API [[noreturn]] void flash_assert_fail(const char* what, const char* file, unsigned line,
                                                             const char* function) noexcept;

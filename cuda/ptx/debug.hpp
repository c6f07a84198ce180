// What a kernel tells the stepper. On a GPU these are nothing: not an instruction is added.
#pragma once

#include <type_traits>

#include "cuda/ptx/target.hpp"

namespace flash::ptx {

/// A named place to stop at, such as a tile's number; one event a warp.
FLASH_PTX void mark([[maybe_unused]] const char* name, [[maybe_unused]] int value) {
#ifndef __CUDACC__
  gpu::mark(name, value);
#endif
}

#ifndef __CUDACC__
/// How the stepper reads an object as a matrix. A type of ours says it by itself: in shared memory `Number`, `rows`, `cols` and
/// offset(row, col) [bytes]; in registers `x`, an array of float, and place(n), where in the warp's tile number n belongs.
template <class T>
constexpr gpu::NumberKind number_of = std::is_same_v<T, half> ? gpu::NumberKind::f16
                                  : std::is_integral_v<T> ? gpu::NumberKind::i32
                                                          : gpu::NumberKind::f32;
template <class T>
constexpr bool is_number =
    std::is_same_v<T, half> || std::is_same_v<T, float> || (std::is_integral_v<T> && sizeof(T) == 4);

template <class T>
gpu::SharedLayout shared_layout() {
  using Element = std::remove_all_extents_t<T>;
  if constexpr (requires { T::offset(0, 0); }) {
    return {T::rows, T::cols, number_of<typename T::Number>, T::offset};
  } else if constexpr (is_number<Element> && std::rank_v<T> == 2) {
    constexpr int cols = std::extent_v<T, 1>;
    return {std::extent_v<T, 0>, cols, number_of<Element>,
            [](int row, int col) { return (row * cols + col) * int(sizeof(Element)); }};
  } else if constexpr (is_number<Element> && std::rank_v<T> < 2) {
    return {std::rank_v<T> == 1 ? int(std::extent_v<T>) : 1, 1, number_of<Element>,
            [](int row, int) { return row * int(sizeof(Element)); }};
  } else {
    return {};
  }
}

template <class T>
gpu::RegisterLayout register_layout() {
  if constexpr (requires(const T& t) { t.x, t.place(0); })
    return {sizeof(T::x) / sizeof(float), gpu::NumberKind::f32,
            [](const void* local) -> const void* { return &static_cast<const T*>(local)->x; },
            [](const void* local, int n) {
              const auto [row, col] = static_cast<const T*>(local)->place(n);
              return gpu::RegisterLayout::Place{row, col};
            }};
  else
    return {};
}
#endif

/// Makes a thread's local array, or its part of a warp's tile, readable by name while the kernel is stopped.
template <class T>
FLASH_PTX void watch([[maybe_unused]] const char* name, [[maybe_unused]] const T& local) {
#ifndef __CUDACC__
  gpu::watch(name, &local, sizeof(T), register_layout<T>());
#endif
}

/// Names a piece of shared memory in reports, and makes it readable.
template <class T>
FLASH_PTX void name([[maybe_unused]] const char* text, [[maybe_unused]] const T& shared) {
#ifndef __CUDACC__
  gpu::name(text, &shared, sizeof(T), shared_layout<T>());
#endif
}

}  // namespace flash::ptx

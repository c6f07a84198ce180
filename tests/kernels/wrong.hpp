// Wrong kernels: each is reported, with the words that stand beside it.
#pragma once

#include <cstddef>

/// Tensors of a wrong kernel, [1024] each.
struct Tensors {
  int* A;  ///< given, zeros
  int* B;  ///< given, zeros
  int* U;  ///< nothing may be read before it is written
};

struct Wrong {
  const char* name;
  int arch;           ///< that the machine has
  const char* kind;   ///< of the report
  const char* words;  ///< that its text must hold, with "; " between; @x is the file and line that has "// @x"
  void (*launch)(const Tensors&);
};

/// The symbol that their files export: `flash_wrong`.
struct WrongKernels {
  const Wrong* first;
  std::size_t count;

  const Wrong* begin() const { return first; }
  const Wrong* end() const { return first + count; }
};

// flash_uncounted::Bench, behind a wall: its headers and the counted ones have the same names.
#pragma once

#include <memory>

namespace uncounted {

class Bench {
 public:
  Bench(int which, long N, long d, long Br, long Bc);
  ~Bench();
  void run();
  double sum() const;

 private:
  struct Program;
  std::unique_ptr<Program> program_;
};

}  // namespace uncounted

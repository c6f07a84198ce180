// The stages' sources once more, without counting.
#define flash flash_uncounted
#include "tests/bench/programs.hpp"
#undef flash

#include "tests/bench/uncounted/programs.hpp"

namespace uncounted {

struct Bench::Program : flash_uncounted::Bench {
  using flash_uncounted::Bench::Bench;
};

Bench::Bench(int which, long N, long d, long Br, long Bc)
    : program_(std::make_unique<Program>(static_cast<flash_uncounted::Which>(which), N, d, Br, Bc)) {}
Bench::~Bench() = default;
void Bench::run() { program_->run(); }
double Bench::sum() const { return program_->sum(); }

}  // namespace uncounted

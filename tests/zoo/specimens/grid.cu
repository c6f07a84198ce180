// CTAs that work together through global memory: each adds to a total, hands its prefix to the next one, and the last to
// finish adds up the squares.
#include "tests/zoo/specimen.hpp"

namespace ptx = flash::ptx;

namespace {

constexpr int ctas = 80, threads = 64;  // more than fit on the SMs at once

struct Smem {
  bool last;
};

__global__ void __launch_bounds__(threads) prefix_sums(const float* x, float* prefix, unsigned* flags, float* total,
                                                       unsigned* finished, float* squares,
                                                       float* sum_of_squares) {
  Smem& sm = ptx::dynamic_smem<Smem>();
  const int cta = blockIdx.x, thread = threadIdx.x;
  if (thread == 0) {
    atomicAdd(total, x[cta]);
    float before = 0;
    if (cta > 0) {
      while (atomicAdd(&flags[cta - 1], 0u) == 0) __nanosleep(100);
      __threadfence();  // what the flag's owner wrote before it is there
      before = prefix[cta - 1];
    }
    prefix[cta] = before + x[cta];
    __threadfence();  // the prefix before the flag
    atomicExch(&flags[cta], 1u);
    squares[cta] = x[cta] * x[cta];
    __threadfence();  // the square before the count
    sm.last = atomicAdd(finished, 1u) == ctas - 1;
  }
  __syncthreads();  // everyone knows whether this CTA is the last
  if (sm.last && thread == 0) {
    __threadfence();  // all squares are there
    float sum = 0;
    for (int i = 0; i < ctas; ++i) sum += squares[i];
    *sum_of_squares = sum;
  }
}

std::string run(Allocate allocate) {
  float* x = static_cast<float*>(allocate("x", ctas * sizeof(float), true));
  float* prefix = static_cast<float*>(allocate("prefix", ctas * sizeof(float), false));
  unsigned* flags = static_cast<unsigned*>(allocate("flags", ctas * sizeof(unsigned), true));
  float* total = static_cast<float*>(allocate("total", sizeof(float), true));
  unsigned* finished = static_cast<unsigned*>(allocate("finished", sizeof(unsigned), true));
  float* squares = static_cast<float*>(allocate("squares", ctas * sizeof(float), false));
  float* sum_of_squares = static_cast<float*>(allocate("sum_of_squares", sizeof(float), false));
  for (int i = 0; i < ctas; ++i) x[i] = static_cast<float>(i % 11 + 1);
  ptx::launch("prefix_sums", prefix_sums, dim3(ctas), dim3(threads), sizeof(Smem), nullptr, x, prefix, flags, total,
              finished, squares, sum_of_squares);
  float sum = 0, of_squares = 0;
  for (int i = 0; i < ctas; ++i) {
    sum += x[i];
    of_squares += x[i] * x[i];
    if (!(prefix[i] == sum)) return "prefix(" + std::to_string(i) + ") is " + std::to_string(prefix[i]);
  }
  if (!(*total == sum)) return "total is " + std::to_string(*total);
  if (!(*sum_of_squares == of_squares)) return "sum_of_squares is " + std::to_string(*sum_of_squares);
  return "";
}

}  // namespace

FLASH_SPECIMEN = {75, run};

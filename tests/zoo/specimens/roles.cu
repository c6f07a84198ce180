// Two warps bring tiles to a ring of two stages, two warps add them up: named barriers say which stage is full and which is
// empty.
#include "tests/zoo/specimen.hpp"

namespace ptx = flash::ptx;

namespace {

constexpr int tiles = 6, stages = 2, width = 64, threads = 128;
constexpr int full = 1, empty = 1 + stages;  // barriers of stage 0; the next stage's follow

struct Smem {
  float tile[stages][width];
};

__global__ void __launch_bounds__(threads) add_up(const float* x, float* sums) {
  Smem& sm = ptx::dynamic_smem<Smem>();
  ptx::name("tile", sm.tile);
  const int thread = threadIdx.x;
  if (thread < width) {  // == role: producer
    for (int j = 0; j < tiles; ++j) {
      const int stage = j % stages;
      ptx::mark("produce", j);
      if (j >= stages) ptx::bar_sync(empty + stage, threads);  // the consumers have read the stage
      sm.tile[stage][thread] = x[j * width + thread];
      ptx::bar_arrive(full + stage, threads);  // the stage is written
    }
  } else {  // == role: consumer
    float sum = 0;
    for (int j = 0; j < tiles; ++j) {
      const int stage = j % stages;
      ptx::mark("consume", j);
      ptx::bar_sync(full + stage, threads);  // the producers have written the stage
      sum += sm.tile[stage][threads - 1 - thread];
      if (j + stages < tiles) ptx::bar_arrive(empty + stage, threads);  // the stage is read
    }
    sums[threads - 1 - thread] = sum;
  }
}

std::string run(Allocate allocate) {
  float* x = static_cast<float*>(allocate("x", tiles * width * sizeof(float), true));
  float* sums = static_cast<float*>(allocate("sums", width * sizeof(float), false));
  for (int i = 0; i < tiles * width; ++i) x[i] = static_cast<float>(i % 29);
  ptx::launch("add_up", add_up, dim3(1), dim3(threads), sizeof(Smem), nullptr, x, sums);
  for (int i = 0; i < width; ++i) {
    float sum = 0;
    for (int j = 0; j < tiles; ++j) sum += x[j * width + i];
    if (!(sums[i] == sum)) return "sums(" + std::to_string(i) + ") is " + std::to_string(sums[i]);
  }
  return "";
}

}  // namespace

FLASH_SPECIMEN = {75, run};

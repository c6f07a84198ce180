// Sums of rows by a CTA of four warps: lanes by shuffles, neighbours within a warp through shared memory, warps through
// shared memory; row after row in the same place.
#include "tests/zoo/specimen.hpp"

namespace ptx = flash::ptx;

namespace {

constexpr int rows = 5, width = 250, threads = 128, warps = threads / 32;

struct Smem {
  float lane_sum[threads], warp_sum[warps];
};

__global__ void __launch_bounds__(threads) row_sums(const float* x, float* sums, float* quads) {
  Smem& sm = ptx::dynamic_smem<Smem>();
  ptx::name("lane_sum", sm.lane_sum);
  ptx::name("warp_sum", sm.warp_sum);
  const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
  for (int row = 0; row < rows; ++row) {
    ptx::mark("row", row);
    float sum = 0;
    for (int i = thread; i < width; i += threads) sum += x[row * width + i];

    sm.lane_sum[thread] = sum;
    __syncwarp();  // the lanes' sums are there
    if (lane % 4 == 0)
      quads[row * (threads / 4) + thread / 4] =
          sm.lane_sum[thread] + sm.lane_sum[thread + 1] + sm.lane_sum[thread + 2] + sm.lane_sum[thread + 3];
    __syncwarp();  // and read: the next row may overwrite them

    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    if (lane == 0) sm.warp_sum[warp] = sum;
    __syncthreads();  // the warps' sums are there
    if (thread == 0) {
      float all = 0;
      for (int w = 0; w < warps; ++w) all += sm.warp_sum[w];
      sums[row] = all;
    }
    __syncthreads();  // and read: the next row may overwrite them
  }
}

std::string run(Allocate allocate) {
  float* x = static_cast<float*>(allocate("x", rows * width * sizeof(float), true));
  float* sums = static_cast<float*>(allocate("sums", rows * sizeof(float), false));
  float* quads = static_cast<float*>(allocate("quads", rows * threads / 4 * sizeof(float), false));
  for (int i = 0; i < rows * width; ++i) x[i] = static_cast<float>(i % 31 - i % 7);
  ptx::launch("row_sums", row_sums, dim3(1), dim3(threads), sizeof(Smem), nullptr, x, sums, quads);
  for (int row = 0; row < rows; ++row) {
    float sum = 0, of_quads = 0;
    for (int i = 0; i < width; ++i) sum += x[row * width + i];
    for (int q = 0; q < threads / 4; ++q) of_quads += quads[row * (threads / 4) + q];
    if (!(sums[row] == sum)) return "sums(" + std::to_string(row) + ") is " + std::to_string(sums[row]);
    if (!(of_quads == sum)) return "quads of row " + std::to_string(row) + " add up to " + std::to_string(of_quads);
  }
  return "";
}

}  // namespace

FLASH_SPECIMEN = {75, run};

// Rows at the far end of a tensor of more than 2³¹ elements, copied and scaled.
#include "tests/zoo/specimen.hpp"

namespace ptx = flash::ptx;

namespace {

constexpr long long rows = 225305, stride = 9728;  // 225304 · 9728 = 2 191 757 312 > 2³¹
constexpr int first = 225300, d = 64, threads = 64;

__global__ void __launch_bounds__(threads) scale_rows(const half* x, half* y) {
  const int row = first + static_cast<int>(blockIdx.x), col = threadIdx.x;
  const long long at = row * stride + col;
  y[blockIdx.x * d + col] = __float2half_rn(2 * __half2float(x[at]));
}

std::string run(Allocate allocate) {
  half* x = static_cast<half*>(allocate("x", rows * stride * sizeof(half), true));  // memory only where it is touched
  half* y = static_cast<half*>(allocate("y", (rows - first) * d * sizeof(half), false));
  for (long long row = first; row < rows; ++row)
    for (int col = 0; col < d; ++col) x[row * stride + col] = __float2half_rn(static_cast<float>(col + row % 5));
  ptx::launch("scale_rows", scale_rows, dim3(rows - first), dim3(threads), 0, nullptr, x, y);
  for (long long row = first; row < rows; ++row)
    for (int col = 0; col < d; ++col)
      if (!(__half2float(y[(row - first) * d + col]) == 2.f * static_cast<float>(col + row % 5)))
        return "y(" + std::to_string(row) + "," + std::to_string(col) + ") is wrong";
  return "";
}

}  // namespace

FLASH_SPECIMEN = {75, run};

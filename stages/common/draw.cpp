#include "stages/common/draw.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "stages/common/npy.hpp"
#include "stages/common/oracle.hpp"

namespace flash {
namespace {

enum class Tensor : std::uint32_t { q, k, v, dout };

/// Sum of the eight 16-bit halves of a Philox block, shifted and scaled to mean 0 and variance 1 (Irwin and Hall: close
/// to normal, within ±4.9).
double draw_one(std::uint64_t index, Tensor tensor, std::uint64_t seed) {
  const auto low = static_cast<std::uint32_t>(index), high = static_cast<std::uint32_t>(index >> 32);
  std::int64_t sum = 0;
  for (const std::uint32_t word : philox4x32({low, high, static_cast<std::uint32_t>(tensor), 0}, seed)) {
    sum += (word & 0xFFFF) + (word >> 16);
  }
  constexpr double kMean = 4 * 65535.0;  // of eight halves, each uniform on 0 … 65535
  static const double unit = 65536 * std::sqrt(8 / 12.0);
  return (static_cast<double>(sum) - kMean) / unit;
}

std::vector<double> draw(Index size, Tensor tensor, std::uint64_t seed) {
  std::vector<double> values(static_cast<std::size_t>(size));
  for (std::size_t n = 0; n < values.size(); ++n) values[n] = draw_one(n, tensor, seed);
  return values;
}

}  // namespace

void round_inputs(Inputs& inputs) {
  for (std::vector<double>* array : {&inputs.q, &inputs.k, &inputs.v, &inputs.dout}) {
    for (double& value : *array) value = rounded(value, inputs.dtype);
  }
}

Inputs draw_inputs(const Shape& shape, Format dtype, std::uint64_t seed) {
  Inputs inputs;
  inputs.shape = shape;
  inputs.dtype = dtype;
  inputs.q = draw(shape.batch * shape.heads * shape.Nq * shape.d, Tensor::q, seed);
  inputs.k = draw(shape.batch * shape.kv_heads * shape.Nk * shape.d, Tensor::k, seed);
  inputs.v = draw(shape.batch * shape.kv_heads * shape.Nk * shape.dv, Tensor::v, seed);
  round_inputs(inputs);
  return inputs;
}

void draw_dout(Inputs& inputs, std::uint64_t seed) {
  const Shape& s = inputs.shape;
  inputs.dout = draw(s.batch * s.heads * s.Nq * s.dv, Tensor::dout, seed + 1);
  for (double& value : inputs.dout) value = rounded(value, inputs.dtype);
}

Inputs example_minilm(const std::filesystem::path& data, Format dtype) {
  const std::vector<Index> expected{12, 512, 32};
  Inputs inputs;
  inputs.shape = {1, 12, 12, 512, 512, 32, 32};
  inputs.dtype = dtype;
  for (const auto& [name, target] : {std::pair{"q", &inputs.q}, {"k", &inputs.k}, {"v", &inputs.v}}) {
    const std::filesystem::path path = data / fmt::format("minilm_layer0_{}.npy", name);
    Array array = read_npy(path);
    if (array.shape != expected) {
      throw Refused(fmt::format("{}: its shape is ({}) and not ({}); take the file from the repository", path.string(),
                                fmt::join(array.shape, ","), fmt::join(expected, ",")));
    }
    *target = std::move(array.data);
  }
  round_inputs(inputs);
  return inputs;
}

Inputs example_hand(Format dtype) {
  Inputs inputs;
  inputs.shape = {1, 1, 1, 4, 4, 2, 2};
  inputs.dtype = dtype;
  inputs.q = {1, 0, 0, 1, 1, 1, 1, -1};
  inputs.k = {1, 0, 0, 1, 2, 1, 0, -1};
  inputs.v = {1, 0, 0, 1, 2, 1, 1, 2};
  inputs.dout = {1, 0, 0, 1, 1, 1, 1, -1};
  return inputs;
}

}  // namespace flash

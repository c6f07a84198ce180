#include "cuda/common/tensors.hpp"

#include <sstream>
#include <type_traits>

#include "cuda/common/module.hpp"

namespace flash::cuda {
namespace {

template <auto Pointer>
void point(Problem& p, void* memory) {
  p.*Pointer = static_cast<std::remove_reference_t<decltype(p.*Pointer)>>(memory);
}

}  // namespace

std::size_t Tensor::bytes() const {
  return static_cast<std::size_t>(info.batch * info.heads * padded_rows * info.cols) *
         static_cast<std::size_t>(bytes_per_element(info.format));
}

std::vector<Tensor> tensors(const Shape& s, Format dtype, Index splits) {
  using enum Format;
  using enum sim::Role;
  const auto [B, H, G, Nq, Nk, d, dv] = s;
  const Index whole_tiles = sim::ceil_div(Nq, 128) * 128;  // kept in the order of registers, whose tiles are whole
  const Index parts = splits > 1 ? splits : 0;
  return {
      {{"Q", dtype, input, B, H, Nq, d}, point<&Problem::Q>},
      {{"K", dtype, input, B, G, Nk, d}, point<&Problem::K>},
      {{"V", dtype, input, B, G, Nk, dv}, point<&Problem::V>},
      {{"slopes", fp32, input, 1, H, 1, 1}, point<&Problem::slopes>},
      {{"O", dtype, output, B, H, Nq, dv}, point<&Problem::O>},
      {{"O_acc", fp32, extra, B, H, Nq, dv}, point<&Problem::O_acc>},
      {{"l", fp32, extra, B, H, Nq, 1}, point<&Problem::l>},
      {{"m", fp32, extra, B, H, Nq, 1}, point<&Problem::m>},
      {{"LSE", fp32, extra, B, H, Nq, 1}, point<&Problem::LSE>},
      {{"S", dtype, extra, B, H, Nq, Nk}, point<&Problem::S>},
      {{"P", dtype, extra, B, H, Nq, Nk}, point<&Problem::P>},
      {{"dO", dtype, input, B, H, Nq, dv}, point<&Problem::dO>},
      {{"dQ", dtype, output, B, H, Nq, d}, point<&Problem::dQ>},
      {{"dK", dtype, output, B, G, Nk, d}, point<&Problem::dK>},
      {{"dV", dtype, output, B, G, Nk, dv}, point<&Problem::dV>},
      {{"dQ_acc", fp32, extra, B, H, Nq, d}, point<&Problem::dQ_acc>, whole_tiles},
      {{"D", fp32, extra, B, H, Nq, 1}, point<&Problem::D>},
      {{"turn", fp32, extra, B, H, Nq, 1}, point<&Problem::turn>},
      {{"partial_O", fp32, extra, B, H, parts * Nq, dv}, point<&Problem::partial_O>},
      {{"partial_LSE", fp32, extra, B, H, parts * Nq, 1}, point<&Problem::partial_LSE>},
      {{"dP", dtype, extra, B, H, Nq, Nk}, point<&Problem::dP>},
      {{"dS", dtype, extra, B, H, Nq, Nk}, point<&Problem::dS>},
  };
}

std::set<std::string> tensors_of(const std::vector<const Module*>& modules, bool alibi) {
  std::set<std::string> names;
  for (const Module* module : modules) {
    std::istringstream words(module->tensors);
    for (std::string name; words >> name;) names.insert(name);
  }
  if (alibi)
    names.insert("slopes");
  else
    names.erase("slopes");
  return names;
}

double device_bytes(const Shape& shape, const std::set<std::string>& names, Index splits) {
  double bytes = 0;  // sizes of any problem that can be typed: a sum of integers might overflow
  for (const Tensor& t : tensors(shape, Format::fp16, splits))
    if (names.contains(t.info.name))
      bytes += static_cast<double>(bytes_per_element(t.info.format)) * static_cast<double>(t.info.batch) *
               static_cast<double>(t.info.heads) * static_cast<double>(t.info.rows) * static_cast<double>(t.info.cols);
  return bytes;
}

}  // namespace flash::cuda

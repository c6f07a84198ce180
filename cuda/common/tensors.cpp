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
  return static_cast<std::size_t>(info.elements()) * static_cast<std::size_t>(bytes_per_element(info.format));
}

std::vector<Tensor> tensors(const Shape& s) {
  using enum Format;
  using enum sim::Role;
  const auto [B, H, G, Nq, Nk, d, dv] = s;
  return {
      {{"Q", fp16, input, B, H, Nq, d}, point<&Problem::Q>},
      {{"K", fp16, input, B, G, Nk, d}, point<&Problem::K>},
      {{"V", fp16, input, B, G, Nk, dv}, point<&Problem::V>},
      {{"slopes", fp32, input, 1, H, 1, 1}, point<&Problem::slopes>},
      {{"O", fp16, output, B, H, Nq, dv}, point<&Problem::O>},
      {{"O_acc", fp32, extra, B, H, Nq, dv}, point<&Problem::O_acc>},
      {{"l", fp32, extra, B, H, Nq, 1}, point<&Problem::l>},
      {{"m", fp32, extra, B, H, Nq, 1}, point<&Problem::m>},
      {{"LSE", fp32, extra, B, H, Nq, 1}, point<&Problem::LSE>},
      {{"S", fp16, extra, B, H, Nq, Nk}, point<&Problem::S>},
      {{"P", fp16, extra, B, H, Nq, Nk}, point<&Problem::P>},
      {{"dO", fp16, input, B, H, Nq, dv}, point<&Problem::dO>},
      {{"dQ", fp16, output, B, H, Nq, d}, point<&Problem::dQ>},
      {{"dK", fp16, output, B, G, Nk, d}, point<&Problem::dK>},
      {{"dV", fp16, output, B, G, Nk, dv}, point<&Problem::dV>},
      {{"dQ_acc", fp32, extra, B, H, Nq, d}, point<&Problem::dQ_acc>},
      {{"dP", fp16, extra, B, H, Nq, Nk}, point<&Problem::dP>},
      {{"dS", fp16, extra, B, H, Nq, Nk}, point<&Problem::dS>},
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

double device_bytes(const Shape& shape, const std::set<std::string>& names) {
  double bytes = 0;  // sizes of any problem that can be typed: a sum of integers might overflow
  for (const Tensor& t : tensors(shape))
    if (names.contains(t.info.name))
      bytes += static_cast<double>(bytes_per_element(t.info.format)) * static_cast<double>(t.info.batch) *
               static_cast<double>(t.info.heads) * static_cast<double>(t.info.rows) * static_cast<double>(t.info.cols);
  return bytes;
}

}  // namespace flash::cuda

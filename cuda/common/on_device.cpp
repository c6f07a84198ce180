#include "cuda/common/on_device.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "cuda/common/tensors.hpp"
#include "sim/memory/eigen.hpp"
#include "stages/common/visible_tiles.hpp"
// Last: it brings CUDA's words.
#include "cuda/common/problem.hpp"

namespace flash::cuda {
namespace {

/// In 16 bits each, rounded to `dtype`.
std::vector<std::uint16_t> rounded(const std::vector<double>& values, Format dtype) {
  std::vector<std::uint16_t> result(values.size());
  std::ranges::transform(values, result.begin(), [&](double x) {
    const auto single = static_cast<float>(x);
    return dtype == Format::bf16 ? Eigen::bfloat16(single).value : Eigen::half(single).x;
  });
  return result;
}

}  // namespace

Problem problem_of(const Inputs& in, const Options& o) {
  const Shape& s = in.shape;
  Problem p{};
  p.batch = s.batch, p.heads = s.heads, p.kv_heads = s.kv_heads, p.Nq = s.Nq, p.Nk = s.Nk;
  p.d = static_cast<int>(s.d);
  p.scale = static_cast<float>(softmax_scale(s, o));
  p.softcap = static_cast<float>(o.softcap);
  p.sees = visibility(s, o);
  p.dropout = o.dropout, p.dropout_seed = o.dropout_seed;
  p.splits = static_cast<int>(std::min<Index>(o.splits, std::numeric_limits<int>::max()));
  p.deterministic = o.deterministic;
  p.bf16 = in.dtype == Format::bf16;
  p.slopes = in.slopes.empty() ? nullptr : in.slopes.data();
  return p;
}

OnDevice::OnDevice(Device& device, const Inputs& in, const Options& o, const std::set<std::string>& names)
    : device_(device), problem_(std::make_unique<Problem>(problem_of(in, o))) {
  Problem& p = *problem_;
  p.slopes = nullptr;
  for (const Tensor& t : tensors(in.shape, in.dtype, o.splits)) {
    const std::string& name = t.info.name;
    if (!names.contains(name)) continue;
    const auto place = [&](const void* contents) {
      void* memory = device_.allocate(name, t.bytes(), contents);
      t.point(p, memory);
      placed_.push_back({name, memory, t.bytes()});
    };
    const std::vector<double>* given = name == "Q"    ? &in.q
                                       : name == "K"  ? &in.k
                                       : name == "V"  ? &in.v
                                       : name == "dO" ? &in.dout
                                                      : nullptr;
    if (given)
      place(rounded(*given, in.dtype).data());
    else
      place(name == "slopes" ? in.slopes.data() : nullptr);
  }
}

OnDevice::~OnDevice() { device_.free_all(); }

const void* OnDevice::find(const std::string& name) const {
  const auto at = std::ranges::find(placed_, name, &Placed::name);
  return at == placed_.end() ? nullptr : at->memory;
}

template <class Element>
std::vector<Element> OnDevice::read(const std::string& name) const {
  const auto at = std::ranges::find(placed_, name, &Placed::name);
  if (at == placed_.end()) throw std::logic_error(name + " is not on the device");
  std::vector<Element> values(at->bytes / sizeof(Element));
  if (name != "S") device_.require_written(at->memory, at->bytes);  // of S the tiles that somebody sees
  device_.copy_out(values.data(), at->memory, at->bytes);
  return values;
}

template std::vector<Eigen::half> OnDevice::read(const std::string&) const;
template std::vector<Eigen::bfloat16> OnDevice::read(const std::string&) const;
template std::vector<float> OnDevice::read(const std::string&) const;

}  // namespace flash::cuda

#include "sim/trace/trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

namespace flash::trace {
namespace {

const char* role_name(sim::Role role) {
  return role == sim::Role::input ? "input" : role == sim::Role::output ? "output" : "extra";
}

}  // namespace

Json number(double x, bool is_double) {
  if (std::isnan(x)) return "nan";
  if (std::isinf(x)) return x > 0 ? "inf" : "-inf";
  if (is_double) return x;
  return std::stod(fmt::format("{}", static_cast<float>(x)));
}

Recording::Recording(const Contents& inputs) {
  for (const Content& input : inputs) {
    Json values = Json::array();
    for (const double x : input.values) values.push_back(number(x, input.info.format == Format::fp64));
    bytes_ += values.dump().size();
    add_tensor(input.info, std::move(values));
  }
}

void Recording::add_tensor(const sim::TensorInfo& info, Json values) {
  tensors_.push_back({{"name", info.name},
                      {"role", role_name(info.role)},
                      {"dtype", name(info.format)},
                      {"batch", info.batch},
                      {"heads", info.heads},
                      {"rows", info.rows},
                      {"cols", info.cols},
                      {"values", std::move(values)}});
}

std::size_t Recording::tensor(const sim::TensorInfo& info) {
  for (std::size_t n = 0; n < tensors_.size(); ++n)
    if (tensors_[n]["name"] == info.name) return n;
  add_tensor(info, nullptr);
  return tensors_.size() - 1;
}

std::size_t Recording::lane(const Json& lane) {
  for (std::size_t n = 0; n < lanes_.size(); ++n)
    if (lanes_[n] == lane) return n;
  lanes_.push_back(lane);
  return lanes_.size() - 1;
}

void Recording::chapter(const std::string& name) {
  if (!cut_ && (chapters_.empty() || chapters_.back()["name"] != name))
    chapters_.push_back({{"name", name}, {"first", steps_.size()}});
}

void Recording::add(Json step) {
  ++all_;
  const std::size_t bytes = cut_ ? 0 : step.dump().size() + 1;
  cut_ = cut_ || bytes_ + bytes > most_bytes;
  if (cut_) return;
  bytes_ += bytes;
  steps_.push_back(std::move(step));
}

std::string Recording::why_cut() const {
  const bool has_heads = std::ranges::any_of(
      tensors_, [](const Json& t) { return t["batch"].get<Index>() * t["heads"].get<Index>() > 1; });
  return fmt::format("a trace takes {} MB at most; take a smaller problem{}", static_cast<double>(most_bytes) / 1e6,
                     has_heads ? " or one head (--head 0)" : "");
}

void Recording::finish(Json& document) {
  document["cut"] = nullptr;
  if (cut_) document["cut"] = {{"steps", steps_.size()}, {"of", all_}, {"why", why_cut()}};
  document["chapters"] = std::move(chapters_);
  document["files"] = files.json();
  document["tensors"] = std::move(tensors_);
  document["lanes"] = std::move(lanes_);
  document["steps"] = std::move(steps_);
}

}  // namespace flash::trace

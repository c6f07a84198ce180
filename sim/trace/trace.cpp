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

std::size_t Recording::tensor(const sim::TensorInfo& info) {
  for (std::size_t n = 0; n < tensors_.size(); ++n)
    if (tensors_[n]["name"] == info.name) return n;
  Json values = nullptr;
  if (const auto given = inputs_.find(info.name); given != inputs_.end()) {
    values = Json::array();
    for (const double x : given->second) values.push_back(number(x, info.format == Format::fp64));
    numbers_ += given->second.size();
  }
  tensors_.push_back({{"name", info.name},
                      {"role", role_name(info.role)},
                      {"dtype", name(info.format)},
                      {"batch", info.batch},
                      {"heads", info.heads},
                      {"rows", info.rows},
                      {"cols", info.cols},
                      {"values", std::move(values)}});
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

void Recording::add(Json step, std::size_t numbers) {
  ++all_;
  cut_ = cut_ || numbers_ + numbers > most_numbers;
  if (cut_) return;
  numbers_ += numbers;
  steps_.push_back(std::move(step));
}

void Recording::finish(Json& document) {
  document["cut"] = nullptr;
  if (cut_)
    document["cut"] = {
        {"steps", steps_.size()},
        {"of", all_},
        {"why",
         fmt::format("a trace keeps {} numbers at most; take a smaller problem, one head (--head 0) or larger tiles",
                     most_numbers)}};
  document["chapters"] = std::move(chapters_);
  document["files"] = files.json();
  document["tensors"] = std::move(tensors_);
  document["lanes"] = std::move(lanes_);
  document["steps"] = std::move(steps_);
}

}  // namespace flash::trace

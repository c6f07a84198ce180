// What a trace is made of (docs/schema/step.schema.json): tensors in HBM, and steps that change them and the tiles in
// SRAM.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sim/memory/hbm.hpp"
#include "sim/trace/source.hpp"

namespace flash::trace {

/// Most numbers that a trace keeps; with them its file stays below 5 MB.
constexpr std::size_t most_numbers = 350'000;

/// A number as JSON has it; "-inf", "inf" and "nan" as strings. An fp32 value takes the shortest text that is it again.
Json number(double x, bool is_double);

/// Values of tensors by name, [batch, heads, rows, cols]: what the inputs hold before the run.
using Contents = std::map<std::string, std::vector<double>>;

/// The recorded part of a trace document: "cut", "chapters", "files", "tensors", "lanes" and "steps".
class Recording {
 public:
  explicit Recording(Contents inputs) : inputs_(std::move(inputs)) {}

  SourceFiles files;

  /// Its number in the trace.
  std::size_t tensor(const sim::TensorInfo& info);
  std::size_t lane(const Json& lane);
  void chapter(const std::string& name);

  /// `numbers`: how many values it holds. Once the trace is full, steps are only counted.
  void add(Json step, std::size_t numbers);
  bool full() const { return cut_; }
  void skip() { ++all_; }  ///< a step that a full trace has no room for

  /// Moves the parts into `document`.
  void finish(Json& document);

 private:
  Contents inputs_;
  Json tensors_ = Json::array(), chapters_ = Json::array(), lanes_ = Json::array(), steps_ = Json::array();
  std::size_t numbers_ = 0, all_ = 0;
  bool cut_ = false;
};

}  // namespace flash::trace

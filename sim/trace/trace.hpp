// What a trace is made of (docs/schema/step.schema.json): tensors in HBM, and steps that change them and the tiles in
// SRAM.
#pragma once

#include <string>
#include <vector>

#include "sim/memory/hbm.hpp"
#include "sim/trace/source.hpp"

namespace flash::trace {

/// Most bytes of the steps and tensors of a trace: with the page around it a file stays below 5 MB.
constexpr std::size_t most_bytes = 4'500'000;

/// A number as JSON has it; "-inf", "inf" and "nan" as strings. An fp32 value takes the shortest text that is it again.
Json number(double x, bool is_double);

/// An input: what it holds before the run, [batch, heads, rows, cols].
struct Content {
  sim::TensorInfo info;
  std::vector<double> values;
};
using Contents = std::vector<Content>;

/// The recorded part of a trace document: "cut", "chapters", "files", "tensors", "lanes" and "steps".
class Recording {
 public:
  explicit Recording(const Contents& inputs);

  SourceFiles files;

  /// Its number in the trace.
  std::size_t tensor(const sim::TensorInfo& info);
  std::size_t lane(const Json& lane);
  void chapter(const std::string& name);

  /// Once the trace is full, steps are only counted.
  void add(Json step);
  bool full() const { return cut_; }
  void skip() { ++all_; }  ///< a step that a full trace has no room for

  /// Moves the parts into `document`.
  void finish(Json& document);

 private:
  std::string why_cut() const;

  void add_tensor(const sim::TensorInfo& info, Json values);

  Json tensors_ = Json::array(), chapters_ = Json::array(), lanes_ = Json::array(), steps_ = Json::array();
  std::size_t bytes_ = 0, all_ = 0;
  bool cut_ = false;
};

}  // namespace flash::trace

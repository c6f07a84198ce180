// Records a run of a CPU stage, step by step, as an observer of its machine.
#pragma once

#include <map>

#include "sim/memory/event.hpp"
#include "sim/trace/trace.hpp"

namespace flash::trace {

class StageRecorder {
 public:
  explicit StageRecorder(const Contents& inputs) : recording_(inputs) {}
  void add(const sim::Event& event);
  void finish(Json& document) { recording_.finish(document); }

 private:
  Json step(const sim::Event& e);
  void give_back(int tile);
  void add_cost(Json& step, const sim::Event& e);
  void add_values(Json& step, const sim::Event& e);
  std::vector<double> stored(const sim::Event& e);

  Recording recording_;
  std::map<const void*, int> tiles_;  ///< in SRAM, by their memory
  int next_tile_ = 0;
  std::map<const sim::TensorInfo*, std::vector<double>> stored_;  ///< 16-bit tensors, as stores and sums left them
  Json takes_ = Json::array(), releases_ = Json::array();         ///< since the last step
  sim::SramTraffic sram_;                                         ///< the worker's counts at the last step
  sim::Flops flops_;
};

}  // namespace flash::trace

// The arithmetic of a small run, event by event: what `run --steps` prints.
#pragma once

#include <string>

#include "sim/memory/tile.hpp"

namespace flash {

/// Collects every load, computed tile and store of a run, with its values, as text.
class Steps {
 public:
  void add(const sim::Event& event);
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  Index worker_ = -1, batch_ = 0, head_ = 0;
};

}  // namespace flash

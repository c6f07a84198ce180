// How far a long command is, on standard error where that is a terminal; nothing anywhere else.
#pragma once

#include <string>

namespace flash::app {

/// One line that is written over: "verify: 3 of 16, bf16, d = 64". It is gone when this goes.
class Progress {
 public:
  Progress(std::string command, int steps);
  ~Progress();
  Progress(const Progress&) = delete;

  /// The next step begins.
  void next(const std::string& what);

 private:
  std::string command_;
  int steps_, begun_ = 0;
  bool shown_;
};

}  // namespace flash::app

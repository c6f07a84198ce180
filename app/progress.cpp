#include "app/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

namespace flash::app {
namespace {
constexpr const char* clear_line = "\r\033[K";
}

Progress::Progress(std::string command, int steps)
    : command_(std::move(command)), steps_(steps), shown_(isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() {
  if (shown_) fmt::print(stderr, "{}", clear_line);
}

void Progress::next(const std::string& what) {
  ++begun_;
  if (shown_) fmt::print(stderr, "{}{}: {} of {}, {}", clear_line, command_, begun_, steps_, what);
}

}  // namespace flash::app

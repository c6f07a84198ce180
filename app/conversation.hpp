// A program that runs beside this one and answers a line for each line that it is asked.
#pragma once

#include <sys/types.h>

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace flash::app {

class Conversation {
 public:
  /// Starts `arguments` (the program first, looked up in PATH). @throws Refused where there is no such program.
  explicit Conversation(const std::vector<std::string>& arguments);
  ~Conversation();
  Conversation(const Conversation&) = delete;

  /// The answer; nothing where the program has ended, or is silent for so long that it is ended here.
  std::optional<std::string> ask(const std::string& line);

  /// Why it ended: the last line that it said on standard error.
  std::string last_words() const;

 private:
  void end();

  pid_t id_ = 0;
  int to_ = -1, from_ = -1;
  std::string heard_;  ///< of the next answers
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> complaints_;
};

}  // namespace flash::app

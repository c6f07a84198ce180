// Another program run to its end: its arguments are passed as they are, no shell reads them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace flash::app {

struct Child {
  bool started = false;    ///< false: there is no such program
  int status = 0;          ///< exit status; 128 + signal where one ended it
  std::string output;      ///< standard output
  std::string complaints;  ///< standard error
};

/// Runs `arguments` (the program first, looked up in PATH) with `input` as standard input.
/// @throws Refused where no temporary file can be made.
Child run_child(const std::vector<std::string>& arguments, std::string_view input = "");

}  // namespace flash::app

#include "app/commands.hpp"

namespace flash::app {

void add_diff(CLI::App& program, int&) { program.add_subcommand("diff", "stub"); }

}  // namespace flash::app

#include "app/commands.hpp"

namespace flash::app {

void add_why(CLI::App& program, int&) { program.add_subcommand("why", "stub"); }

}  // namespace flash::app

#include "app/commands.hpp"

namespace flash::app {

void add_run(CLI::App& program, int&) { program.add_subcommand("run", "stub"); }

}  // namespace flash::app

#include "app/commands.hpp"

namespace flash::app {

void add_theorem2(CLI::App& program, int&) { program.add_subcommand("theorem2", "stub"); }

}  // namespace flash::app

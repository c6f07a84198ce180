#include "app/commands.hpp"

namespace flash::app {

void add_tour(CLI::App& program, int&) { program.add_subcommand("tour", "stub"); }

}  // namespace flash::app

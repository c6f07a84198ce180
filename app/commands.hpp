// The commands of the command line: each lives in a file of its own and adds itself to the program.
#pragma once

#include <CLI/CLI.hpp>

namespace flash::app {

/// Exit status of the program. What can't be done is thrown as Refused and becomes `refused`.
enum Status : int { ok = 0, check_failed = 1, refused = 2 };

/// Adds the subcommand with its options and help. It runs in the subcommand's callback, which sets `status` to
/// `check_failed` where a check failed, throws Refused before anything is printed, and prints its result through
/// app/output.hpp.
void add_tour(CLI::App& program, int& status);
void add_run(CLI::App& program, int& status);
void add_why(CLI::App& program, int& status);
void add_diff(CLI::App& program, int& status);
void add_theorem2(CLI::App& program, int& status);
void add_probe(CLI::App& program, int& status);
void add_trace(CLI::App& program, int& status);
void add_step(CLI::App& program, int& status);
void add_verify(CLI::App& program, int& status);
void add_bench(CLI::App& program, int& status);

}  // namespace flash::app

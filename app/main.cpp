// The command line: finds the command, runs it, and turns what it can't do into one sentence and exit status 2.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "app/commands.hpp"
#include "app/output.hpp"
#include "sim/memory/sram.hpp"
#include "stages/common/options.hpp"

namespace flash::app {
namespace {

/// A command of the launcher's, named here for --help.
void add_launchers(CLI::App& program, const char* name, const char* does) {
  CLI::App* command = program.add_subcommand(name, fmt::format("{} (./flashsteps {})", does, name));
  command->group("Commands")->allow_extras();
  command->callback([name] {
    throw Refused(
        fmt::format("{0} was asked of the program itself, but it is the launcher's to build for it and run it; say "
                    "./flashsteps {0} in the project's folder",
                    name));
  });
}

void add_commands(CLI::App& program, int& status) {
  program.require_subcommand(1);
  add_tour(program, status);
  add_run(program, status);
  add_why(program, status);
  add_diff(program, status);
  add_theorem2(program, status);
  add_probe(program, status);
  add_step(program, status);
  add_trace(program, status);
  add_verify(program, status);
  add_bench(program, status);
  for (CLI::App* command : program.get_subcommands({})) command->group("Commands");
  add_launchers(program, "notebooks", "[--run] opens the C++ notebooks, or runs them all");
  add_launchers(program, "pages", "builds the site and prints the path of its first page");
  add_launchers(program, "test", "[--quick | --deep] builds and runs the tests");
}

/// CLI11 would take a wrong command for a superfluous argument.
void require_command(const CLI::App& program, int argc, char** argv) {
  std::vector<std::string> names;
  for (const CLI::App* command : program.get_subcommands({})) names.push_back(command->get_name());
  const std::string_view first = argc > 1 ? argv[1] : "";
  if (first == "--help" || first == "-h" || first == "--version" || std::ranges::find(names, first) != names.end())
    return;
  const std::string asked =
      argc > 1 ? fmt::format("\"{}\" was asked, which is no command", first) : "no command was given";
  throw Refused(fmt::format("{}; take one of {}, or --help", asked, fmt::join(names, ", ")));
}

/// Where help on what was typed is to be had.
std::string help_of(const CLI::App& program) {
  const auto commands = program.get_subcommands();
  return commands.empty() ? "flashsteps --help" : fmt::format("flashsteps {} --help", commands.front()->get_name());
}

int refuse(std::string_view sentence) {
  fmt::print(stderr, "flashsteps: {}\n", one_line(sentence));
  return refused;
}

int run_program(CLI::App& program, const int& status, int argc, char** argv) {
  try {
    require_command(program, argc, argv);
    program.parse(argc, argv);
    return status;
  } catch (const CLI::CallForVersion& version) {
    print(fmt::format("{}\n", version.what()));
  } catch (const CLI::Success&) {
    print(program.help());
  } catch (const CLI::ParseError& error) {
    return refuse(fmt::format("{}; {} says what can be asked", error.what(), help_of(program)));
  }
  return ok;
}

}  // namespace
}  // namespace flash::app

int main(int argc, char** argv) {
  using namespace flash;
  std::signal(SIGPIPE, SIG_IGN);  // a reader that stops reading is not an error of ours
  std::signal(SIGXFSZ, SIG_IGN);  // a file over the limit is a write that fails
  CLI::App program("FlashAttention, one numbered step at a time: every stage computes and counts what it moves.",
                   "flashsteps");
  program.set_version_flag("--version", "flashsteps " FLASH_VERSION);
  int status = app::ok;
  try {
    app::add_commands(program, status);
    return app::run_program(program, status, argc, argv);
  } catch (const std::bad_alloc&) {
    return app::refuse(
        "this needs more memory than there is; or than this process may take; take a smaller problem, or on the CPU "
        "--count-only");
  } catch (const std::exception& error) {  // Refused, CapacityError
    return app::refuse(error.what());
  }
}

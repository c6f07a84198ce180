// `run STAGE`: one stage on given or generated input.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/commands.hpp"
#include "app/heading.hpp"
#include "app/kernel_report.hpp"
#include "app/output.hpp"
#include "app/run_report.hpp"
#include "app/steps.hpp"
#include "stages/common/npy.hpp"

namespace flash::app {
namespace {

namespace fs = std::filesystem;

struct RunCommand {
  RunOptions problem;
  bool json = false, steps = false;
  std::string out;
};

// ---- output files

/// [batch, heads, rows, width] with as many axes as the inputs have; width 0: without the last one.
std::vector<Index> file_shape(const Asked& asked, Index heads, Index rows, Index width) {
  std::vector<Index> shape{asked.inputs.shape.batch, heads, rows};
  if (width > 0) shape.push_back(width);
  shape.erase(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(4 - asked.axes));
  return shape;
}

void write_outputs(const std::string& folder, const Asked& asked, const Outputs& out) {
  const Shape& s = asked.inputs.shape;
  const char* type = asked.inputs.dtype == Format::fp64 ? "<f8" : "<f4";
  std::map<std::string, Bytes> files;
  const auto add = [&](const char* file, const std::vector<double>& values, Index heads, Index rows, Index width) {
    files[file] = npy_bytes(file_shape(asked, heads, rows, width), values, type);
  };
  add("o.npy", out.o, s.heads, s.Nq, s.dv);
  add("lse.npy", out.lse, s.heads, s.Nq, 0);
  if (asked.config.backward) {
    add("dq.npy", out.dq, s.heads, s.Nq, s.d);
    add("dk.npy", out.dk, s.kv_heads, s.Nk, s.d);
    add("dv.npy", out.dv, s.kv_heads, s.Nk, s.dv);
    if (asked.made_dout) add("do.npy", asked.inputs.dout, s.heads, s.Nq, s.dv);
  }
  write_files(folder, files);
}

// ---- what fits together

void require_consistent(const RunCommand& c) {
  if (c.problem.count_only) {
    const std::pair<const char*, bool> need_values[] = {
        {"--check", c.problem.check}, {"--out", !c.out.empty()}, {"--steps", c.steps}};
    for (const auto& [option, given] : need_values)
      if (given)
        throw Refused(
            fmt::format("{} was asked with --count-only, which computes no values; leave one of them out", option));
  }
  if (c.steps && c.problem.on != "cpu")
    throw Refused(
        fmt::format("--steps was asked with --on {}, but steps are the tiles of a CPU run; leave it out or take "
                    "--on cpu",
                    c.problem.on));
  if (c.steps && c.json)
    throw Refused("--steps was asked with --json, but steps are text for people; leave one of them out");
  std::error_code ignored;
  if (!c.out.empty() && fs::exists(c.out, ignored) &&
      (!fs::is_directory(c.out, ignored) || access(c.out.c_str(), W_OK) != 0))
    throw Refused(
        fmt::format("--out {} was asked for, but it is not a directory that can be written; name another", c.out));
}

/// Every value of a run is printed: that is for an example that fits on a slide.
void require_small(const Shape& s) {
  constexpr Index most = 1024;
  const Index largest =
      s.batch * s.heads * std::max({s.Nq * s.Nk, s.Nq * std::max(s.d, s.dv), s.Nk * std::max(s.d, s.dv)});
  if (largest > most)
    throw Refused(
        fmt::format("--steps was asked of a problem with a matrix of {} elements, but it prints every value and "
                    "takes {} at most; try --example hand",
                    largest, most));
}

// ---- the command

/// The law of a pass, or why there is none where kernels ran it.
Law law_of_pass(const Asked& asked, const Pass& pass, const ProgramFacts& facts) {
  if (asked.kernels && !asked.kernels->virtual_device) return {{}, false, "a GPU counts nothing; take --on vgpu"};
  if (asked.kernels && !pass.blocks)
    return {{},
            false,
            "in kernels without tiles each thread fetches its operands by itself, more often than the law has it"};
  return law_of(pass, facts.law, asked.inputs, asked.options);
}

/// What was run, with everything that is to be said about it.
Reported report(const Asked& asked, const RunResult& result, bool with_check) {
  const Stage& stage = *asked.stage;
  Reported r{asked,
             result,
             visible_pairs(asked.inputs, asked.options),
             law_of_pass(asked, result.forward, stage.forward_facts),
             {},
             {}};
  if (result.backward) r.backward = law_of_pass(asked, *result.backward, stage.backward_facts);
  if (with_check) {
    const bool stores_scores = stage.lse == "S";
    const Reference exact = reference(asked.inputs, asked.options, asked.config.backward, stores_scores);
    r.check = check(result.outputs, exact, asked.inputs, asked.options);
  }
  return r;
}

/// Runs, reports, and says whether all checks passed.
Status execute(const RunCommand& c) {
  require_consistent(c);
  Asked asked = app::asked(c.problem);
  Steps steps;
  if (c.steps) {
    require_small(asked.inputs.shape);
    asked.config.observer = [&](const sim::Event& event) { steps.add(event); };
  }
  const RunResult result =
      asked.kernels ? cuda::execute(*asked.kernels, asked.inputs, asked.options, asked.config.allow_nonfinite)
                    : run(*asked.stage, asked.inputs, asked.options, asked.config);
  const bool watched = asked.kernels && asked.kernels->virtual_device;
  const std::string faults = watched ? reports_text(*asked.stage, *asked.kernels->virtual_device) : "";
  const Reported reported = report(asked, result, c.problem.check && faults.empty());

  if (!c.out.empty() && faults.empty()) write_outputs(c.out, asked, result.outputs);
  if (c.json)
    print_json(run_json(reported));
  else
    print(!c.steps ? run_report(reported) : steps.text() + (reported.check ? check_report(*reported.check) : ""));
  fmt::print(stderr, "{}", faults);
  const bool failed = reported.check && !reported.check->pass();
  if (failed) fmt::print(stderr, "flashsteps: {}\n", one_line(reported.check->message()));
  return failed || !faults.empty() ? check_failed : ok;
}

}  // namespace

void add_run(CLI::App& program, int& status) {
  CLI::App* run = program.add_subcommand("run", "runs one stage on given or generated input and shows what it moved");
  const auto c = std::make_shared<RunCommand>();
  add_run_options(*run, c->problem);
  const Heading output(*run, "Output");
  output.flag("--check", c->problem.check, "compare with the fp64 oracle; exit status 1 beyond the tolerance");
  output.flag("--json", c->json, "one JSON document (docs/schema/run.schema.json)");
  output.flag("--steps", c->steps, "every tile and value of a small run, in order");
  output.text("--out", c->out, "DIR", "folder for o.npy, lse.npy and with --backward dq, dk, dv (and do)");
  run->footer("Example: flashsteps run 03 --n 256 --d 64 --causal --sram 64KiB --check");
  run->callback([c, &status] { status = execute(*c); });
}

}  // namespace flash::app

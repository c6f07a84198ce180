// `trace STAGE`: the nominal timeline of a run on the virtual GPU, as a Chrome trace.
#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "app/commands.hpp"
#include "app/heading.hpp"
#include "app/kernel_report.hpp"
#include "app/output.hpp"

namespace flash::app {
namespace {

struct TraceCommand {
  RunOptions problem;
  std::string out;
};

Status trace(const TraceCommand& c) {
  if (c.problem.on != "vgpu")
    throw Refused(
        fmt::format("a trace of a run on {} was asked for, but only the virtual GPU keeps a timeline; take --on vgpu",
                    c.problem.on));
  require_file_name(c.out);
  const Asked asked = app::asked(c.problem);
  cuda::execute(*asked.kernels, asked.inputs, asked.options, asked.config.allow_nonfinite);
  const cuda::VirtualDevice& device = *asked.kernels->virtual_device;
  const std::string document = device.trace();
  write_file(c.out, document);

  std::uint64_t cycles = 0, ctas = 0;
  for (const cuda::Watched& watched : device.watched()) cycles += watched.counts.cycles, ctas += watched.counts.ctas;
  print(
      fmt::format("{}: {} nominal cycles of {} {}, one shown as a microsecond: a shape, not a prediction; open it at "
                  "https://ui.perfetto.dev\n",
                  c.out, grouped(static_cast<long long>(cycles)), grouped(static_cast<long long>(ctas)),
                  ctas == 1 ? "CTA" : "CTAs"));
  const std::string faults = reports_text(*asked.stage, device);
  fmt::print(stderr, "{}", faults);
  return faults.empty() ? ok : check_failed;
}

}  // namespace

void add_trace(CLI::App& program, int& status) {
  CLI::App* command =
      program.add_subcommand("trace", "writes the timeline of a run on the virtual GPU as a Chrome trace");
  const auto c = std::make_shared<TraceCommand>();
  c->problem.on = "vgpu";
  c->problem.timeline = true;
  add_run_options(*command, c->problem);
  Heading(*command, "Output")
      .text("--out", c->out, "FILE", "the trace (docs/schema/trace.schema.json), for ui.perfetto.dev");
  command->get_option("--out")->required();
  command->footer("Example: flashsteps trace 03 --n 256 --causal --out trace.json");
  command->callback([c, &status] { status = trace(*c); });
}

}  // namespace flash::app

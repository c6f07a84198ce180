// `probe`: what this build can run on this machine, and where it can't, why.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/utsname.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "app/backend.hpp"
#include "app/commands.hpp"
#include "app/lesson.hpp"
#include "app/output.hpp"
#include "app/table.hpp"

namespace flash::app {
namespace {

using Json = nlohmann::ordered_json;
using cuda::Backend;

constexpr Format dtypes[] = {Format::fp64, Format::fp32, Format::fp16, Format::bf16};

// ---- the machine

#ifdef __clang__
constexpr const char* kCompiler = "clang " __clang_version__;
#else
constexpr const char* kCompiler = "g++ " __VERSION__;
#endif

struct Machine {
  std::string system;                 ///< "Linux x86_64"
  std::string vgpu_lacks, gpu_lacks;  ///< why there is none; empty: there is one
  const cuda::Cuda* cuda = nullptr;   ///< of the build
  std::string driver;
  std::vector<cuda::GpuFacts> gpus;
};

void look_for_gpus(Machine& m) {
  m.cuda = cuda::find_cuda();
  if (m.cuda) m.driver = driver_text(*m.cuda);
  try {
    const int count = find_gpus().count;
    for (int n = 0; n < count; ++n) m.gpus.push_back(m.cuda->facts(n));
  } catch (const std::exception& error) {
    m.gpu_lacks = error.what();
  }
}

Machine look() {
  Machine m;
  utsname name{};
  uname(&name);
  m.system = fmt::format("{} {}", name.sysname, name.machine);
  if (!cuda::has_kernels(Backend::vgpu)) m.vgpu_lacks = cuda::why_no_virtual_gpu();
  look_for_gpus(m);
  return m;
}

// ---- programs

/// One program of a stage on one backend: what it takes, or why it can't run.
struct Runs {
  std::string why_not;
  std::vector<Format> dtypes;
  std::vector<int> head_sizes;  ///< empty: any
  std::vector<std::string> options;
};

struct ProgramRow {
  Step step;
  Runs cpu, vgpu, gpu;
};

Runs kernel_runs(const Step& step, Backend backend, const Machine& machine) {
  const std::string& lacks = backend == Backend::vgpu ? machine.vgpu_lacks : machine.gpu_lacks;
  const cuda::Module* module = nullptr;
  try {
    module = cuda::find_module(backend, step.stage->source(Side::cuda, step.direction));
  } catch (const Refused& refused) {
    return {refused.what(), {}, {}, {}};
  }
  if (!lacks.empty()) return {lacks, {}, {}, {}};
  if (!module) return {"no kernels are written for it", {}, {}, {}};
  if (backend == Backend::gpu && cuda::arch(*module) > machine.gpus.front().arch)
    return {fmt::format("its kernels need sm_{} or newer", cuda::arch(*module)), {}, {}, {}};
  return {"", cuda::dtypes(*module), cuda::head_sizes(*module), cuda::options_taken(*module)};
}

std::vector<ProgramRow> programs(const Machine& machine) {
  std::vector<ProgramRow> rows;
  for (const Stage& stage : stages())
    for (const Direction direction : {Direction::forward, Direction::backward}) {
      const Step step{&stage, direction};
      const bool on_cpu = stage.has(Side::cpu, direction), in_cuda = stage.has(Side::cuda, direction);
      const Runs none{
          direction == Direction::backward ? "the stage has no backward pass" : "there are only kernels", {}, {}, {}};
      const Runs cpu{"", {std::begin(dtypes), std::end(dtypes)}, {}, stage.options};
      rows.push_back({step, on_cpu ? cpu : none, in_cuda ? kernel_runs(step, Backend::vgpu, machine) : none,
                      in_cuda ? kernel_runs(step, Backend::gpu, machine) : none});
    }
  return rows;
}

// ---- text

std::string names(const std::vector<Format>& formats) {
  std::vector<std::string_view> words;
  for (const Format format : formats) words.push_back(name(format));
  return fmt::format("{}", fmt::join(words, " "));
}

std::string cell(const Runs& runs) {
  if (!runs.why_not.empty()) return "no";
  return names(runs.dtypes) + (runs.head_sizes.empty() ? "" : fmt::format(", d {}", fmt::join(runs.head_sizes, " ")));
}

/// Each reason once, with the programs and backends that it holds for; but those of the machine, which are said above.
std::string reasons(const Machine& machine, const std::vector<ProgramRow>& rows) {
  std::vector<std::pair<std::string, std::string>> found;  // why, who
  const auto add = [&](const std::string& why, const std::string& who) {
    if (why.empty() || why == machine.gpu_lacks || why == machine.vgpu_lacks) return;
    for (auto& [same, all] : found)
      if (same == why) return void(all += ", " + who);
    found.emplace_back(why, who);
  };
  for (const ProgramRow& row : rows) {
    const std::string program = fmt::format("{} {}", row.step.stage->short_name(), name(row.step.direction));
    if (row.cpu.why_not == row.vgpu.why_not && row.cpu.why_not == row.gpu.why_not) {
      add(row.cpu.why_not, program);
      continue;
    }
    add(row.cpu.why_not, program + " on cpu");
    add(row.vgpu.why_not, program + " on vgpu");
    add(row.gpu.why_not, program + " on gpu");
  }
  std::string text;
  for (const auto& [why, who] : found) text += paragraph("no: ", who + ": " + why, columns);
  return text;
}

std::string options_text(const std::vector<ProgramRow>& rows) {
  std::string text;
  for (const ProgramRow& row : rows)
    for (const auto& [backend, runs] : {std::pair{"cpu", &row.cpu}, {"vgpu", &row.vgpu}, {"gpu", &row.gpu}})
      if (runs->why_not.empty())
        text +=
            paragraph(fmt::format("{:3} {:8} {:4}  ", row.step.stage->short_name(), name(row.step.direction), backend),
                      fmt::format("{}", fmt::join(runs->options, ", ")), columns);
  return text;
}

/// Which letters a stage's number alone means.
std::string main_letters() {
  const auto letter = [](const Stage& s, Side side, Direction d) {
    return s.has(side, d) ? find_program(s.source(side, d)).first->short_name() : "none";
  };
  std::string text;
  for (const Stage& s : main_stages()) {
    if (find_program(s.source(Side::cpu, Direction::forward)).first->letter().empty()) continue;
    using enum Direction;
    text += fmt::format("{} without a letter: forward {}, backward {} on cpu; {} and {} on vgpu and gpu\n", s.number(),
                        letter(s, Side::cpu, forward), letter(s, Side::cpu, backward), letter(s, Side::cuda, forward),
                        letter(s, Side::cuda, backward));
  }
  return text;
}

std::string gpu_text(const cuda::GpuFacts& gpu) {
  return fmt::format("{} (sm_{}): {} SMs, {} of memory, {} of L2, {} of shared memory a CTA", gpu.name, gpu.arch,
                     gpu.sms, decimal_bytes(static_cast<Index>(gpu.memory_bytes)),
                     decimal_bytes(static_cast<Index>(gpu.l2_bytes)),
                     binary_bytes(static_cast<Index>(gpu.smem_per_cta)));
}

std::string text(const Machine& m, const std::vector<ProgramRow>& rows) {
  std::string all = fmt::format("host         {}; built by {}\n", m.system, kCompiler);
  all += fmt::format("virtual GPU  {}\n", m.vgpu_lacks.empty() ? "yes" : "no: " + m.vgpu_lacks);
  all += fmt::format(
      "CUDA         {}\n",
      m.cuda ? fmt::format("in this build: {}, {}", m.cuda->compiler, m.cuda->built_for) : "not in this build");
  if (m.cuda) all += fmt::format("driver       {}\n", m.driver);
  for (const cuda::GpuFacts& gpu : m.gpus) all += fmt::format("GPU          {}\n", gpu_text(gpu));
  if (m.gpus.empty()) all += paragraph("GPU          ", "none: " + m.gpu_lacks, columns);
  Table table;
  table.column("stage", "", Table::Align::left).column("", "", Table::Align::left);
  for (const char* backend : {"cpu", "vgpu", "gpu"}) table.column(backend, "", Table::Align::left);
  for (const ProgramRow& row : rows)
    table.row(
        {row.step.stage->id, std::string(name(row.step.direction)), cell(row.cpu), cell(row.vgpu), cell(row.gpu)});
  return all + "\n" + table.text() + reasons(m, rows) + main_letters() + "\nOptions that they take\n" +
         options_text(rows);
}

// ---- JSON

Json json(const Runs& runs) {
  Json formats = Json::object();
  for (const Format format : dtypes) {
    const bool taken = std::ranges::find(runs.dtypes, format) != runs.dtypes.end();
    Json& entry = formats[std::string(name(format))];
    entry["runs"] = taken;
    if (!taken) entry["why"] = runs.why_not.empty() ? "the kernels take fp16" : runs.why_not;
  }
  return {{"dtypes", formats},
          {"head_sizes", runs.head_sizes.empty() ? Json(nullptr) : Json(runs.head_sizes)},
          {"options", runs.options}};
}

Json json(const Machine& m) {
  Json gpus = Json::array();
  for (const cuda::GpuFacts& gpu : m.gpus)
    gpus.push_back({{"name", gpu.name},
                    {"arch", fmt::format("sm_{}", gpu.arch)},
                    {"sms", gpu.sms},
                    {"memory_bytes", gpu.memory_bytes},
                    {"l2_bytes", gpu.l2_bytes},
                    {"smem_per_cta_bytes", gpu.smem_per_cta}});
  Json vgpu = {{"runs", m.vgpu_lacks.empty()}}, gpu = {{"runs", m.gpu_lacks.empty()}};
  if (!m.vgpu_lacks.empty()) vgpu["why"] = m.vgpu_lacks;
  if (!m.gpu_lacks.empty()) gpu["why"] = m.gpu_lacks;
  return {{"host", {{"system", m.system}, {"compiler", kCompiler}}},
          {"vgpu", vgpu},
          {"gpu", gpu},
          {"cuda", m.cuda ? Json{{"compiler", m.cuda->compiler}, {"built_for", m.cuda->built_for}, {"driver", m.driver}}
                          : Json(nullptr)},
          {"gpus", gpus}};
}

void probe(bool as_json) {
  const Machine machine = look();
  const std::vector<ProgramRow> rows = programs(machine);
  if (!as_json) return print(text(machine, rows));
  Json document = json(machine), list = Json::array();
  for (const ProgramRow& row : rows)
    list.push_back({{"stage", row.step.stage->id},
                    {"direction", name(row.step.direction)},
                    {"cpu", json(row.cpu)},
                    {"vgpu", json(row.vgpu)},
                    {"gpu", json(row.gpu)}});
  document["programs"] = list;
  print_json(document);
}

}  // namespace

void add_probe(CLI::App& program, int&) {
  const auto as_json = std::make_shared<bool>(false);
  CLI::App* command = program.add_subcommand("probe", "what this machine can run: stages, backends, dtypes, options");
  command->add_flag("--json", *as_json, "one JSON document (docs/schema/probe.schema.json)");
  command->callback([as_json] { probe(*as_json); });
}

}  // namespace flash::app

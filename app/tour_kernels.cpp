#include "app/tour_kernels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/counted.hpp"
#include "app/ledger_json.hpp"
#include "app/output.hpp"
#include "app/table.hpp"
#include "stages/common/draw.hpp"

namespace flash::app {
namespace {

using Json = nlohmann::ordered_json;

bool same_traffic(const sim::Ledger& a, const sim::Ledger& b) {
  return std::ranges::all_of(std::initializer_list{sim::Access::read, sim::Access::write, sim::Access::rmw},
                             [&](sim::Access access) { return a.by_tensor(access) == b.by_tensor(access); });
}

/// The CPU program's count with the kernels' tiles.
Pass count_on_cpu(const Step& step, Inputs inputs, const std::optional<Blocks>& tiles) {
  Options options;
  if (tiles && step.program().sram_bytes) options.br = tiles->Br, options.bc = tiles->Bc;
  RunConfig config;
  config.machine.count_only = true;
  config.backward = step.direction == Direction::backward;
  inputs.q.clear(), inputs.k.clear(), inputs.v.clear(), inputs.dout.clear();
  RunResult result = run(*step.stage, inputs, options, config);
  return config.backward ? std::move(*result.backward) : std::move(result.forward);
}

OutputCheck worst_of(const CheckResult& checked, Direction direction) {
  std::vector<OutputCheck> checks;  // O, or the gradients; LSE only decides
  for (const OutputCheck& c : checked.outputs)
    if (c.name != "lse" && (c.name == "o") == (direction == Direction::forward)) checks.push_back(c);
  return *std::ranges::max_element(checks, {}, [](const OutputCheck& c) { return c.error / c.tolerance; });
}

bool has_kernels(const Stage& stage, Direction direction) {
  return stage.has(Side::cuda, direction) &&
         cuda::find_module(cuda::Backend::vgpu, stage.source(Side::cuda, direction));
}

void add_stops(KernelTour& tour, const Stage& stage, const Inputs& in, const Reference& all) {
  const Options options;
  const bool backward = has_kernels(stage, Direction::backward);
  cuda::Kernels kernels = cuda::find_kernels(stage, cuda::Backend::vgpu, backward);
  open_virtual_gpu(kernels, {});
  const RunResult result = cuda::execute(kernels, in, options, false);
  Reference wanted = all;
  if (!result.backward) wanted.oracle.dq = wanted.oracle.dk = wanted.oracle.dv = {};
  const auto& watched = kernels.virtual_device->watched();
  const bool has_outputs = !result.outputs.o.empty();
  const CheckResult checked = has_outputs ? check(result.outputs, wanted, in, options) : CheckResult{};

  const auto add = [&](Direction direction, const Pass& pass, const cuda::Watched& watched) {
    KernelStop s{{&stage, direction}, pass, {}, {}, has_outputs && checked.pass(), watched.reports, false};
    if (has_outputs) s.worst = worst_of(checked, direction);
    s.on_cpu = count_on_cpu(s.step, in, pass.blocks);
    s.equal = same_traffic(s.on_vgpu.ledger, s.on_cpu.ledger);
    tour.stops.push_back(std::move(s));
  };
  add(Direction::forward, result.forward, watched[0]);
  if (result.backward) add(Direction::backward, *result.backward, watched[1]);
}

}  // namespace

bool KernelTour::ok() const { return std::ranges::all_of(stops, &KernelStop::ok); }

KernelTour make_kernel_tour() {
  KernelTour tour;
  tour.shape = {1, 1, 1, 144, 144, 64, 64};  // ragged tiles in every stage, in about a second: 01 takes most of it
  if (!cuda::has_kernels(cuda::Backend::vgpu)) {
    tour.why_not = cuda::why_no_virtual_gpu();
    return tour;
  }
  Inputs in = draw_inputs(tour.shape, Format::fp16, 0);
  draw_dout(in, 0);
  const Reference stored_scores = reference(in, Options{}, true, true), fused = reference(in, Options{}, true, false);
  for (const Stage& stage : main_stages())
    if (has_kernels(stage, Direction::forward)) add_stops(tour, stage, in, stage.lse == "S" ? stored_scores : fused);
  std::ranges::stable_sort(tour.stops, {}, [](const KernelStop& s) { return s.step.direction; });
  return tour;
}

std::string text(const KernelTour& tour) {
  if (!tour.why_not.empty())
    return paragraph("", "The stages' CUDA kernels on the virtual GPU can't be shown here: " + tour.why_not + ".",
                     columns);
  const Shape& s = tour.shape;
  std::string all = paragraph(
      "",
      fmt::format(
          "The stages' CUDA kernels, run and checked on the virtual GPU: one head, N = {}, d = {}, fp16, drawn at "
          "random. Bytes are those that threads ask of global memory, beside the CPU program's with the same tiles.",
          s.Nq, s.d),
      columns);
  Table table;
  table.column("kernels", "", Table::Align::left).column("", "", Table::Align::left).column("tiles", "Br x Bc");
  table.column("max |Δ|").column("allowed").column("virtual GPU", "bytes").column("CPU ledger", "bytes");
  table.column("", "", Table::Align::left).column("reports");
  std::string failures;
  for (const KernelStop& k : tour.stops) {
    const std::string stage = k.step.stage->id;
    table.row({stage, std::string(name(k.step.direction)),
               k.on_vgpu.blocks ? fmt::format("{} x {}", k.on_vgpu.blocks->Br, k.on_vgpu.blocks->Bc) : "none",
               fmt::format("{:.1e}", k.worst.error), fmt::format("{:.1e}", k.worst.tolerance),
               grouped(k.on_vgpu.ledger.bytes()), grouped(k.on_cpu.ledger.bytes()), k.equal ? "equal" : "differ",
               fmt::format("{}", k.reports.size())});
    if (!k.checks_pass) failures += fmt::format("FAILS: {}, {}: {}\n", stage, name(k.step.direction), k.worst.message);
    if (!k.equal && k.has_to_be())
      failures += fmt::format("FAILS: {}, {}: the bytes are not the ledger's\n", stage, name(k.step.direction));
    for (const gpu::Report& r : k.reports)
      failures += fmt::format("FAILS: {}, {}: [{}] {}\n", stage, name(k.step.direction), r.kind, r.text);
  }
  return all + table.text() + failures +
         paragraph(
             "",
             "Equal: the same elements of every tensor. 01's kernels have no tiles: every thread fetches its operands "
             "by itself, where the CPU program moves each matrix once.",
             columns);
}

Json json(const KernelTour& tour) {
  Json stops = Json::array();
  for (const KernelStop& k : tour.stops)
    stops.push_back({{"stage", k.step.stage->id},
                     {"direction", name(k.step.direction)},
                     {"tiles", blocks_json(k.on_vgpu.blocks)},
                     {"error", json_number(k.worst.error)},
                     {"tolerance", json_number(k.worst.tolerance)},
                     {"vgpu_hbm", hbm_json(k.on_vgpu.ledger)},
                     {"cpu_hbm", hbm_json(k.on_cpu.ledger)},
                     {"equal", k.equal},
                     {"reports", k.reports.size()},
                     {"ok", k.ok()}});
  Json json = {{"problem",
                {{"source", "generated"},
                 {"batch", 1},
                 {"heads", tour.shape.heads},
                 {"n", tour.shape.Nq},
                 {"d", tour.shape.d},
                 {"dtype", "fp16"}}},
               {"programs", stops}};
  if (!tour.why_not.empty()) json["why"] = tour.why_not;
  return json;
}

}  // namespace flash::app

#include "app/verify.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "app/backend.hpp"
#include "app/progress.hpp"
#include "stages/common/around_run.hpp"
#include "stages/common/draw.hpp"

namespace flash::app {
namespace {

/// A backend that is here, and the stage on it.
struct Place {
  std::string name;
  std::optional<cuda::Backend> backend;  ///< none: the CPU
  bool backward = false;                 ///< the stage has that pass here
  std::shared_ptr<cuda::Device> gpu;     ///< null: not a GPU
};

void add_missing(Verification& v, const std::string& place, const std::string& why) {
  const auto same = [&](const Missing& m) { return m.backend == place && m.why == why; };
  if (std::ranges::none_of(v.missing, same)) v.missing.push_back({place, why});
}

/// @throws Refused where the backend or the stage's forward pass on it is not here; a backward pass may be missing.
Place open_place(const std::string& name, Verification& v) {
  const Stage& stage = *v.stage;
  Place place{name, parse_backend(name), stage.has_backward(), nullptr};
  if (!place.backend) {
    require_programs(stage, Side::cpu, false);
    return place;
  }
  if (place.backend == cuda::Backend::gpu) place.gpu = open_gpu(0).device;
  cuda::find_kernels(stage, *place.backend, false);
  try {
    cuda::find_kernels(stage, *place.backend, true);
    place.backward = true;
  } catch (const Refused& refused) {
    place.backward = false;
    add_missing(v, name, refused.what());
  }
  return place;
}

std::vector<Place> open_places(Verification& v, const std::string& on) {
  if (!on.empty()) return {open_place(on, v)};
  std::vector<Place> places;
  for (const char* name : {"cpu", "vgpu", "gpu"}) try {
      places.push_back(open_place(name, v));
    } catch (const Refused& refused) {
      add_missing(v, name, refused.what());
    }
  return places;
}

std::vector<VerifyCell> grid() {
  std::vector<VerifyCell> cells;
  for (const Format dtype : {Format::fp16, Format::bf16})
    for (const Index d : {64, 128})
      for (const Index n : verify_sizes)
        for (const bool causal : {false, true}) cells.push_back({dtype, d, n, causal});
  return cells;
}

/// What a run on `place` gave; nothing, and why not, where the virtual GPU reported something.
struct Ran {
  Outputs outputs;
  std::string failure;
};

Ran run_on(const Place& place, const Stage& stage, const Inputs& in, const Options& options) {
  if (!place.backend) {
    RunConfig config;
    config.backward = place.backward;
    return {run(stage, in, options, config).outputs, ""};
  }
  cuda::Kernels kernels = cuda::find_kernels(stage, *place.backend, place.backward);
  if (place.gpu)
    kernels.device = place.gpu;
  else
    open_virtual_gpu(kernels, {});
  Ran ran{cuda::execute(kernels, in, options, false).outputs, ""};
  if (!kernels.virtual_device) return ran;
  for (const cuda::Watched& watched : kernels.virtual_device->watched())
    for (const gpu::Report& report : watched.reports)
      if (ran.failure.empty()) ran.failure = fmt::format("[{}] {}", report.kind, report.text);
  return ran;
}

/// The outputs of one direction, and what is wrong with them.
Compared part_of(const CheckResult& checked, Direction direction) {
  Compared part;
  for (const OutputCheck& output : checked.outputs) {
    if ((output.name == "o" || output.name == "lse") != (direction == Direction::forward)) continue;
    part.outputs.push_back(output);
    if (!output.pass && part.failure.empty()) part.failure = output.message;
  }
  return part;
}

/// Fills in what `place` says of the two rows of a cell.
void compare(Verification& v, const Place& place, const Inputs& in, const Options& options, Reference wanted,
             std::pair<VerifyRow, VerifyRow>& rows) {
  if (!place.backward) wanted.oracle.dq = wanted.oracle.dk = wanted.oracle.dv = {};
  try {
    const Ran ran = run_on(place, *v.stage, in, options);
    const CheckResult checked = ran.failure.empty() ? check(ran.outputs, wanted, in, options) : CheckResult{};
    for (VerifyRow* row : {&rows.first, &rows.second}) {
      if (row->direction == Direction::backward && !place.backward) continue;
      Compared& compared = row->on[place.name] = part_of(checked, row->direction);
      if (!ran.failure.empty()) compared.failure = ran.failure;
    }
  } catch (const Refused& refused) {
    add_missing(v, place.name, refused.what());
  }
}

void verify_cell(Verification& v, const VerifyCell& cell, const std::vector<Place>& places) {
  Inputs in = draw_inputs({1, 1, 1, cell.n, cell.n, cell.d, cell.d}, cell.dtype, 0);
  draw_dout(in, 0);
  Options options;
  options.causal = cell.causal;
  const bool backward = std::ranges::any_of(places, &Place::backward);
  const Reference wanted = reference(in, options, backward, v.stage->lse == "S");
  std::pair<VerifyRow, VerifyRow> rows{{cell, Direction::forward, {}}, {cell, Direction::backward, {}}};
  for (const Place& place : places)
    if (place.backend != cuda::Backend::vgpu || cell.n <= largest_on_vgpu) compare(v, place, in, options, wanted, rows);
  for (VerifyRow* row : {&rows.first, &rows.second})
    if (!row->on.empty()) v.rows.push_back(std::move(*row));
}

}  // namespace

int Verification::comparisons() const {
  return std::accumulate(rows.begin(), rows.end(), 0,
                         [](int sum, const VerifyRow& row) { return sum + static_cast<int>(row.on.size()); });
}

int Verification::breaches() const {
  int count = 0;
  for (const VerifyRow& row : rows)
    for (const auto& [place, compared] : row.on) count += !compared.failure.empty();
  return count;
}

Verification verify(const Stage& stage, const std::string& on) {
  Verification v;
  v.stage = &stage;
  const std::vector<Place> places = open_places(v, on);
  for (const Place& place : places) v.backends.push_back(place.name);
  std::vector<VerifyCell> cells = grid();
  if (on == "vgpu") std::erase_if(cells, [](const VerifyCell& cell) { return cell.n > largest_on_vgpu; });
  Progress progress("verify", static_cast<int>(cells.size()));
  for (const VerifyCell& cell : cells) {
    progress.next(fmt::format("{}, d = {}, N = {}{}", name(cell.dtype), cell.d, cell.n, cell.causal ? ", causal" : ""));
    verify_cell(v, cell, places);
  }
  std::ranges::stable_sort(v.rows, {}, &VerifyRow::direction);
  return v;
}

}  // namespace flash::app

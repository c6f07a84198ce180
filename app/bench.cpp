#include "app/bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <set>

#include "app/closed_form_json.hpp"
#include "cuda/common/on_device.hpp"
#include "cuda/common/tensors.hpp"
#include "stages/common/draw.hpp"

namespace flash::app {
namespace {

Options options_of(const BenchProblem& p) {
  Options o;
  o.causal = p.causal;
  return o;
}

/// Sizes that leave ragged tiles, with the same d, grouping and mask.
Inputs small_inputs(const BenchProblem& p) {
  const Index kv_heads = 2;
  Inputs in = draw_inputs({1, kv_heads * (p.heads / p.kv_heads), kv_heads, 193, 193, p.d, p.d}, Format::fp16, 1);
  if (p.backward) draw_dout(in, 1);
  return in;
}

CheckResult check_small(const cuda::Kernels& kernels, const BenchProblem& p) {
  const Inputs in = small_inputs(p);
  const Options o = options_of(p);
  const RunResult result = cuda::execute(kernels, in, o, false);
  return check(result.outputs, reference(in, o, p.backward, kernels.stage->lse == "S"), in, o);
}

Inputs inputs_of(const BenchProblem& p) {
  Inputs in;
  in.shape = {p.batch, p.heads, p.kv_heads, p.n, p.n, p.d, p.d};
  in.dtype = Format::fp16;
  return in;
}

const cuda::Module& timed_module(const BenchRow& row) {
  return row.kernels.backward ? *row.kernels.backward : *row.kernels.forward;
}

/// The stages' kernels, where this problem fits on the GPU and is one that they take.
std::vector<BenchRow> find_rows(const std::vector<const Stage*>& stages, const BenchProblem& p, const Gpu& gpu) {
  std::vector<BenchRow> rows;
  const Inputs in = inputs_of(p);
  for (const Stage* stage : stages) {
    BenchRow& row = rows.emplace_back();
    row.kernels = cuda::find_kernels(*stage, cuda::Backend::gpu, p.backward);
    row.kernels.device = gpu.device;
    cuda::require_taken(row.kernels, in, options_of(p));
    row.tiles = cuda::tiles(timed_module(row), *gpu.device, in, options_of(p));
    try {
      cuda::require_room(row.kernels, in.shape, 1, false);
    } catch (const Refused& refused) {
      row.why_not = refused.what();
    }
  }
  if (std::ranges::none_of(rows, [](const BenchRow& r) { return r.why_not.empty(); }))
    throw Refused(rows.front().why_not);
  return rows;
}

/// Once, or in front of each timing of the backward pass, which needs what its own forward pass left.
void prepare(const BenchRow& row, cuda::Device& device, const cuda::OnDevice& memory) {
  if (row.kernels.backward) device.run(*row.kernels.forward, memory.problem(), 1);
}

/// Lets the kernels and the clock settle, and finds how many launches take a millisecond, for shorter times are the
/// launches' own.
void warm_up(BenchRow& row, cuda::Device& device, const cuda::OnDevice& memory) {
  constexpr double least_seconds = 1e-3, warm_seconds = 0.1;
  prepare(row, device, memory);
  double spent = 0, last = 0;
  for (int n = 0; n < 3 || (spent < warm_seconds && n < 1000); ++n) {
    last = device.run(timed_module(row), memory.problem(), 1);
    spent += last;
  }
  row.launches = static_cast<int>(std::clamp(std::ceil(least_seconds / last), 1.0, 1000.0));
}

void time_rows(Bench& b, const cuda::OnDevice& memory) {
  std::vector<BenchRow*> timed;
  for (BenchRow& row : b.rows)
    if (row.why_not.empty()) timed.push_back(&row);
  for (BenchRow* row : timed) warm_up(*row, *b.gpu.device, memory);
  for (int round = 0; round < b.problem.rounds; ++round)
    for (BenchRow* row : timed) {
      prepare(*row, *b.gpu.device, memory);
      row->seconds.push_back(b.gpu.device->run(timed_module(*row), memory.problem(), row->launches) / row->launches);
      row->clock_mhz.push_back(b.gpu.cuda->clock_mhz(*b.gpu.device));
    }
}

std::string now() {
  const std::time_t seconds = std::time(nullptr);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&seconds));
  return text;
}

}  // namespace

bool Bench::checks_pass() const {
  return std::ranges::all_of(rows, [](const BenchRow& r) { return r.check.pass(); });
}

Bench bench(const std::vector<const Stage*>& stages, const BenchProblem& p, Index device) {
  Bench b;
  b.problem = p;
  b.gpu = open_gpu(device);
  b.driver = driver_text(*b.gpu.cuda);
  b.date = now();
  b.rows = find_rows(stages, p, b.gpu);
  Inputs in = inputs_of(p);
  const Options o = options_of(p);
  b.flops = 4.0 * static_cast<double>(p.d) * static_cast<double>(visible_pairs(in, o)) * (p.backward ? 2.5 : 1);
  for (BenchRow& row : b.rows)
    if (row.why_not.empty()) row.check = check_small(row.kernels, p);
  if (!b.checks_pass()) return b;

  in = draw_inputs(in.shape, in.dtype, 0);
  if (p.backward) draw_dout(in, 0);
  std::set<std::string> names;
  for (const BenchRow& row : b.rows)
    if (row.why_not.empty()) names.merge(cuda::tensors_of(cuda::modules(row.kernels), false));
  const cuda::OnDevice memory(*b.gpu.device, in, o, names);
  in = {};  // the device has it
  time_rows(b, memory);
  return b;
}

}  // namespace flash::app

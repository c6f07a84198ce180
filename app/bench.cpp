#include "app/bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <functional>
#include <set>

#include "app/bench_peers.hpp"
#include "app/closed_form_json.hpp"
#include "app/progress.hpp"
#include "cuda/common/on_device.hpp"
#include "cuda/common/tensors.hpp"
#include "stages/common/draw.hpp"

namespace flash::app {
namespace {

// ---- inputs

Inputs inputs_of(const BenchProblem& p) {
  Inputs in;
  in.shape = p.shape();
  in.dtype = p.dtype;
  return in;
}

/// Sizes that leave ragged tiles, with the same d, grouping and mask.
Inputs small_inputs(const BenchProblem& p) {
  const Index kv_heads = 2, n = 193;
  Inputs in = draw_inputs({1, kv_heads * (p.heads / p.kv_heads), kv_heads, p.decode ? 1 : n, n, p.d, p.d}, p.dtype, 1);
  if (p.backward) draw_dout(in, 1);
  return in;
}

// ---- rows

const cuda::Module& timed_module(const BenchRow& row) {
  return row.kernels.backward ? *row.kernels.backward : *row.kernels.forward;
}

CheckResult check_small(const BenchRow& row, const BenchProblem& p) {
  const Inputs in = small_inputs(p);
  const Options o = p.options(row.deterministic);
  const RunResult result = cuda::execute(row.kernels, in, o, false);
  return check(result.outputs, reference(in, o, p.backward, row.kernels.stage->lse == "S"), in, o);
}

BenchRow make_row(const Stage& stage, const BenchProblem& p, const Gpu& gpu, bool deterministic) {
  BenchRow row;
  row.deterministic = deterministic;
  row.kernels = cuda::find_kernels(stage, cuda::Backend::gpu, p.backward);
  row.kernels.device = gpu.device;
  try {
    const Inputs in = inputs_of(p);
    const Options options = p.options(deterministic);
    cuda::require_taken(row.kernels, in, options);
    cuda::require_room(row.kernels, in.shape, p.splits, false);
    row.tiles = cuda::tiles(timed_module(row), *gpu.device, in, options);
  } catch (const Refused& refused) {
    row.why_not = refused.what();
  }
  return row;
}

std::vector<BenchRow> make_rows(const std::vector<const Stage*>& stages, const BenchProblem& p, const Gpu& gpu) {
  std::vector<BenchRow> rows;
  for (const Stage* stage : stages) {
    rows.push_back(make_row(*stage, p, gpu, false));
    if (p.deterministic) rows.push_back(make_row(*stage, p, gpu, true));
  }
  return rows;
}

/// Do all of the stages' kernels take it, each on one of the cells at least?
bool all_take(Format dtype, const std::vector<const Stage*>& stages, std::vector<BenchProblem> cells, const Gpu& gpu) {
  for (BenchProblem& cell : cells) cell.dtype = dtype;
  return std::ranges::all_of(stages, [&](const Stage* stage) {
    return std::ranges::any_of(
        cells, [&](const BenchProblem& cell) { return make_row(*stage, cell, gpu, false).why_not.empty(); });
  });
}

Format dtype_of(const std::string& asked, const std::vector<const Stage*>& stages,
                const std::vector<BenchProblem>& cells, const Gpu& gpu) {
  if (asked == name(Format::fp16)) return Format::fp16;
  if (asked == name(Format::bf16)) return Format::bf16;
  return all_take(Format::bf16, stages, cells, gpu) ? Format::bf16 : Format::fp16;
}

// ---- timing

/// One of those that take turns.
struct Contender {
  std::function<double(int launches)> run;  ///< seconds; 0 where it can't
  std::function<void()> prepare;            ///< before each timing
  Timings* times;
};

/// Lets the kernels and the clock settle, and finds how many launches take a few milliseconds, for a shorter time is
/// the launches' own. False where it can't be timed.
bool warm_up(Contender& c) {
  constexpr double least_seconds = 4e-3, warm_seconds = 0.1;
  c.prepare();
  double spent = 0, last = 0;
  for (int n = 0; n < 3 || (spent < warm_seconds && n < 1000); ++n) {
    last = c.run(1);
    if (last <= 0) return false;
    spent += last;
  }
  c.times->launches = static_cast<int>(std::clamp(std::ceil(least_seconds / last), 1.0, 1000.0));
  return true;
}

/// Rounds in which each is timed once; a round begins with the next one.
void take_turns(std::vector<Contender> all, int rounds, const Gpu& gpu) {
  std::erase_if(all, [](Contender& c) { return !warm_up(c); });
  for (int round = 0; round < rounds && !all.empty(); ++round) {
    for (Contender& c : all) {
      c.prepare();
      const double seconds = c.run(c.times->launches);
      if (seconds <= 0) continue;
      c.times->seconds.push_back(seconds / c.times->launches);
      c.times->clock_mhz.push_back(gpu.cuda->clock_mhz(*gpu.device));
    }
    std::ranges::rotate(all, all.begin() + 1);
  }
}

/// A problem in the GPU's memory, with the tensors of all rows that have these options.
struct Placed {
  bool deterministic;
  std::unique_ptr<cuda::OnDevice> memory;
};

std::vector<Placed> place(const Bench& b, const Gpu& gpu) {
  std::vector<Placed> all;
  const Inputs in = large_inputs(b.problem);
  for (const bool deterministic : {false, true}) {
    std::set<std::string> names;
    for (const BenchRow& row : b.rows)
      if (row.why_not.empty() && row.deterministic == deterministic)
        names.merge(cuda::tensors_of(cuda::modules(row.kernels), false));
    if (!names.empty())
      all.push_back(
          {deterministic, std::make_unique<cuda::OnDevice>(*gpu.device, in, b.problem.options(deterministic), names)});
  }
  return all;
}

Contender contender(BenchRow& row, const cuda::OnDevice& memory) {
  cuda::Device& device = *row.kernels.device;
  const auto prepare = [&] {  // the backward pass needs what its own forward pass left
    if (row.kernels.backward) device.run(*row.kernels.forward, memory.problem(), 1);
  };
  return {[&](int launches) { return device.run(timed_module(row), memory.problem(), launches); }, prepare, &row.times};
}

std::unique_ptr<cuda::Yardstick> make_yardstick(Bench& b, const Gpu& gpu) try {
  const BenchProblem& p = b.problem;
  if (p.decode) {
    constexpr std::size_t bytes = std::size_t(1) << 30;
    b.yardstick.work = 2.0 * bytes;
    return std::unique_ptr<cuda::Yardstick>(gpu.cuda->copy(*gpu.device, bytes));
  }
  b.yardstick.work = 2.0 * gemm_size * gemm_size * gemm_size;
  return std::unique_ptr<cuda::Yardstick>(gpu.cuda->gemm(*gpu.device, p.dtype == Format::bf16, gemm_size));
} catch (const std::runtime_error& error) {
  b.yardstick.why_not = error.what();
  return nullptr;
}

/// Runs the deterministic rows again and again on the same inputs and compares every bit of the gradients.
int runs_with_same_bits(const BenchRow& row, const BenchProblem& p, const cuda::OnDevice& memory) {
  cuda::Device& device = *row.kernels.device;
  device.run(*row.kernels.forward, memory.problem(), 1);
  std::vector<std::vector<char>> first;
  for (int run = 0; run < bit_runs; ++run) {
    device.run(*row.kernels.backward, memory.problem(), 1);
    std::vector<std::vector<char>> bits;
    for (const cuda::Tensor& tensor : cuda::tensors(p.shape()))
      if (tensor.info.name == "dQ" || tensor.info.name == "dK" || tensor.info.name == "dV") {
        bits.emplace_back(tensor.bytes());
        device.copy_out(bits.back().data(), memory.find(tensor.info.name), tensor.bytes());
      }
    if (run == 0)
      first = std::move(bits);
    else if (bits != first)
      return 0;
  }
  return bit_runs;
}

void time_cell(Bench& b, const Gpu& gpu, Peers* peers) {
  const std::vector<Placed> placed = place(b, gpu);
  const auto memory_of = [&](const BenchRow& row) -> const cuda::OnDevice& {
    return *std::ranges::find(placed, row.deterministic, &Placed::deterministic)->memory;
  };
  std::vector<Contender> all;
  for (BenchRow& row : b.rows)
    if (row.why_not.empty()) {
      if (row.deterministic) row.same_bits = runs_with_same_bits(row, b.problem, memory_of(row));
      all.push_back(contender(row, memory_of(row)));
    }
  const std::unique_ptr<cuda::Yardstick> yardstick = make_yardstick(b, gpu);
  if (yardstick) all.push_back({[&](int launches) { return yardstick->run(launches); }, [] {}, &b.yardstick.times});
  if (peers) b.peers = peers->rows(b.problem);
  for (PeerRow& row : b.peers)
    if (row.why_not.empty())
      all.push_back({[&](int launches) { return peers->run(row, b.problem, launches); }, [] {}, &row.times});
  take_turns(std::move(all), b.rounds, gpu);
}

double middle(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace

std::string utc_now() {
  const std::time_t seconds = std::time(nullptr);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&seconds));
  return text;
}

Inputs large_inputs(const BenchProblem& p) {
  constexpr Index period = 1'000'003;
  Inputs drawn = draw_inputs({1, 1, 1, period, period, 1, 1}, p.dtype, 0);
  draw_dout(drawn, 0);
  const auto repeat = [](const std::vector<double>& values, Index count) {
    std::vector<double> all(static_cast<std::size_t>(count));
    for (std::size_t n = 0; n < all.size(); ++n) all[n] = values[n % values.size()];
    return all;
  };
  Inputs in = inputs_of(p);
  const Shape& s = in.shape;
  in.q = repeat(drawn.q, s.batch * s.heads * s.Nq * s.d);
  in.k = repeat(drawn.k, s.batch * s.kv_heads * s.Nk * s.d);
  in.v = repeat(drawn.v, s.batch * s.kv_heads * s.Nk * s.dv);
  if (p.backward) in.dout = repeat(drawn.dout, s.batch * s.heads * s.Nq * s.dv);
  return in;
}

Options BenchProblem::options(bool deterministic) const {
  Options o;
  o.causal = causal;
  o.splits = splits;
  o.deterministic = deterministic;
  return o;
}

double BenchProblem::flops() const {
  return 4.0 * static_cast<double>(d) * static_cast<double>(visible_pairs(inputs_of(*this), options(false))) *
         (backward ? 2.5 : 1);
}

double BenchProblem::bytes() const {
  const Shape s = shape();
  const auto rows = static_cast<double>(s.batch * s.heads * s.Nq), keys = static_cast<double>(s.batch * s.kv_heads);
  return rows * (2.0 * bytes_per_element(dtype) * static_cast<double>(d) + 4) +
         keys * static_cast<double>(s.Nk) * 2 * bytes_per_element(dtype) * static_cast<double>(d);
}

double Timings::median() const { return middle(seconds); }
double Timings::median_clock() const { return middle(clock_mhz); }

bool Bench::checks_pass() const {
  return std::ranges::all_of(rows, [](const BenchRow& r) {
    return r.check.pass() && (!r.deterministic || r.times.empty() || r.same_bits > 0);
  });
}

bool Benches::checks_pass() const { return std::ranges::all_of(cells, &Bench::checks_pass); }

Benches bench(const std::vector<const Stage*>& stages, std::vector<BenchProblem> cells, const BenchSetting& setting) {
  Benches all;
  all.gpu = open_gpu(setting.device);
  all.driver = driver_text(*all.gpu.cuda);
  const Format dtype = dtype_of(setting.dtype, stages, cells, all.gpu);
  for (BenchProblem& cell : cells) {
    cell.dtype = dtype;
    all.cells.push_back({cell, "", setting.rounds, make_rows(stages, cell, all.gpu), {}, {}});
  }
  const auto runs = [](const Bench& b) {
    return std::ranges::any_of(b.rows, [](const BenchRow& r) { return r.why_not.empty(); });
  };
  if (std::ranges::none_of(all.cells, runs)) throw Refused(all.cells.front().rows.front().why_not);

  std::unique_ptr<Peers> peers;
  if (setting.peers) peers = std::make_unique<Peers>();
  Progress progress("bench", static_cast<int>(cells.size()));
  for (Bench& b : all.cells) {
    progress.next(fmt::format("d = {}, N = {}{}", b.problem.d, b.problem.n, b.problem.causal ? ", causal" : ""));
    b.date = utc_now();
    for (BenchRow& row : b.rows)
      if (row.why_not.empty()) row.check = check_small(row, b.problem);
    if (!b.checks_pass()) {  // nothing further is timed
      all.cells.resize(static_cast<std::size_t>(&b - all.cells.data()) + 1);
      break;
    }
    if (runs(b)) time_cell(b, all.gpu, peers.get());
  }
  return all;
}

}  // namespace flash::app

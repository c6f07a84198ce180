#include "sim/trace/stage_recorder.hpp"

#include <filesystem>

namespace flash::trace {
namespace {

using sim::Event;
using sim::EventKind;

const char* verb(EventKind kind) {
  switch (kind) {
    case EventKind::fill: return "fill";
    case EventKind::load: return "load";
    case EventKind::store: return "store";
    case EventKind::accumulate: return "accumulate";
    case EventKind::compute: return "compute";
    case EventKind::take:
    case EventKind::give_back: break;  // belong to the next step
  }
  return "";
}

Json range(sim::Range r) { return {r.begin, r.end}; }

bool touches_hbm(const Event& e) { return e.tensor != nullptr; }

}  // namespace

/// What a store or a sum leaves in a 16-bit tensor: not quite what is in the tile.
std::vector<double> StageRecorder::stored(const Event& e) {
  std::vector<double>& all = stored_[e.tensor];
  all.resize(static_cast<std::size_t>(e.tensor->elements()));
  std::vector<double> tile;
  for (Index i = 0; i < e.values.rows; ++i)
    for (Index j = 0; j < e.values.cols; ++j) {
      double& x = all[static_cast<std::size_t>(e.first + i * e.tensor->cols + j)];
      x = rounded((e.kind == EventKind::accumulate ? x : 0) + e.values(i, j), e.tensor->format);
      tile.push_back(x);
    }
  return tile;
}

/// Loads need none, nor do stores and sums in fp32 and fp64: they are there already.
void StageRecorder::add_values(Json& step, const Event& e) {
  if (e.kind == EventKind::load || (touches_hbm(e) && !is_16_bit(e.tensor->format))) return;
  Json& values = step["values"] = Json::array();
  if (touches_hbm(e)) {
    for (const double x : stored(e)) values.push_back(number(x, false));
    return;
  }
  for (Index i = 0; i < e.values.rows; ++i)
    for (Index j = 0; j < e.values.cols; ++j) values.push_back(number(e.values(i, j), e.values.is_double));
}

/// What the step moved and computed: the difference to the counts at the last one. A launch begins at zero.
void StageRecorder::add_cost(Json& step, const Event& e) {
  const sim::Tally& now = *e.tally;
  if (now.sram.read < sram_.read || now.sram.write < sram_.write) sram_ = {}, flops_ = {};
  const auto add = [&](const char* key, std::vector<Index> counts) {
    if (std::ranges::any_of(counts, [](Index n) { return n != 0; })) step[key] = counts;
  };
  if (touches_hbm(e)) {
    const Index n = e.values.rows * e.values.cols, twice = e.kind == EventKind::accumulate ? 2 : 1;
    add("hbm", {e.kind == EventKind::load ? n : 0, e.kind == EventKind::store ? n : 0, twice == 2 ? n : 0});
    step["hbm_bytes"] = twice * n * bytes_per_element(e.tensor->format);
  }
  add("sram", {now.sram.read - sram_.read, now.sram.write - sram_.write});
  add("flops", {now.flops.matmul - flops_.matmul, now.flops.exp - flops_.exp, now.flops.other - flops_.other});
  sram_ = now.sram, flops_ = now.flops;
}

Json StageRecorder::step(const Event& e) {
  Json step = {{"do", verb(e.kind)},
               {"at", recording_.files.at(e.where.file_name(), e.where.line())},
               {"banner", recording_.files.banner(e.where.file_name(), e.where.line())},
               {"worker", e.worker},
               {"batch", e.batch},
               {"head", e.head},
               {"tile", tiles_.at(e.values.data)},
               {"name", e.name},
               {"rows", range(e.rows)},
               {"cols", range(e.cols)}};
  if (touches_hbm(e)) step["tensor"] = recording_.tensor(*e.tensor), step["first"] = e.first;
  if (!takes_.empty()) step["takes"] = std::exchange(takes_, Json::array());
  if (!releases_.empty()) step["releases"] = std::exchange(releases_, Json::array());
  add_cost(step, e);
  step["held"] = e.held_bytes;
  return step;
}

void StageRecorder::add(const Event& e) {
  if (recording_.full()) {
    if (e.kind != EventKind::take && e.kind != EventKind::give_back) recording_.skip();
    return;
  }
  if (e.kind == EventKind::take) {
    tiles_[e.values.data] = next_tile_;
    takes_.push_back({{"tile", next_tile_++},
                      {"name", e.name},
                      {"rows", range(e.rows)},
                      {"cols", range(e.cols)},
                      {"dtype", name(e.format)},
                      {"bytes", e.values.rows * e.values.cols * bytes_per_element(e.format)}});
    return;
  }
  if (e.kind == EventKind::give_back) {
    give_back(tiles_.at(e.values.data));
    tiles_.erase(e.values.data);
    return;
  }
  recording_.chapter(std::filesystem::path(e.where.file_name()).stem());
  Json next = step(e);
  add_values(next, e);
  recording_.add(std::move(next));
}

void StageRecorder::give_back(int tile) {
  const auto taken = std::ranges::find_if(takes_, [&](const Json& take) { return take["tile"] == tile; });
  if (taken == takes_.end())
    releases_.push_back(tile);
  else
    takes_.erase(taken);  // nothing was done with it
}

}  // namespace flash::trace

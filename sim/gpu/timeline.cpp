#include "sim/gpu/timeline.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "sim/gpu/parts.hpp"
#include "sim/gpu/source_line.hpp"

namespace flash::gpu {
namespace {

void add_slice(const Warp& warp, const Slice& slice) {
  auto& slices = machine->timeline.slices;
  if (!slices.empty() && !slice.is_mark) {
    Slice& last = slices.back();
    if (!last.is_mark && last.cta == slice.cta && last.warp == slice.warp && last.pc == slice.pc &&
        last.name == slice.name && last.end == slice.begin) {
      last.end = slice.end;
      ++last.times;
      return;
    }
  }
  slices.push_back(slice);
  slices.back().warp = static_cast<int>(warp.index);
}

Slice slice_of(const Warp& warp, const char* name, Pc pc, std::int64_t value, std::uint64_t begin) {
  return {name, pc, warp.cta->serial, static_cast<int>(warp.index), value, begin, warp.time};
}

}  // namespace

void begin_launch() {
  Timeline& t = machine->timeline;
  for (const std::uint64_t free : t.sm_free) t.launch_begin = std::max(t.launch_begin, free);
  t.sm_free.assign(machine->launch->resident_limit, t.launch_begin);
}

void begin_track(Cta& cta, Launch& launch) {
  Timeline& t = machine->timeline;
  const auto slot = std::min_element(t.sm_free.begin(), t.sm_free.end());
  const std::uint64_t begin = *slot;
  for (Warp& warp : cta.warps) warp.time = begin;
  cta.slot = static_cast<unsigned>(slot - t.sm_free.begin());
  *slot = ~0ull;  // taken
  if (machine->config.timeline)
    t.tracks.push_back({launch.kernel, cta.index, static_cast<unsigned>(cta.warps.size()), begin,
                        cta.slot % static_cast<unsigned>(machine->config.sms)});
}

void end_track(Cta& cta) {
  Timeline& t = machine->timeline;
  std::uint64_t end = 0;
  for (const Warp& warp : cta.warps) end = std::max(end, warp.time);
  t.sm_free[cta.slot] = end;
  machine->launch->longest_cta = std::max(machine->launch->longest_cta, end - t.launch_begin);
}

void memory_event(Warp& warp, const char* name, Pc pc, unsigned cycles) {
  const std::uint64_t begin = warp.time;
  warp.time += cycles;
  if (machine->config.timeline) add_slice(warp, slice_of(warp, name, pc, 0, begin));
}

void waited(Warp& warp, Pc pc, std::uint64_t until) {
  if (until <= warp.time) return;
  const std::uint64_t begin = warp.time;
  warp.time = until;
  if (machine->config.timeline) add_slice(warp, slice_of(warp, "wait", pc, 0, begin));
}

void event(EventKind kind, const char* name, Pc pc, std::int64_t value, unsigned cycles) {
  Thread& t = *current;
  Warp& warp = *t.warp;
  float arithmetic = 0;
  for (Thread* lane : warp.lanes)
    if (lane) arithmetic = std::max(arithmetic, std::exchange(lane->cycles, 0.f));
  const std::uint64_t begin = warp.time + static_cast<std::uint64_t>(arithmetic);
  if (machine->config.timeline && begin > warp.time) {
    const std::uint64_t before = std::exchange(warp.time, begin);
    add_slice(warp, slice_of(warp, "arithmetic", nullptr, 0, before));
  }
  warp.time = begin + cycles;
  if (machine->config.timeline) {
    Slice slice = slice_of(warp, name, pc, value, begin);
    slice.is_mark = kind == at_mark;
    add_slice(warp, slice);
  }
  if (!(machine->stop_kinds & kind)) return;
  machine->stopped = Event{kind, name, where(pc), t.cta->index, static_cast<int>(warp.index), value, begin, warp.time};
  machine->stopped_thread = &t;
  to_caller();
}

bool first_of_warp(Pc pc) {
  unsigned& most = current->warp->passes[pc];
  const unsigned mine = ++current->passes[pc];
  if (mine <= most) return false;
  most = mine;
  return true;
}

void async_event(const char* name, Pc pc, std::int64_t value, unsigned cycles) {
  if (!first_of_warp(pc)) return;
  count_instruction(name);
  event(at_async, name, pc, value, cycles);
}

std::string chrome_trace(const Machine::Parts& parts) {
  using Json = nlohmann::ordered_json;
  const Timeline& t = parts.timeline;
  Json events = Json::array();
  for (std::size_t i = 0; i < t.tracks.size(); ++i) {
    const Track& track = t.tracks[i];
    const auto id = static_cast<std::uint32_t>(i + 1);
    events.push_back({{"ph", "M"},
                      {"pid", id},
                      {"name", "process_name"},
                      {"args", {{"name", fmt::format("{}, {}, SM {}", track.kernel, cta_name(track.cta), track.sm)}}}});
    for (unsigned w = 0; w < track.warps; ++w)
      events.push_back({{"ph", "M"},
                        {"pid", id},
                        {"tid", w},
                        {"name", "thread_name"},
                        {"args", {{"name", fmt::format("warp {}", w)}}}});
  }
  std::vector<Pc> places;
  for (const Slice& s : t.slices)
    if (s.pc) places.push_back(s.pc);
  look_up(places);
  for (const Slice& s : t.slices) {
    Json e = {{"ph", s.is_mark ? "i" : "X"}, {"pid", s.cta}, {"tid", s.warp}, {"ts", s.begin}};
    if (s.is_mark) {
      e["s"] = "t";
      e["name"] = fmt::format("{} {}", s.name, s.value);
    } else {
      e["dur"] = s.end - s.begin;
      e["name"] = s.name;
    }
    if (s.pc) e["args"] = {{"where", where(s.pc)}, {"times", s.times}};
    events.push_back(std::move(e));
  }
  return Json{{"traceEvents", events},
              {"displayTimeUnit", "ns"},
              {"otherData",
               {{"unit", "1 us here is one nominal cycle"},
                {"note", "nominal costs: the shape of the schedule, not a prediction of time"},
                {"arch", fmt::format("sm_{}", parts.arch.number)}}}}
      .dump(1);
}

}  // namespace flash::gpu

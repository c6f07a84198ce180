#include "sim/trace/kernel_recorder.hpp"

#include <algorithm>
#include <cstring>

#include "sim/gpu/numbers.hpp"
#include "sim/gpu/source_line.hpp"
#include "sim/gpu/timeline.hpp"

namespace flash::trace {
namespace {

/// Unchanged numbers between two changed ones that are told again rather than beginning anew.
constexpr std::size_t most_between = 8;

std::vector<std::byte> copy_of(const DeviceTensor& t) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(t.info.elements() * bytes_per_element(t.info.format)));
  std::memcpy(bytes.data(), t.memory, bytes.size());
  return bytes;
}

double element(const std::vector<std::byte>& bytes, std::size_t n, Format format) {
  const auto as = [&](auto x) { return std::memcpy(&x, &bytes[n * sizeof x], sizeof x), x; };
  return is_16_bit(format) ? gpu::from_f16(as(std::uint16_t())) : as(float());
}

/// Stretches of elements for which changed(n), as changes of a trace: what they hold now.
template <class Changed, class Value>
void add_changes(Json& changes, const Json& of, std::size_t size, Changed changed, Value value) {
  for (std::size_t begin = 0; begin < size; ++begin) {
    if (!changed(begin)) continue;
    std::size_t end = begin + 1;
    for (std::size_t n = end; n < size && n <= end + most_between; ++n)
      if (changed(n)) end = n + 1;
    Json change = of;
    change["first"] = begin;
    Json& values = change["values"] = Json::array();
    for (; begin < end; ++begin) values.push_back(number(value(begin), false));
    changes.push_back(std::move(change));
  }
}

const char* kind_of(const gpu::Slice& slice) {
  const std::string_view name = slice.name;
  if (slice.is_mark) return "mark";
  if (name == "wait") return "wait";
  if (name == "global memory") return "global";
  if (name == "shared memory") return "shared";
  return name.starts_with("bar") ? "barrier" : "instruction";
}

/// "a.cu:77" or "a.cu:77 (helper.hpp:31)": the kernel's own line.
std::pair<std::string, unsigned> file_and_line(const std::string& where) {
  const std::string place = where.substr(0, where.find(' '));
  const std::size_t colon = place.rfind(':');
  if (colon == place.npos || colon + 1 == place.size() || !std::isdigit(place[colon + 1])) return {"", 0};
  return {place.substr(0, colon), static_cast<unsigned>(std::stoul(place.substr(colon + 1)))};
}

}  // namespace

KernelRecorder::KernelRecorder(gpu::Machine& machine, std::vector<DeviceTensor> tensors, Contents inputs)
    : machine_(machine), tensors_(std::move(tensors)), recording_(std::move(inputs)) {
  for (const DeviceTensor& t : tensors_) {
    contents_.push_back(copy_of(t));
    recording_.tensor(t.info);
  }
}

void KernelRecorder::record() {
  while (numbers_ <= most_numbers) {
    const auto event = machine_.step(gpu::at_anything);
    if (!event) break;
    event->kind == gpu::at_launch ? launched(event->name) : look(*event);
  }
  machine_.run();  // what the trace has no room for is only counted
  found_.resize(machine_.timeline().slices.size());
  if (!found_.empty() && numbers_ <= most_numbers) look_at_tensors(found_.back());
  add_steps();
}

/// What the kernel before had in shared memory and registers is gone.
void KernelRecorder::launched(const std::string& kernel) {
  launches_.push_back({machine_.timeline().slices.size(), kernel});
  for (const auto& [key, seen] : seen_) gone_.push_back(seen.tile);
  seen_.clear(), shared_.clear(), names_.clear();
}

void KernelRecorder::add_steps() {
  const auto& slices = machine_.timeline().slices;
  std::vector<gpu::Pc> places;
  for (const gpu::Slice& s : slices)
    if (s.pc) places.push_back(s.pc);
  gpu::look_up(places);
  auto launch = launches_.begin();
  for (std::size_t n = 0; n < slices.size(); ++n) {
    for (; launch != launches_.end() && launch->first == n; ++launch) recording_.chapter(launch->second);
    std::size_t numbers = 0;
    Json next = step(n);
    if (next.contains("changes"))
      for (const Json& change : next["changes"]) numbers += change["values"].size();
    recording_.add(std::move(next), numbers);
  }
}

/// What the warp's stores did since it was looked at last belongs to the slices of those stores; what it computed, to
/// the event at which it stopped.
void KernelRecorder::look(const gpu::Event& event) {
  const auto& slices = machine_.timeline().slices;
  if (slices.empty()) return;
  const std::size_t from = found_.size();
  found_.resize(slices.size());
  if (!gone_.empty()) found_[from < found_.size() ? from : found_.size() - 1]["releases"] = std::exchange(gone_, {});
  const std::uint32_t cta = slices.back().cta;
  look_at_shared(cta, last_slice_of("shared memory", from));
  look_at_tensors(last_slice_of("global memory", from));
  look_at_registers(cta, event.warp, found_.back());
}

Json& KernelRecorder::last_slice_of(const char* name, std::size_t from) {
  const auto& slices = machine_.timeline().slices;
  for (std::size_t n = slices.size(); n-- > from;)
    if (std::string_view(slices[n].name) == name) return found_[n];
  return found_.back();
}

void KernelRecorder::see(const Key& key, const gpu::Matrix& now, const Json& take, Json& slice) {
  auto known = seen_.find(key);
  if (known == seen_.end()) {
    known = seen_.emplace(key, Seen{next_tile_, now}).first;
    known->second.last.known.assign(now.known.size(), false);
    Json taken = {{"tile", next_tile_++},
                  {"name", now.name},
                  {"rows", {now.row0, now.row0 + now.rows}},
                  {"cols", {now.col0, now.col0 + now.cols}}};
    taken.update(take);
    slice["takes"].push_back(taken);
  }
  gpu::Matrix& last = known->second.last;
  const auto changed = [&](std::size_t n) {
    return now.known[n] && (!last.known[n] || std::memcmp(&now.values[n], &last.values[n], sizeof now.values[n]) != 0);
  };
  Json changes = Json::array();
  add_changes(changes, {{"tile", known->second.tile}}, now.values.size(), changed,
              [&](std::size_t n) { return now.values[n]; });
  keep(changes, slice);
  last = now;
}

void KernelRecorder::keep(Json& changes, Json& slice) {
  for (Json& change : changes) {
    numbers_ += change["values"].size();
    slice["changes"].push_back(std::move(change));
  }
}

void KernelRecorder::look_at_shared(std::uint32_t cta, Json& slice) {
  const auto now = machine_.shared_memory();
  const std::vector<std::string> names = machine_.shared_names();
  std::vector<std::byte>& last = shared_[cta];
  if (std::ranges::equal(now, last) && names_[cta] == names.size()) return;
  last.assign(now.begin(), now.end());
  names_[cta] = names.size();
  for (const std::string& name : names)
    if (const auto matrix = machine_.shared_matrix(name))
      see({cta, name}, *matrix,
          {{"space", "shared"}, {"lane", lane(cta, 0)}, {"bytes", machine_.shared_memory(name).size()}}, slice);
}

void KernelRecorder::look_at_registers(std::uint32_t cta, int warp, Json& slice) {
  for (const std::string& name : machine_.register_names(warp))
    if (const auto matrix = machine_.registers(warp, name))
      see({cta, std::to_string(warp) + " " + name}, *matrix, {{"space", "registers"}, {"lane", lane(cta, warp)}},
          slice);
}

void KernelRecorder::look_at_tensors(Json& slice) {
  Json hbm = {0, 0, 0};
  std::uint64_t bytes_now = 0;
  const auto& counted = machine_.counts().tensors;
  for (std::size_t n = 0; n < tensors_.size(); ++n) {
    const sim::TensorInfo& info = tensors_[n].info;
    const auto bytes = static_cast<std::uint64_t>(bytes_per_element(info.format));
    if (const auto of = counted.find(info.name); of != counted.end()) {
      gpu::TensorBytes& before = bytes_[info.name];
      const gpu::TensorBytes& now = of->second;
      const std::uint64_t moved[] = {now.read - before.read, now.written - before.written, now.rmw - before.rmw};
      for (std::size_t k = 0; k < 3; ++k) hbm[k] = hbm[k].get<std::uint64_t>() + moved[k] / bytes;
      bytes_now += moved[0] + moved[1] + 2 * moved[2];
      before = now;
    }
    std::vector<std::byte> now = copy_of(tensors_[n]);
    std::vector<std::byte>& last = contents_[n];
    if (now == last) continue;
    Json changes = Json::array();
    add_changes(
        changes, {{"tensor", n}}, now.size() / bytes,
        [&](std::size_t k) { return std::memcmp(&now[k * bytes], &last[k * bytes], bytes) != 0; },
        [&](std::size_t k) { return element(now, k, info.format); });
    keep(changes, slice);
    last = std::move(now);
  }
  if (bytes_now > 0) slice["hbm"] = hbm, slice["hbm_bytes"] = bytes_now;
}

/// The number of a warp's lane in the trace. A later launch's CTA of the same place has the same.
Json KernelRecorder::lane(std::uint32_t cta, int warp) {
  const uint3 at = machine_.timeline().tracks[cta - 1].cta;
  return recording_.lane({{"cta", {at.x, at.y, at.z}}, {"warp", warp}});
}

Json KernelRecorder::step(std::size_t n) {
  const gpu::Timeline& timeline = machine_.timeline();
  const gpu::Slice& slice = timeline.slices[n];
  Json step = {{"do", kind_of(slice)}, {"name", slice.name}};
  if (slice.is_mark) step["value"] = slice.value;
  if (slice.times > 1) step["times"] = slice.times;
  step["at"] = nullptr;
  if (const auto [file, line] = slice.pc ? file_and_line(gpu::where(slice.pc)) : std::pair<std::string, unsigned>();
      line > 0) {
    step["at"] = recording_.files.at(file, line);
    step["banner"] = recording_.files.banner(file, line);
  }
  step["lane"] = lane(slice.cta, slice.warp);
  step["begin"] = slice.begin;
  step["end"] = slice.end;
  for (const auto& [key, value] : found_[n].items()) step[key] = value;
  return step;
}

}  // namespace flash::trace

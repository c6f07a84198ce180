#include "sim/trace/kernel_recorder.hpp"

#include <algorithm>
#include <cstring>

#include "sim/gpu/numbers.hpp"
#include "sim/gpu/source_line.hpp"
#include "sim/gpu/timeline.hpp"

namespace flash::trace {
namespace {

/// Changed numbers that no trace has room for.
constexpr std::size_t enough = most_bytes / 4;

double element(const std::byte* at, Format format) {
  const auto as = [&](auto x) { return std::memcpy(&x, at, sizeof x), x; };
  return is_16_bit(format) ? gpu::from_f16(as(std::uint16_t())) : as(float());
}

/// Stretches of elements for which changed(n), as changes of a trace: what they hold now.
template <class Changed, class Value>
void add_changes(Json& changes, const Json& of, std::size_t size, Changed changed, Value value) {
  for (std::size_t begin = 0; begin < size; ++begin) {
    if (!changed(begin)) continue;
    std::size_t end = begin + 1;
    while (end < size && changed(end)) ++end;
    Json change = of;
    change["first"] = begin;
    Json& values = change["values"] = Json::array();
    for (; begin < end; ++begin) values.push_back(number(value(begin), false));
    changes.push_back(std::move(change));
  }
}

/// Bytes that accesses wrote: of shared memory, and of tensors by their number. Empty: none.
struct Written {
  const std::vector<DeviceTensor>& tensors;
  std::span<const std::byte> memory;
  std::vector<bool> shared;
  std::map<std::size_t, std::vector<bool>> global;

  Written(const std::vector<DeviceTensor>& tensors, std::span<const std::byte> memory)
      : tensors(tensors), memory(memory) {}

  void add(const gpu::LaneAccess& access) {
    if (access.moves == gpu::Moves::read) return;
    if (access.shared) return mark(shared, memory.size(), access, memory.data());
    for (std::size_t n = 0; n < tensors.size(); ++n)
      if (tensors[n].holds(access.address)) mark(global[n], tensors[n].bytes(), access, tensors[n].memory);
  }

 private:
  static void mark(std::vector<bool>& bytes, std::size_t size, const gpu::LaneAccess& access, const std::byte* begin) {
    bytes.resize(size);
    const auto at = static_cast<std::size_t>(access.address - begin);
    for (std::size_t n = at; n < at + access.bytes && n < size; ++n) bytes[n] = true;
  }
};

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

KernelRecorder::KernelRecorder(gpu::Machine& machine, std::vector<DeviceTensor> tensors, const Contents& inputs)
    : machine_(machine), tensors_(std::move(tensors)), recording_(inputs) {
  for (const DeviceTensor& t : tensors_) contents_.push_back({t.memory, t.memory + t.bytes()});
}

// ---- running

void KernelRecorder::record() {
  while (numbers_ <= enough) {
    const auto event = machine_.step(gpu::at_anything);
    if (!event) break;
    event->kind == gpu::at_launch ? launched(event->name) : look(*event);
  }
  machine_.keep_accesses(false);
  machine_.run();  // what the trace has no room for is only counted
  found_.resize(machine_.timeline().slices.size());
  if (numbers_ <= enough) look_at_accesses();  // after the last event
  add_steps();
}

/// What the kernel before had in shared memory and registers is gone.
void KernelRecorder::launched(const std::string& kernel) {
  found_.resize(machine_.timeline().slices.size());
  look_at_accesses();
  launches_.push_back({found_.size(), kernel});
  for (const auto& [key, array] : arrays_) gone_.push_back(array.tile);
  arrays_.clear(), shared_.clear(), names_.clear();
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
    recording_.add(step(n));
  }
}

// ---- looking at what changed

/// What stores changed belongs to their slices; what else did, such as an mma or a copy that arrived, to the event at
/// which the warp stopped.
void KernelRecorder::look(const gpu::Event& event) {
  const auto& slices = machine_.timeline().slices;
  if (slices.empty()) return;
  const std::size_t first_new = std::min(found_.size(), slices.size() - 1);
  found_.resize(slices.size());
  if (!gone_.empty()) found_[first_new]["releases"] = std::exchange(gone_, {});
  look_at_accesses();
  look_at_shared(slices.back().cta, nullptr, found_.back());
  for (std::size_t t = 0; t < tensors_.size(); ++t) look_at_tensor(t, nullptr, found_.back());
  look_at_registers(slices.back().cta, event.warp);
}

void KernelRecorder::look_at_accesses() {
  const auto& accesses = machine_.timeline().accesses;
  while (accesses_ < accesses.size()) {
    const std::size_t slice = accesses[accesses_].slice;
    Written written(tensors_, machine_.shared_memory());
    for (; accesses_ < accesses.size() && accesses[accesses_].slice == slice; ++accesses_) {
      count(accesses[accesses_], found_[slice]);
      written.add(accesses[accesses_]);
    }
    if (!written.shared.empty())
      look_at_shared(
          machine_.timeline().slices[slice].cta, [&](std::size_t at) { return written.shared[at]; }, found_[slice]);
    for (const auto& [tensor, bytes] : written.global)
      look_at_tensor(
          tensor, [&](std::size_t at) { return bytes[at]; }, found_[slice]);
  }
}

void KernelRecorder::look_at_shared(std::uint32_t cta, const Bytes& looked_at, Json& slice) {
  const auto now = machine_.shared_memory();
  const std::vector<std::string> names = machine_.shared_names();
  std::vector<std::byte>& last = shared_[cta];
  if (std::ranges::equal(now, last) && names_[cta] == names.size()) return;
  last.resize(now.size());
  names_[cta] = names.size();
  for (std::size_t at = 0; at < now.size(); ++at)
    if (!looked_at || looked_at(at)) last[at] = now[at];
  for (const std::string& name : names)
    if (const auto matrix = machine_.shared_matrix(name))
      see(array({cta, name}, *matrix, {{"space", "shared"}, {"bytes", machine_.shared_memory(name).size()}}, slice),
          *matrix, looked_at, slice);
}

void KernelRecorder::look_at_registers(std::uint32_t cta, int warp) {
  Json& slice = found_.back();
  for (const std::string& name : machine_.register_names(warp))
    if (const auto matrix = machine_.registers(warp, name))
      see(array({cta, std::to_string(warp) + " " + name}, *matrix, {{"space", "registers"}, {"lane", lane(cta, warp)}},
                slice),
          *matrix, nullptr, slice);
}

void KernelRecorder::look_at_tensor(std::size_t n, const Bytes& looked_at, Json& slice) {
  const DeviceTensor& t = tensors_[n];
  std::vector<std::byte>& last = contents_[n];
  if (std::equal(last.begin(), last.end(), t.memory)) return;
  const auto size = static_cast<std::size_t>(bytes_per_element(t.info.format));
  Json changes = Json::array();
  add_changes(
      changes, {{"tensor", recording_.tensor(t.info)}}, t.bytes() / size,
      [&](std::size_t k) {
        return (!looked_at || looked_at(k * size)) && std::memcmp(t.memory + k * size, &last[k * size], size) != 0;
      },
      [&](std::size_t k) {
        std::memcpy(&last[k * size], t.memory + k * size, size);
        return element(&last[k * size], t.info.format);
      });
  keep(std::move(changes), slice);
}

/// The tile of an array; a new one, or one of another size than it was, is taken in `slice`.
KernelRecorder::Array& KernelRecorder::array(const Key& key, const gpu::Matrix& now, Json take, Json& slice) {
  const auto known = arrays_.find(key);
  if (known != arrays_.end() && known->second.last.known.size() == now.known.size()) return known->second;
  Json taken = {{"tile", next_tile_},
                {"name", now.name},
                {"rows", {now.row0, now.row0 + now.rows}},
                {"cols", {now.col0, now.col0 + now.cols}}};
  if (!take.contains("lane")) taken["lane"] = lane(key.first, 0);
  taken.update(take);
  slice["takes"].push_back(taken);
  Array& array = arrays_[key] = {next_tile_++, now};
  array.last.known.assign(now.known.size(), false);
  return array;
}

void KernelRecorder::see(Array& array, const gpu::Matrix& now, const Bytes& looked_at, Json& slice) {
  gpu::Matrix& last = array.last;
  const auto changed = [&](std::size_t n) {
    return now.known[n] && (!looked_at || looked_at(now.places[n])) &&
           (!last.known[n] || std::memcmp(&now.values[n], &last.values[n], sizeof now.values[n]) != 0);
  };
  Json changes = Json::array();
  add_changes(changes, {{"tile", array.tile}}, now.values.size(), changed, [&](std::size_t n) {
    last.known[n] = true;
    return last.values[n] = now.values[n];
  });
  keep(std::move(changes), slice);
}

void KernelRecorder::keep(Json changes, Json& slice) {
  for (Json& change : changes) {
    numbers_ += change["values"].size();
    slice["changes"].push_back(std::move(change));
  }
}

/// Elements of global memory that a lane moved, and of which tensor; null where the slice is of several.
void KernelRecorder::count(const gpu::LaneAccess& access, Json& slice) {
  for (const DeviceTensor& t : tensors_) {
    if (!t.holds(access.address)) continue;
    const std::size_t tensor = recording_.tensor(t.info);
    if (!slice.contains("hbm")) slice["tensor"] = tensor, slice["hbm"] = {0, 0, 0}, slice["hbm_bytes"] = 0;
    if (slice["tensor"] != tensor) slice["tensor"] = nullptr;
    const bool twice = access.moves == gpu::Moves::both;
    Json& elements = slice["hbm"][static_cast<std::size_t>(access.moves)];
    elements = elements.get<Index>() + static_cast<Index>(access.bytes) / bytes_per_element(t.info.format);
    slice["hbm_bytes"] = slice["hbm_bytes"].get<Index>() + (twice ? 2 : 1) * access.bytes;
  }
}

// ---- steps

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
  for (const auto& [key, value] : found_[n].items())
    if (!value.is_null()) step[key] = value;
  return step;
}

}  // namespace flash::trace

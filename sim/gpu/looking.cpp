// Looking at a kernel that is stopped: the CTA of the last event, its shared memory and its threads' registers.
#include <algorithm>
#include <cstring>

#include "sim/gpu/numbers.hpp"
#include "sim/gpu/parts.hpp"

namespace flash::gpu {
namespace {

double number_at(const void* p, NumberKind number) {
  const auto as = [p](auto x) { return std::memcpy(&x, p, sizeof x), x; };
  switch (number) {
    case NumberKind::f16: return from_f16(as(std::uint16_t()));
    case NumberKind::f32: return as(float());
    case NumberKind::i32: return as(std::int32_t());
  }
  return 0;
}
std::size_t bytes_of(NumberKind number) { return number == NumberKind::f16 ? 2 : 4; }

Matrix empty(const std::string& name, int row0, int col0, int rows, int cols) {
  const auto size = static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols);
  return {name, row0, col0, rows, cols, std::vector<double>(size), std::vector<bool>(size), {}};
}

/// Of the CTA of the last event; null where no kernel is stopped.
const Cta* stopped_cta(const Machine::Parts& m) {
  return m.stopped_thread && m.launch ? m.stopped_thread->cta : nullptr;
}

const Named* find_named(const Machine::Parts& m, const std::string& name) {
  const Cta* cta = stopped_cta(m);
  if (!cta) return nullptr;
  const auto found = std::ranges::find(cta->names, name, &Named::text);
  return found == cta->names.end() ? nullptr : &*found;
}

const Watched* find_watched(const Thread& thread, const std::string& name) {
  const auto found = std::ranges::find_if(thread.watched, [&](const Watched& w) { return name == w.name; });
  return found == thread.watched.end() ? nullptr : &*found;
}

const Warp* find_warp(const Machine::Parts& m, int warp) {
  const Cta* cta = stopped_cta(m);
  return cta && warp >= 0 && static_cast<std::size_t>(warp) < cta->warps.size()
             ? &cta->warps[static_cast<std::size_t>(warp)]
             : nullptr;
}

/// function(place, number) for each number of each lane.
template <class Function>
void for_registers(const Warp& warp, const std::string& name, Function&& function) {
  for (const Thread* lane : warp.lanes) {
    const Watched* w = lane ? find_watched(*lane, name) : nullptr;
    if (!w) continue;
    const auto* numbers = w->layout.count > 0 ? static_cast<const std::byte*>(w->layout.numbers(w->local)) : nullptr;
    for (int n = 0; n < w->layout.count; ++n)
      function(w->layout.place(w->local, n),
               number_at(numbers + static_cast<std::size_t>(n) * bytes_of(w->layout.number), w->layout.number));
  }
}

}  // namespace

std::span<const std::byte> Machine::shared_memory() const {
  const Cta* cta = stopped_cta(*parts_);
  return cta ? std::span<const std::byte>(cta->smem, cta->smem_bytes) : std::span<const std::byte>();
}

std::span<const std::byte> Machine::shared_memory(const std::string& name) const {
  const Named* named = find_named(*parts_, name);
  return named ? shared_memory().subspan(named->begin, named->end - named->begin) : std::span<const std::byte>();
}

std::span<const std::byte> Machine::watched(int thread, const std::string& name) const {
  const Cta* cta = stopped_cta(*parts_);
  if (!cta || thread < 0 || static_cast<std::size_t>(thread) >= cta->threads.size()) return {};
  const Watched* w = find_watched(cta->threads[static_cast<std::size_t>(thread)], name);
  return w ? std::span(static_cast<const std::byte*>(w->local), w->bytes) : std::span<const std::byte>();
}

std::optional<Matrix> Machine::shared_matrix(const std::string& name) const {
  const Named* named = find_named(*parts_, name);
  if (!named || named->layout.rows == 0) return std::nullopt;
  const SharedLayout& layout = named->layout;
  const Cta& cta = *stopped_cta(*parts_);
  Matrix matrix = empty(name, 0, 0, layout.rows, layout.cols);
  for (int i = 0; i < layout.rows; ++i)
    for (int j = 0; j < layout.cols; ++j) {
      const auto at = named->begin + static_cast<std::size_t>(layout.offset(i, j));
      const auto element = static_cast<std::size_t>(i) * layout.cols + j;
      matrix.values[element] = number_at(cta.smem + at, layout.number);
      matrix.places.push_back(at);
      matrix.known[element] = cta.shadow.initialised(at, bytes_of(layout.number));
    }
  return matrix;
}

std::optional<Matrix> Machine::registers(int warp, const std::string& name) const {
  const Warp* of = find_warp(*parts_, warp);
  if (!of) return std::nullopt;
  int top = 0, bottom = -1, left = 0, right = -1;
  for_registers(*of, name, [&](RegisterLayout::Place p, double) {
    const bool first = bottom < 0;
    top = first ? p.row : std::min(top, p.row), bottom = std::max(bottom, p.row);
    left = first ? p.col : std::min(left, p.col), right = std::max(right, p.col);
  });
  if (bottom < 0) return std::nullopt;
  Matrix matrix = empty(name, top, left, bottom - top + 1, right - left + 1);
  for_registers(*of, name, [&](RegisterLayout::Place p, double x) {
    const auto element = static_cast<std::size_t>(p.row - top) * matrix.cols + (p.col - left);
    matrix.values[element] = x;
    matrix.known[element] = true;
  });
  return matrix;
}

int Machine::warps() const {
  if (!parts_->launch) return 0;
  const dim3 block = parts_->launch->block;
  return static_cast<int>((block.x * block.y * block.z + 31) / 32);
}

std::vector<std::string> Machine::shared_names() const {
  std::vector<std::string> names;
  const Cta* cta = stopped_cta(*parts_);
  if (!cta) return names;
  std::vector<Named> all = cta->names;
  std::ranges::stable_sort(all, {}, &Named::begin);
  for (const Named& n : all) names.push_back(n.text);
  return names;
}

std::vector<std::string> Machine::register_names(int warp) const {
  std::vector<std::string> names;
  if (const Warp* of = find_warp(*parts_, warp))
    for (const Thread* lane : of->lanes)
      for (const Watched& w : lane ? lane->watched : std::vector<Watched>())
        if (std::ranges::find(names, w.name) == names.end()) names.push_back(w.name);
  return names;
}

}  // namespace flash::gpu

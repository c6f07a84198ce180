#include "sim/gpu/machine.hpp"

#include <fmt/format.h>

#include <stdexcept>

#include "sim/gpu/parts.hpp"
#include "sim/gpu/source_line.hpp"

namespace flash::gpu {
namespace {

/// Makes a machine the one whose step() is under way.
class Active {
 public:
  explicit Active(Machine::Parts& parts) : before_(machine) { machine = &parts; }
  ~Active() { machine = before_; }
  Active(const Active&) = delete;

 private:
  Machine::Parts* before_;
};

unsigned resident_limit(const Config& config, const Architecture& arch, unsigned threads, std::size_t smem) {
  unsigned per_sm = static_cast<unsigned>(arch.ctas_per_sm);
  per_sm = std::min(per_sm, static_cast<unsigned>(arch.threads_per_sm) / std::max(threads, 1u));
  if (smem > 0) per_sm = std::min(per_sm, static_cast<unsigned>(arch.smem_per_sm / smem));
  return std::max(per_sm, 1u) * static_cast<unsigned>(config.sms);
}

}  // namespace

Machine::Machine(const Config& config) : parts_(std::make_unique<Parts>(config)) {
  if (config.sms < 1)
    throw std::runtime_error(fmt::format("a virtual GPU of {} SMs was asked; take 1 or more", config.sms));
}

Machine::~Machine() { stop(); }

void Machine::stop() {
  const Active active(*parts_);
  current = nullptr;  // what the host's unwinding touches is no CUDA thread's
  if (parts_->launch)
    for (const auto& cta : parts_->launch->resident)
      for (Thread& t : cta->threads) t.fiber.forget();
  parts_->host.unwind();
  parts_->launch.reset();
  parts_->last_run = parts_->stopped_thread = nullptr;
  parts_->host_done = true;
}

void* Machine::allocate(const std::string& name, std::size_t bytes, Contents contents) {
  return parts_->global.allocate(name, bytes, contents == Contents::given);
}

void Machine::require_written(const void* p, std::size_t bytes) {
  const Active active(*parts_);
  const Allocation* a = parts_->global.find(p);
  const auto at = a ? static_cast<std::size_t>(static_cast<const std::byte*>(p) - a->data) : 0;
  if (!a || !parts_->config.checks || a->shadow.initialised(at, bytes)) return;
  std::size_t first = at;
  while (a->shadow.initialised(first, 1)) ++first;
  report("unwritten",
         fmt::format(
             "the host reads {}, but no kernel has written its byte {} of {}\n      a tile, a row or the last visit is "
             "left out",
             a->name, first, a->bytes),
         a->name);
}

void Machine::free_all() { parts_->global.free_all(); }

void Machine::start(std::function<void()> program) {
  stop();
  Parts& m = *parts_;
  m.program = std::move(program);
  m.host_done = m.fatal = false;
  constexpr std::size_t host_stack = std::size_t(1) << 20;
  m.host.begin(host_stack, [&m]() -> Fiber* {
    try {
      m.program();
    } catch (const boost::context::detail::forced_unwind&) {
      throw;
    } catch (...) {
      m.thrown = std::current_exception();
    }
    m.host_done = true;
    return &m.caller;
  });
}

std::optional<Event> Machine::step(unsigned kinds) {
  Parts& m = *parts_;
  const Faults faults(m);  // first: the last to go raises an interrupt that came
  const Active active(m);
  m.stop_kinds = kinds;
  m.stopped.reset();
  while (!m.fatal && !m.stopped && !m.host_done) {
    if (m.launch)
      run_some();
    else
      m.caller.switch_to(m.host);
  }
  if (m.thrown) std::rethrow_exception(std::exchange(m.thrown, nullptr));
  return m.stopped;
}

std::optional<Event> Machine::until(const std::function<bool(const Event&)>& stop) {
  const Faults faults(*parts_);
  while (auto event = step())
    if (stop(*event)) return event;
  return std::nullopt;
}

void Machine::run() { step(0); }

void Machine::run(std::function<void()> program) {
  start(std::move(program));
  run();
}

const std::vector<Report>& Machine::reports() const { return parts_->reports; }

const Counts& Machine::counts() const {
  Counts& counts = parts_->counts;
  counts.tensors.clear();
  for (const auto& a : parts_->global.allocations()) {
    TensorBytes& bytes = counts.tensors[a->name];
    bytes.read += a->read;
    bytes.written += a->written;
    bytes.rmw += a->rmw;
  }
  counts.lines.clear();
  std::vector<Pc> places;
  for (const auto& [pc, line] : parts_->line_counts) places.push_back(pc);
  look_up(places);
  for (const auto& [pc, line] : parts_->line_counts) {
    LineCounts& sum = counts.lines[where(pc)];
    sum.accesses += line.accesses;
    sum.wavefronts += line.wavefronts;
    sum.least_wavefronts += line.least_wavefronts;
    sum.sectors += line.sectors;
    sum.least_sectors += line.least_sectors;
  }
  return counts;
}

std::string Machine::state() const {
  const Active active(*parts_);
  return parts_->launch ? waiting_threads() : "no kernel is running\n";
}

void Machine::keep_accesses(bool keep) { parts_->config.accesses = keep; }

const Timeline& Machine::timeline() const { return parts_->timeline; }

std::string Machine::trace() const { return chrome_trace(*parts_); }

DeviceLimits device_limits() {
  if (!machine) throw std::runtime_error("a virtual GPU was asked for outside Machine::run(), where there is none");
  return {fmt::format("the virtual GPU of sm_{}", machine->arch.number), machine->arch.smem_per_cta};
}

void launch(const char* kernel, dim3 grid, dim3 block, std::size_t smem, const void* closure, std::size_t closure_bytes,
            void (*call)(const void*)) {
  if (!machine || current)
    throw std::runtime_error(fmt::format("{} was launched outside Machine::run(), where there is no GPU", kernel));
  if (block.x * block.y * block.z == 0 || block.z > 64)
    throw std::runtime_error(
        fmt::format("{} was launched with CTAs of {} x {} x {} threads, but a CTA has 1 to 1024, and "
                    "at most 64 in z; take those",
                    kernel, block.x, block.y, block.z));
  Machine::Parts& m = *machine;
  m.launch = std::make_unique<Launch>();
  Launch& l = *m.launch;
  l.kernel = kernel;
  l.grid = grid;
  l.block = block;
  l.smem_bytes = smem;
  l.closure = closure;
  l.closure_bytes = closure_bytes;
  l.call = call;
  l.ctas = std::uint64_t(grid.x) * grid.y * grid.z;
  l.resident_limit = resident_limit(m.config, m.arch, block.x * block.y * block.z, smem);
  l.first_cta = m.next_cta;
  constexpr std::uint64_t most_ctas = (1u << 25) - 1;  // what an Epoch can number
  if (m.next_cta + l.ctas > most_ctas) {
    m.launch.reset();
    throw std::runtime_error(
        fmt::format("{} was launched with {} CTAs, but a virtual GPU runs {} in its life; take a "
                    "smaller problem",
                    kernel, std::uint64_t(grid.x) * grid.y * grid.z, most_ctas));
  }
  m.counts.ctas += l.ctas;
  m.atomics.clear();
  begin_launch();
  if (m.stop_kinds & at_launch) {
    m.stopped = Event{at_launch, kernel, "", {}, 0, static_cast<std::int64_t>(l.ctas), 0, 0};
    m.stopped_thread = nullptr;
  }
  m.host.switch_to(m.caller);  // step() runs the kernel and then comes back
}

}  // namespace flash::gpu

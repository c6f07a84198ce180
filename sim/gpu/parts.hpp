// The machine's state, shared by the files of sim/gpu: each instruction family, memory and the scheduler work on it.
#pragma once

#include <signal.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "sim/gpu/global_memory.hpp"
#include "sim/gpu/machine.hpp"
#include "sim/gpu/thread.hpp"
#include "sim/gpu/timeline.hpp"

namespace flash::gpu {

/// A running kernel.
struct Launch {
  std::string kernel;
  dim3 grid, block;
  std::size_t smem_bytes = 0;
  const void* closure = nullptr;  ///< the kernel's arguments
  std::size_t closure_bytes = 0;
  void (*call)(const void*) = nullptr;
  std::uint64_t ctas = 0, started = 0, finished = 0;
  unsigned resident_limit = 0;  ///< CTAs that all SMs hold at once
  std::uint32_t first_cta = 1;  ///< serial number of its first
  std::vector<std::unique_ptr<Cta>> resident;
  std::uint64_t longest_cta = 0;  ///< nominal cycles
};

struct Machine::Parts {
  explicit Parts(const Config& config) : config(config), arch(architecture(config.arch)), random(config.seed * 2 + 1) {}

  Config config;
  const Architecture& arch;
  GlobalMemory global;
  Counts counts;  ///< its lines are filled in when asked for
  std::map<Pc, LineCounts> line_counts;
  std::vector<Report> reports;
  std::set<std::string> reported;  ///< one report for a place and kind
  Timeline timeline;

  // ---- execution
  Fiber caller, host;
  std::function<void()> program;
  std::exception_ptr thrown;  ///< by the program
  bool host_done = true, fatal = false;
  std::unique_ptr<Launch> launch;
  std::uint32_t next_cta = 1;  ///< serial number
  Thread* last_run = nullptr;  ///< where the last stop was, to go on there
  std::uint64_t changes = 0;   ///< grows with all that a polling thread may wait for
  std::uint64_t changes_at_round = 0;
  std::uint64_t meetings = 0;                ///< grows when a thread begins, waits for another one, or has its turn
  unsigned idle_rounds = 0;                  ///< how often pollers were let on without a change
  std::map<const void*, Knowledge> atomics;  ///< what the atomics on a location pass on

  // ---- stepping
  unsigned stop_kinds = 0;
  std::optional<Event> stopped;
  Thread* stopped_thread = nullptr;

  std::uint64_t random, round = 0;
  unsigned random_below(unsigned n);
  bool completes_now();  ///< an asynchronous instruction that is issued: early?
};

extern thread_local Thread* current;          ///< the CUDA thread that runs; none in host code
extern thread_local Machine::Parts* machine;  ///< whose step() is under way

// ---- scheduler.cpp
void block(Wait why, const char* doing, Pc pc);  ///< the current thread waits; returns when it was woken and runs
void wake(Thread& thread);
void give_way();  ///< another warp may run
/// Lets the other lanes of the warp run as far as they can. True for one of the lanes that then wait at `pc`, which
/// acts for all and calls wake_mates().
bool let_mates_run(const char* doing, Pc pc);
void wake_mates(Pc pc);
void to_caller();  ///< back to Machine::step()
void run_some();   ///< one warp for a while; the launch is gone once the kernel has ended

// ---- warp.cpp, barrier.cpp
/// The current lane meets the lanes of `mask` that have not exited at one call. True for the one that has to execute it
/// for all, with everyone's operands there, and then call meeting_done(); false for the others once that has happened.
bool meet(const char* name, std::uint32_t mask, void* operands, Pc pc);
void meeting_done(std::uint32_t mask);
void exited_from_meetings(const Thread& gone);
void exited(Thread& thread);  ///< those that wait for it need not any longer

// ---- report.cpp
/// Adds a report, once for each kind and place. A fatal one ends the run: it does not return on a CUDA thread.
void report(const std::string& kind, const std::string& text, const std::string& place, bool fatal = false);
std::string thread_name(const Cta& cta, unsigned agent);  ///< "thread 37 (warp 1, lane 5)", "cp.async of thread 37"
std::string cta_name(const uint3& index);                 ///< "CTA (0,2,0)"
std::string smem_name(const Cta& cta, std::size_t at);    ///< "shared memory, byte 9216 (K)"
std::string lanes_text(std::uint32_t lanes);              ///< "0-3, 8"
/// "thread 37 (warp 1, lane 5) of CTA (0,0,0) at forward.cu:77, tile 3"
std::string here(const Thread& thread, Pc pc);
std::string waiting_threads();  ///< all of them, grouped
/// "divergence" where lanes of one warp wait at different calls, else "deadlock".
std::string deadlock_kind();
/// An access that is not ordered after an earlier one.
void report_race(const Thread& thread, const char* doing, Pc pc, const std::string& what, const Epoch& then,
                 const std::string& hint);

// ---- faults.cpp
/// While one lives, a signal that would kill the program on a CUDA thread of this OS thread is a fatal report, and so
/// is a loop without end. An interrupt ends the run, too, and is raised again when the machine has been left.
/// Afterwards the host's own handlers are back. A second one for the same machine does nothing.
class Faults {
 public:
  explicit Faults(Machine::Parts& parts);
  ~Faults();
  Faults(const Faults&) = delete;
  /// A signal that came at `pc`: now and then the timer's. False where it is somebody else's.
  bool tick(const siginfo_t& info, Pc pc);
  void interrupt(Pc pc);

 private:
  void tick_in(double s);

  Machine::Parts& parts_;
  Faults* outer_;
  bool is_second() const { return outer_ && &outer_->parts_ == &parts_; }
  std::uint64_t meetings_ = 0;  ///< at the last tick
  volatile sig_atomic_t interrupted_ = 0;
  std::optional<timer_t> timer_;
  stack_t stack_before_{};  ///< for signals
};
/// The kernel's code; an exception that leaves it is a fatal report.
void run_kernel(const Launch& launch);

// ---- memory.cpp: accesses by the current thread, checked and counted
/// Strong accesses are volatile ones: like atomics they don't race with each other.
/// read_struct: its padding may be unwritten.
enum class Way : std::uint8_t { read, write, read_struct, atomic, strong_read, strong_write };
/// `alignment`: that the hardware asks for; 1: it is taken apart into what its own type is aligned to.
void access(const void* p, std::size_t bytes, Way way, Pc pc, const char* doing, std::size_t alignment);
/// Offset of [p, p + bytes) in the CTA's shared memory; a fatal report where it is elsewhere or not aligned.
std::size_t smem_offset(const void* p, std::size_t bytes, std::size_t alignment, Pc pc, const char* doing);
void touch_smem(std::size_t at, std::size_t bytes, Way way, Pc pc, const char* doing);
/// By cp.async on the current thread's behalf.
void touch_smem_async(std::size_t at, std::size_t bytes, std::uint32_t group, Pc pc);
void touch_source_async(const void* from, std::size_t bytes, std::uint32_t group, Pc pc);
/// The current thread looks at what others may change: in a loop that waits, others must get on.
void poll(const void* location, Pc pc, const char* doing);
/// Fences pass on what a thread knows through locations that atomics and strong accesses meet at.
void pass_knowledge(const void* location, bool writes, bool reads);

// ---- counts.cpp
/// Banks and sectors of what its lanes accessed since the last look. `waits`: until what comes from global memory is
/// there.
void look_at_log(Warp& warp, bool waits = true);
void count_wavefronts(Pc pc, unsigned wavefronts, unsigned least);
void count_instruction(const char* name);

// ---- timeline.cpp
void begin_launch();
void memory_event(Warp& warp, const char* name, Pc pc, unsigned cycles);  ///< plain accesses
void waited(Warp& warp, Pc pc, std::uint64_t until);                      ///< at `pc` for what was there at `until`
void begin_track(Cta& cta, Launch& launch);
void end_track(Cta& cta);
std::string chrome_trace(const Machine::Parts& parts);
/// Is the current thread the first of its warp to pass this place for the k-th time? What lanes do by themselves is one
/// event of the warp.
bool first_of_warp(Pc pc);
/// An asynchronous instruction.
void async_event(const char* name, Pc pc, std::int64_t value, unsigned cycles);
/// An event of the current thread's warp that took nominal `cycles`; may stop the machine.
void event(EventKind kind, const char* name, Pc pc, std::int64_t value = 0, unsigned cycles = 0);

/// The machine can execute it only on sm_`arch` or newer.
void require_arch(int arch, const char* instruction, Pc pc);

}  // namespace flash::gpu

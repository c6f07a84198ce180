// The virtual GPU: runs host code that launches kernels, instruction by instruction, checks what they do and counts
// what they move.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/gpu/architecture.hpp"
#include "sim/gpu/cuda_types.hpp"
#include "sim/gpu/instructions.hpp"

namespace flash::gpu {

/// When the effect of an asynchronous instruction becomes visible. At random, CTAs start before they have to, too.
enum class Completion { early, late, random };

/// The GPU that is simulated, and how.
struct Config {
  int arch = 75;  ///< sm_75: what it has and what it refuses
  int sms = 4;    ///< they bound how many CTAs are resident
  Completion completion = Completion::late;
  std::uint64_t seed = 1;  ///< of the order in which warps run; 0: round robin
  bool checks = true;      ///< races, uninitialised reads
  bool counts = true;      ///< bytes, sectors, bank conflicts
  bool timeline = false;
  bool accesses = false;  ///< the timeline keeps each lane's accesses, too
  std::size_t most_reports = 8;
  std::size_t stack_bytes = 256 * 1024;  ///< of a thread: its local memory
  double most_seconds_alone = 20;        ///< [s of processor time] a thread may run without meeting anyone; 0: any time
};

/// Something that a kernel did wrong: what, where, who, against whom, and what to do.
struct Report {
  std::string kind;  ///< "race", "deadlock", "bounds", …
  std::string text;
};

/// What stepping can stop at.
enum EventKind : unsigned {
  at_instruction = 1,  ///< a warp's collective: ldmatrix, mma, shuffle, vote
  at_barrier = 2,
  at_async = 4,    ///< an asynchronous instruction is issued or waited for
  at_mark = 8,     ///< ptx::mark
  at_launch = 16,  ///< a kernel begins
  at_anything = 31,
};

/// What a stepper stops at.
struct Event {
  EventKind kind = at_instruction;
  std::string name;   ///< "mma.sync.aligned.m16n8k8.f16", or the mark's
  std::string where;  ///< "cuda/03_online_softmax/forward.cu:77"
  uint3 cta{};
  int warp = 0;
  std::int64_t value = 0;            ///< the mark's
  std::uint64_t begin = 0, end = 0;  ///< nominal cycles of the warp: a shape, not a prediction
};

/// Accesses of one tensor in global memory [bytes], as the threads asked for them.
struct TensorBytes {
  std::uint64_t read = 0, written = 0, rmw = 0;
};

/// What one source line did to shared memory's banks or to global memory's sectors.
struct LineCounts {
  std::uint64_t accesses = 0;  ///< by warps
  std::uint64_t wavefronts = 0, least_wavefronts = 0;
  std::uint64_t sectors = 0, least_sectors = 0;  ///< of 32 bytes
};

/// What a launch did, by all its threads.
struct Counts {
  std::map<std::string, TensorBytes> tensors;
  std::uint64_t smem_read = 0, smem_written = 0;       ///< [bytes]
  std::uint64_t wavefronts = 0, least_wavefronts = 0;  ///< of shared memory
  std::uint64_t sectors = 0, least_sectors = 0;        ///< of global memory
  std::map<std::string, std::uint64_t> instructions;   ///< executed by a warp: "mma.sync.aligned.m16n8k8.f16", …
  std::map<std::string, LineCounts> lines;             ///< "cuda/….cu:77"
  std::uint64_t barriers = 0, ctas = 0, cycles = 0;    ///< cycles: the longest CTA's nominal ones, summed by launch
};

/// Contents of fresh global memory.
enum class Contents { given, undefined };

struct Timeline;  ///< sim/gpu/timeline.hpp

class FLASH_GPU_API Machine {
 public:
  explicit Machine(const Config& config = {});
  ~Machine();
  Machine(const Machine&) = delete;

  // ---- global memory, between guard zones
  /// Zero-filled and taken as initialised (given), or filled with 0xFF and not to be read before it is written.
  void* allocate(const std::string& name, std::size_t bytes, Contents contents);
  /// Releases everything that was allocated.
  void free_all();
  /// The host is about to read an output: what no kernel has written is a report.
  void require_written(const void* p, std::size_t bytes);

  // ---- running
  /// Takes host code that launches kernels. It runs in step(), until() and run().
  void start(std::function<void()> program);
  /// Runs to the next event of `kinds`; nothing at the end, when a report was fatal or the program threw (which is
  /// thrown here).
  std::optional<Event> step(unsigned kinds = at_anything);
  /// Runs to the first event for which `stop` says true.
  std::optional<Event> until(const std::function<bool(const Event&)>& stop);
  /// Runs to the end. An interrupt (SIGINT) ends step(), until() and run() with a fatal report, and is raised once the
  /// machine has been left: to the host it came in its own code.
  void run();
  /// start() and run().
  void run(std::function<void()> program);
  /// Leaves what runs where it is, for good. start() does so first.
  void stop();

  // ---- looking
  const std::vector<Report>& reports() const;
  const Counts& counts() const;
  /// Of the CTA of the last event: its shared memory, and a thread's local array that ptx::watch named.
  std::span<const std::byte> shared_memory() const;
  std::span<const std::byte> shared_memory(const std::string& name) const;  ///< what ptx::name named; else nothing
  std::span<const std::byte> watched(int thread, const std::string& name) const;
  /// The same as matrices: "P" of ptx::name, and "S" of ptx::watch as the lanes of a warp hold it. Nothing where there
  /// is no such name, or what it names is no matrix.
  std::optional<Matrix> shared_matrix(const std::string& name) const;
  std::optional<Matrix> registers(int warp, const std::string& name) const;
  std::vector<std::string> shared_names() const;            ///< in the order of their addresses
  std::vector<std::string> register_names(int warp) const;  ///< in the order in which they were watched
  int warps() const;                                        ///< of a CTA of the kernel that runs; 0 where none does
  /// Who waits where for what, and what is in flight.
  std::string state() const;
  /// So far; needs Config::timeline. The last slice of a stop is its event's.
  const Timeline& timeline() const;
  /// From now on, whatever Config::accesses says.
  void keep_accesses(bool keep);
  /// Chrome trace (JSON) of the nominal timeline; needs Config::timeline.
  std::string trace() const;

  struct Parts;  ///< sim/gpu's own
  Parts& parts() { return *parts_; }

 private:
  std::unique_ptr<Parts> parts_;
};

/// How often this OS thread ran into the compiler's hooks outside a CUDA thread: host code of kernel files does, a CPU
/// stage must not.
FLASH_GPU_API std::uint64_t hooks_outside_kernels();

}  // namespace flash::gpu

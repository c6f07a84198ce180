// What would kill the program becomes a report where a CUDA thread did it: a full stack, a division by zero, a call of
// nothing, an abort, an exception; and what would never end: a loop that meets nobody.
#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <mutex>
#include <utility>

#include "sim/gpu/parts.hpp"
#include "sim/gpu/source_line.hpp"

namespace flash::gpu {
namespace {

// ---- whose fault it is

/// Where the shared object that holds this address is loaded; nothing for what is no code.
const void* object_of(Pc pc) {
  Dl_info info;
  return dladdr(pc, &info) ? info.dli_fbase : nullptr;
}

/// where() takes return addresses, which lie behind their instruction.
Pc behind(Pc pc) { return static_cast<const std::byte*>(pc) + 1; }

struct Search {
  Pc interrupted;
  const void *kernel, *machine;  ///< their objects
  bool in_handler = true;
  Pc place = nullptr;  ///< of the kernel
  bool ours = false;   ///< the machine's own code was interrupted
};

_Unwind_Reason_Code look_at_frame(_Unwind_Context* frame, void* data) {
  Search& s = *static_cast<Search*>(data);
  int interrupted = 0;
  const Pc pc = reinterpret_cast<Pc>(_Unwind_GetIPInfo(frame, &interrupted));
  if (s.in_handler && pc != s.interrupted) return _URC_NO_REASON;
  s.in_handler = false;
  const void* object = object_of(pc);
  if (object == s.kernel) s.place = interrupted ? behind(pc) : pc;
  s.ours = object == s.machine;
  return s.place || s.ours ? _URC_END_OF_STACK : _URC_NO_REASON;
}

/// The kernel's line in which the signal came, be it in a function of libc or libm that it called. Code of the
/// machine's own further in makes it a bug of ours.
Search search(const siginfo_t& info, Pc pc, const Pc* stack) {
  Search s{pc, object_of(reinterpret_cast<Pc>(machine->launch->call)), object_of(reinterpret_cast<Pc>(report))};
  const bool jumped = info.si_signo == SIGSEGV && info.si_addr == pc;
  if (!jumped)
    _Unwind_Backtrace(look_at_frame, &s);
  else if (object_of(*stack) == s.kernel)  // a call has left its return address
    s.place = *stack;
  return s;
}

// ---- the guard below a thread's stack

bool is_in_guard(const void* p, std::size_t guard = Fiber::guard_bytes) {
  return static_cast<std::size_t>(current->fiber.stack() - static_cast<const std::byte*>(p)) <= guard;
}

/// Kernels are compiled to stop before their stack is full. Where the machine's own functions need more than what is
/// left, such as for a report, they get half of the guard; the stack keeps it.
bool lends(const siginfo_t& info) {
  constexpr std::size_t half = Fiber::guard_bytes / 2;
  return info.si_signo == SIGSEGV && is_in_guard(info.si_addr, half) &&
         mprotect(const_cast<std::byte*>(current->fiber.stack()) - half, half, PROT_READ | PROT_WRITE) == 0;
}

// ---- what is said

struct Words {
  const char* kind;
  std::string doing, help;
};

Words words_of_access(const siginfo_t& info, Pc pc) {
  if (is_in_guard(info.si_addr))
    return {"local memory", "local memory is used up",
            fmt::format("a thread has {} KiB here (Config::stack_bytes): take smaller local arrays, shared memory or a "
                        "tensor, and a loop instead of deep recursion",
                        current->fiber.stack_bytes() / 1024)};
  const std::string address = info.si_code == SI_KERNEL ? "an address that no memory can have"
                                                        : fmt::format("address {}", fmt::ptr(info.si_addr));
  if (info.si_addr != pc)
    return {"fault", fmt::format("access of {}", address), "there is nothing: a pointer or an index is wrong"};
  if (reinterpret_cast<std::uintptr_t>(pc) < 65536)
    return {"fault", "call of a null pointer", "a function that this kernel was not given"};
  return {"fault", fmt::format("jump to {}", address),
          "there is no code: a wrong pointer to a function, or a local array written beyond its end"};
}

Words words_of(const siginfo_t& info, Pc pc) {
  switch (info.si_signo) {
    case SIGFPE:
      return {"fault", "integer division by zero", "a GPU goes on with some number: look at the divisor first"};
    case SIGABRT: return {"fault", "abort", "abort(), or a library's check; what it says is on standard error"};
    case SIGILL: return {"fault", "trap", "__builtin_trap(), or a jump to what is no code"};
    default: return words_of_access(info, pc);
  }
}

/// Leaves the signal's handler by a switch to the caller's fiber. Linux is content with that: with SA_NODEFER nothing
/// is blocked in a handler, and whether the signals' stack is in use is seen by the stack pointer alone.
void report_fault(const Words& words, Pc place) {
  report(words.kind, fmt::format("{} by {}\n      {}", words.doing, here(*current, place), words.help), where(place),
         true);
}

// ---- signals

void on_signal(int signal, siginfo_t* info, void* context);

/// SIGVTALRM is the timer's, since debuggers let it pass.
constexpr std::array signals{SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGVTALRM, SIGINT};
std::mutex lock;
unsigned users = 0;  // handlers belong to the process, and machines may run on several of its threads
struct sigaction before[signals.size()];

void install() {
  const std::lock_guard guard(lock);
  if (users++ > 0) return;
  struct sigaction ours {};
  ours.sa_sigaction = on_signal;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER | SA_RESTART;
  for (std::size_t i = 0; i < signals.size(); ++i) sigaction(signals[i], &ours, &before[i]);
}

void restore() {
  const std::lock_guard guard(lock);
  if (--users > 0) return;
  for (std::size_t i = 0; i < signals.size(); ++i) {
    struct sigaction now;
    sigaction(signals[i], &before[i], &now);
    if (now.sa_sigaction != on_signal) sigaction(signals[i], &now, nullptr);  // the host has taken another meanwhile
  }
}

/// What would have happened without this file.
void pass_on(int signal, siginfo_t* info, void* context) {
  const struct sigaction& old = before[std::ranges::find(signals, signal) - signals.begin()];
  if (old.sa_flags & SA_SIGINFO) return old.sa_sigaction(signal, info, context);
  if (old.sa_handler != SIG_DFL && old.sa_handler != SIG_IGN) return old.sa_handler(signal);
  sigaction(signal, &old, nullptr);
  if (info->si_code <= 0) raise(signal);  // else the instruction is tried again
}

thread_local Faults* innermost = nullptr;

void on_signal(int signal, siginfo_t* info, void* context) {
  const int error = errno;
  const auto& registers = static_cast<const ucontext_t*>(context)->uc_mcontext.gregs;
  const Pc pc = reinterpret_cast<Pc>(registers[REG_RIP]);
  const bool by_thread = info->si_code > 0 || (info->si_code == SI_TKILL && info->si_pid == getpid());
  if (signal == SIGVTALRM) {
    if (!innermost || !innermost->tick(*info, pc)) pass_on(signal, info, context);
  } else if (signal == SIGINT && innermost) {
    innermost->interrupt(pc);
  } else if (current && by_thread) {
    const Search s = search(*info, pc, reinterpret_cast<const Pc*>(registers[REG_RSP]));
    if (!s.ours) report_fault(words_of(*info, pc), s.place);
    if (!lends(*info)) pass_on(signal, info, context);
  } else {
    pass_on(signal, info, context);
  }
  errno = error;
}

timespec seconds(double s) {
  const auto whole = static_cast<time_t>(s);
  return {whole, static_cast<long>((s - static_cast<double>(whole)) * 1e9)};
}

}  // namespace

Faults::Faults(Machine::Parts& parts) : parts_(parts), outer_(std::exchange(innermost, this)) {
  if (is_second()) return;
  constexpr std::size_t bytes = 256 * 1024;
  static thread_local const auto memory = std::make_unique_for_overwrite<std::byte[]>(bytes);
  const stack_t stack{memory.get(), 0, bytes};
  sigaltstack(&stack, &stack_before_);
  install();
  if (parts.config.most_seconds_alone <= 0) return;
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = SIGVTALRM;
  event.sigev_value.sival_ptr = this;
  event._sigev_un._tid = gettid();
  timer_t timer;
  if (timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer) != 0) return;
  timer_ = timer;
  tick_in(parts.config.most_seconds_alone);
}

Faults::~Faults() {
  innermost = outer_;
  if (is_second()) return;
  if (timer_) timer_delete(*timer_);
  restore();
  sigaltstack(&stack_before_, nullptr);
  if (!interrupted_) return;
  if (parts_.reports.empty() || parts_.reports.back().kind != "interrupted")
    parts_.reports.push_back({"interrupted", "the run was stopped"});
  raise(SIGINT);  // the host may leave by siglongjmp: nothing of the machine is under way
}

void Faults::tick_in(double s) {
  const itimerspec times{seconds(parts_.config.most_seconds_alone), seconds(s)};
  timer_settime(*timer_, 0, &times, nullptr);
}

bool Faults::tick(const siginfo_t& info, Pc pc) {
  if (info.si_code != SI_TIMER || info.si_value.sival_ptr != this) return outer_ && outer_->tick(info, pc);
  if (machine != &parts_ || !current) return true;
  if (interrupted_) return interrupt(pc), true;
  if (std::exchange(meetings_, machine->meetings) != machine->meetings) return true;
  if (object_of(pc) == object_of(reinterpret_cast<Pc>(machine->launch->call)))
    report_fault(
        {"endless", fmt::format("run of more than {} s without meeting anyone", parts_.config.most_seconds_alone),
         "an endless loop? What waits for another thread needs a barrier, an atomic or a volatile read; for "
         "what only takes long, raise Config::most_seconds_alone"},
        behind(pc));
  tick_in(1e-3);  // the machine is at work for the kernel, and must not be left in the middle: it is soon done
  return true;
}

/// At once where the kernel's own code runs; else soon, when a warp has had its turn or the timer finds kernel code.
void Faults::interrupt(Pc pc) {
  if (is_second()) return outer_->interrupt(pc);
  interrupted_ = 1;
  parts_.fatal = true;
  if (machine != &parts_ || !current) return;
  if (object_of(pc) == object_of(reinterpret_cast<Pc>(machine->launch->call)))
    report("interrupted", fmt::format("the run was stopped at {}", here(*current, behind(pc))), where(behind(pc)),
           true);
  if (timer_) tick_in(1e-3);
}

void run_kernel(const Launch& launch) {
  std::string what;
  try {
    return launch.call(launch.closure);
  } catch (const std::exception& error) {
    what = error.what();
  } catch (const boost::context::detail::forced_unwind&) {
    throw;
  } catch (...) {
    what = "of a type of its own";
  }
  report("fault",
         fmt::format("exception by {} of {} leaves the kernel {}: {}\n      a GPU has no exceptions",
                     thread_name(*current->cta, current->index), cta_name(current->cta->index), launch.kernel, what),
         "exception", true);
}

}  // namespace flash::gpu

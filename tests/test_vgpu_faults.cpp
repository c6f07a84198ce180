// What would kill a kernel's program, or never end, is a report of the virtual GPU; the host's own handlers of signals
// stay what they are.
#include <sys/mman.h>
#include <sys/time.h>

#include <array>
#include <csignal>
#include <cstring>
#include <thread>

#include "tests/catch.hpp"
#include "tests/support/vgpu.hpp"

using namespace flash;
using Catch::Contains;
using gpu::Config;
using gpu::Contents;
using gpu::Machine;

namespace {

constexpr std::array signals{SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGVTALRM, SIGINT};

const KernelFile& faults() {
  static const KernelFile file = KernelFile::built("faults");
  return file;
}

/// Runs a kernel of faults.cu, and then a right one on the same machine.
struct Run {
  Machine machine;
  int* A;

  explicit Run(const Config& config = {})
      : machine(config), A(static_cast<int*>(machine.allocate("A", 4096, Contents::given))) {}
  std::string operator()(const char* kernel) {
    machine.run([&] { faults().call((std::string("flash_") + kernel).c_str(), A); });
    return all_reports(machine);
  }
};

/// The reports of a kernel, in a child that then runs a right one.
std::string said_of(const std::string& kernel, const Config& config = {}) {
  return in_child([&] {
    Run run(config);
    const std::string said = run(kernel.c_str());
    run.A[0] = 0;
    return run("ends") == said && run.A[63] == 1 ? said : "the machine can't be used again";
  });
}

std::string line(const std::string& tag) { return line_with("tests/kernels/faults.cu", "// @" + tag); }

Config impatient() {
  Config config;
  config.most_seconds_alone = 0.05;
  return config;
}

/// All that a run must leave as it was.
std::string handlers() {
  std::string text;
  for (const int signal : signals) {
    struct sigaction now;
    sigaction(signal, nullptr, &now);
    text += std::to_string(reinterpret_cast<std::uintptr_t>(now.sa_handler)) + " ";
  }
  stack_t stack;
  sigaltstack(nullptr, &stack);
  return text + std::to_string(stack.ss_flags) + " " + std::to_string(reinterpret_cast<std::uintptr_t>(stack.ss_sp)) +
         "; timers: " + KernelFile::contents("/proc/self/timers");
}

int seen = 0;
void see(int) { ++seen; }

}  // namespace

TEST_CASE("What would kill the program is a report", "[vgpu]") {
  struct Case {
    const char *kernel, *words, *who, *tag, *help;
  };
  const char* first = "thread 0 (warp 0, lane 0) of CTA (0,0,0)";
  for (const Case& c : {
           Case{"big_array", "[local memory] local memory is used up", first, "big_array", "a thread has 256 KiB here"},
           Case{"recursion", "[local memory] local memory is used up", first, "recursion", "deep recursion"},
           Case{"below", "[bounds] read of 4 bytes", first, "below", "just below the thread's 256 KiB of local memory"},
           Case{"division", "[fault] integer division by zero", "thread 37 (warp 1, lane 5) of CTA (0,0,0)", "division",
                "look at the divisor"},
           Case{"null_call", "[fault] call of a null pointer", first, "call", "function"},
           Case{"wild_call", "[fault] jump to address 0x", first, "call", "there is no code"},
           Case{"copy", "[fault] access of address", first, "copy", "a pointer or an index is wrong"},
           Case{"aborts", "[fault] abort", "thread 3 (warp 0, lane 3) of CTA (1,0,0)", "aborts", "a library's check"},
           Case{"trap", "[fault] trap", first, "trap", "__builtin_trap()"},
       }) {
    INFO(c.kernel);
    const std::string said = said_of(c.kernel);
    CHECK_THAT(said,
               Contains(c.words) && Contains(std::string(c.who) + " at " + line(c.tag) + "\n") && Contains(c.help));
    CHECK(said.find("\n[") == said.npos);
  }
  CHECK_THAT(said_of("throws"), Contains("[fault] exception by thread 3 (warp 0, lane 3) of CTA (0,0,0) leaves the "
                                         "kernel faulty: the kernel says no\n"));
}

TEST_CASE("Near the end of its local memory a thread is reported as anywhere", "[vgpu]") {
  Config config;
  config.stack_bytes = 64 * 1024;
  std::string kinds;
  for (int depth = 120; depth < 220; depth += 2) {
    const std::string said = in_child([&] {
      Run run(config);
      run.A[1] = depth;
      return run("recursion");
    });
    const std::string kind = said.starts_with("[") ? said.substr(0, said.find(']') + 1) : said;
    if (!kinds.ends_with(kind)) kinds += kind;
  }
  CHECK(kinds == "[bounds][local memory]");
}

TEST_CASE("A thread that runs too long without meeting anyone is reported", "[vgpu]") {
  for (const char* kernel : {"spins", "waits"}) {
    INFO(kernel);
    CHECK_THAT(said_of(kernel, impatient()),
               Contains("[endless] run of more than 0.05 s without meeting anyone by thread") &&
                   Contains("of CTA (0,0,0) at " + line(kernel) + "\n") && Contains("an endless loop?"));
  }
  Config config = impatient();
  CHECK(said_of("meets", config) == "");
  config.most_seconds_alone = 0;
  CHECK(in_child([&] { return Run(config)("spins"); }, 1) == "hangs");
}

TEST_CASE("The host's handlers of signals are back after a run, a fault or a stop", "[vgpu]") {
  CHECK(in_child([&] {
          const std::string before = handlers();
          Run run(impatient());
          for (const char* kernel : {"ends", "division", "recursion", "spins", "aborts"}) {
            run(kernel);
            if (handlers() != before) return kernel + (" leaves " + handlers());
          }
          run.machine.start([&] { faults().call("flash_ends", run.A); });
          run.machine.step();
          return handlers() == before ? std::string() : "a stop leaves " + handlers();
        }) == "");
}

TEST_CASE("An interrupt comes to the host when the machine has been left", "[vgpu]") {
  for (const char* kernel : {"spins", "waits"}) {
    INFO(kernel);
    CHECK(in_child([&] {
            static std::string seen;
            static std::string before;
            std::signal(SIGINT, [](int) { seen += handlers() == before ? "host" : "machine"; });
            before = handlers();
            Run run;
            std::thread([] {
              std::this_thread::sleep_for(std::chrono::milliseconds(100)), kill(getpid(), SIGINT);
            }).detach();
            const std::string said = run(kernel);
            if (seen != "host" || !said.starts_with("[interrupted] the run was stopped")) return seen + said;
            Run next;
            return next("ends");
          }) == "");
  }
}

TEST_CASE("A fault of the host is the host's, while the machine runs, too", "[vgpu]") {
  const auto host = [](void (*fault)()) {
    return in_child([&] {
      Machine().run(fault);
      return std::string("goes on, ") + std::to_string(seen);
    });
  };
  CHECK_THAT(host([] { std::memset(mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 1, 1); }),
             Contains(strsignal(SIGSEGV)) || Contains("ends with status 1"));  // 1: by a sanitizer
  CHECK_THAT(host([] { std::abort(); }), Contains(strsignal(SIGABRT)));
  CHECK_THAT(host([] { std::raise(SIGFPE); }), Contains(strsignal(SIGFPE)));
  CHECK(in_child([&] {
          for (const int signal : signals) std::signal(signal, see);
          Machine().run([] {
            for (const int signal : signals) std::raise(signal);
          });
          Run run;
          run("division");
          return "seen: " + std::to_string(seen);
        }) == "seen: 7");
}

TEST_CASE("A timer of the host's goes on", "[vgpu]") {
  CHECK(in_child([&] {
          std::signal(SIGVTALRM, see);
          const itimerval times{{0, 10000}, {0, 10000}};
          setitimer(ITIMER_VIRTUAL, &times, nullptr);
          const std::string said = Run(impatient())("spins");
          return said.substr(0, 9) + (seen > 3 ? " seen" : " unseen");
        }) == "[endless] seen");
}

TEST_CASE("A fault of the machine itself still kills the program", "[vgpu]") {
  CHECK_THAT(in_child([] { return Run()("breaks_the_machine"); }),
             Contains(strsignal(SIGSEGV)) || Contains("ends with status 1"));  // 1: by a sanitizer
}

TEST_CASE("Machines on several threads of the host have faults of their own", "[vgpu]") {
  CHECK(in_child([] {
          std::array<std::string, 4> said;
          std::array<std::thread, 4> threads;
          const std::array kernels{"recursion", "division", "aborts", "spins"};
          for (std::size_t i = 0; i < 4; ++i)
            threads[i] = std::thread([&, i] {
              for (int times = 0; times < 3; ++times) said[i] = Run(impatient())(kernels[i]);
            });
          for (auto& thread : threads) thread.join();
          std::string kinds;
          for (const auto& text : said) kinds += text.substr(0, text.find(']') + 1);
          return kinds;
        }) == "[local memory][fault][fault][endless]");
}

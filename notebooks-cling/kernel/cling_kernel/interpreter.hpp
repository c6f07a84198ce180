// Runs one piece of a cell. Whatever it does, the kernel lives on: exceptions, failed asserts, bad accesses, an
// interrupt.
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <exception>
#include <iostream>
#include <pthread.h>

#include "TInterpreter.h"

namespace cling_kernel {

enum Outcome { done = 0, failed = 1, unbalanced = 99, by_signal = 1000 };  // + the signal's number

inline sigjmp_buf before;
inline volatile std::sig_atomic_t running = 0;
inline pthread_t thread;
inline unsigned char signal_stack[1 << 16];  // of its own, so that a full stack can be left

inline void on_signal(int signal) {
  if (running && pthread_equal(pthread_self(), thread)) {
    running = 0;
    siglongjmp(before, signal);
  }
  if (signal == SIGINT) {
    if (running) pthread_kill(thread, signal);
    return;
  }
  std::signal(signal, SIG_DFL);  // another thread's fault: no way back
  raise(signal);
}

class Signals {
 public:
  Signals() {
    stack_t stack{};
    stack.ss_sp = signal_stack;
    stack.ss_size = sizeof signal_stack;
    sigaltstack(&stack, &stack_before_);
    struct sigaction action {};
    action.sa_handler = on_signal;
    action.sa_flags = SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < count; ++i) sigaction(signals[i], &action, &before_[i]);
  }
  ~Signals() {
    for (int i = 0; i < count; ++i) sigaction(signals[i], &before_[i], nullptr);
    sigaltstack(&stack_before_, nullptr);
  }

 private:
  static constexpr int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGINT}, count = 6;
  struct sigaction before_[count];
  stack_t stack_before_;
};

inline int interpret(const char* code, bool as_declaration) {
  int outcome = done;
  try {
    if (as_declaration)
      outcome = gInterpreter->Declare(code) ? done : failed;
    else
      gInterpreter->ProcessLine(code, &outcome);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "compilation failed: %s\n", error.what());
    outcome = failed;
  } catch (...) {
    std::fprintf(stderr, "compilation failed with unknown error\n");
    outcome = failed;
  }
  return outcome;
}

inline int run(const char* code, int as_declaration) {
  int outcome;
  {
    const Signals signals;
    const int signal = sigsetjmp(before, 1);
    if (signal == 0) {
      thread = pthread_self();
      running = 1;
      outcome = interpret(code, as_declaration != 0);
    } else {
      outcome = by_signal + signal;
    }
    running = 0;
  }
  if (outcome == unbalanced) gInterpreter->ProcessLine(".@");  // Cling would wait for the rest
  std::cout.flush();
  std::cerr.flush();
  std::fflush(nullptr);
  return outcome;
}

inline long address_of_run() { return reinterpret_cast<long>(&run); }

}  // namespace cling_kernel

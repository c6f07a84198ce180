// Random programs of a CTA's threads: a race is reported exactly where two conflicting accesses are not ordered, and
// the word that a report names is one of those.
#include <algorithm>
#include <cstdlib>
#include <set>
#include <vector>

#include "tests/catch.hpp"
#include "tests/conformance/inputs.hpp"
#include "tests/kernels/program.hpp"
#include "tests/support/vgpu.hpp"

using namespace flash;
using conformance::Random;
using gpu::Config;
using gpu::Contents;
using gpu::Machine;
using program::Kind;
using program::Op;
using program::steps;
using program::threads;

namespace {

using Program = std::vector<Op>;  // [steps, threads]

bool is_access(const Op& op) {
  return op.kind == Kind::read || op.kind == Kind::write || op.kind == Kind::atomic || op.kind == Kind::copy;
}

/// A few threads access a few words, copy to them or wait for their copies, or threads meet: all, some warps, or warps
/// at a named barrier of which some don't wait.
Program draw(Random& random, bool copies) {
  Program ops(steps * threads, Op{Kind::nothing, 0, 0, 0});
  std::uint32_t barrier = 0, thread = 0;
  for (std::uint32_t step = 0; step < steps; ++step) {
    Op* const now = &ops[step * threads];
    const std::uint32_t what = random.below(10);
    if (what <= 1) {
      for (int t = 0; t < threads; ++t) now[t].kind = Kind::sync_threads;
    } else if (what <= 4) {
      const std::uint32_t warps = 1 + random.below(7);
      for (std::uint32_t t = 0; t < threads; ++t)
        if (warps >> t / 32 & 1) now[t].kind = Kind::sync_warp;
    } else if (what <= 6 && barrier < 15) {
      const std::uint32_t id = ++barrier, left_out = random.below(4), waiting = random.below(3);
      const std::uint32_t count = left_out < 3 ? 64 : 96;
      for (std::uint32_t t = 0; t < threads; ++t) {
        if (t / 32 == left_out) continue;
        const bool waits = t / 32 == waiting || random.below(2) == 0;
        now[t] = {waits ? Kind::sync : Kind::arrive, id, 0, count};
      }
      for (std::uint32_t t = 0; t < threads; ++t) now[t].kind = now[t / 32 * 32].kind;  // a warp does the same
    } else {
      const std::uint32_t base = random.one_in(2) ? 0 : random.below(program::words) * 4;
      for (std::uint32_t n = 1 + random.below(5) / 4; n > 0; --n) {
        const std::uint32_t kinds = random.below(copies ? 11 : 6), bytes = 1u << random.below(5) / 2;
        Op op{kinds < 3   ? Kind::read
              : kinds < 5 ? Kind::write
                          : Kind::atomic,
              base + random.below(4 / bytes) * bytes, bytes, 0};
        if (kinds >= 6) op = {kinds < 8 ? Kind::copy : kinds == 8 ? Kind::commit : Kind::wait, 0, 0, 0};
        if (op.kind == Kind::wait) op.at = random.below(2);
        if (op.kind == Kind::atomic || op.kind == Kind::copy) op.at = base, op.bytes = 4;
        // Often the same thread once more, or one of a few: so that accesses meet.
        if (!random.one_in(3))
          thread = random.one_in(2) ? random.below(threads) : random.below(3) * 32 + random.below(2);
        now[thread] = op;
      }
    }
  }
  return ops;
}

/// Threads whose later steps are ordered after step `from` of thread `of`, up to step `to`.
std::set<int> ordered_after(const Program& ops, int of, int from, int to) {
  std::set<int> after{of};
  for (int step = from + 1; step < to; ++step) {
    const Op* now = &ops[static_cast<std::size_t>(step * threads)];
    std::set<int> more;
    for (int one : after)
      for (int other = 0; other < threads; ++other) {
        const Kind kind = now[one].kind, theirs = now[other].kind;
        const bool all = kind == Kind::sync_threads, warp = kind == Kind::sync_warp && one / 32 == other / 32;
        const bool named = (kind == Kind::arrive || kind == Kind::sync) && theirs == Kind::sync;
        if (all || warp || named) more.insert(other);
      }
    after.merge(more);
  }
  return after;
}

/// An access: by whom, and in which step.
struct Access {
  const Op* op;
  int thread, step;
};

std::vector<Access> accesses(const Program& ops) {
  std::vector<Access> all;
  for (int step = 0; step < steps; ++step)
    for (int thread = 0; thread < threads; ++thread)
      if (const Op& op = ops[static_cast<std::size_t>(step * threads + thread)]; is_access(op))
        all.push_back({&op, thread, step});
  return all;
}

/// Steps in which the thread of a copy waits for it.
std::vector<int> waits_for(const Program& ops, const Access& copy) {
  std::vector<int> waits;
  std::uint32_t committed = 0, group = 0;
  for (int step = 0; step < steps; ++step) {
    const Op& op = ops[static_cast<std::size_t>(step * threads + copy.thread)];
    if (step == copy.step) group = committed + 1;
    committed += op.kind == Kind::commit;
    if (op.kind == Kind::wait && step > copy.step && group + op.at <= committed) waits.push_back(step);
  }
  return waits;
}

/// Is b after a whatever happens? A copy ends where it is waited for.
bool ordered(const Program& ops, const Access& a, const Access& b) {
  const std::vector<int> ends = a.op->kind == Kind::copy ? waits_for(ops, a) : std::vector<int>{a.step};
  return std::any_of(ends.begin(), ends.end(), [&](int end) {
    return end < b.step && ordered_after(ops, a.thread, end, b.step).count(b.thread) > 0;
  });
}

bool conflict(const Op& a, const Op& b) {
  const bool overlap = a.at < b.at + b.bytes && b.at < a.at + a.bytes;
  const bool one_writes = a.kind != Kind::read || b.kind != Kind::read;
  const bool both_atomic = a.kind == Kind::atomic && b.kind == Kind::atomic;
  return overlap && one_writes && !both_atomic;
}

/// Words of which two conflicting accesses are not ordered, and those where they may be: where the second knows of
/// another atomic on the word, which came after the first or before it, as it happened.
struct Races {
  std::set<std::uint32_t> certain, possible;
};

Races races_of(const Program& ops) {
  Races races;
  const std::vector<Access> all = accesses(ops);
  for (const Access& a : all)
    for (const Access& b : all) {
      const bool later = a.step < b.step || (a.step == b.step && a.thread != b.thread);
      if (!later || !conflict(*a.op, *b.op) || ordered(ops, a, b)) continue;
      const auto knows_atomic = [&](const Access& atomic, const Access& plain) {
        return std::any_of(all.begin(), all.end(), [&](const Access& c) {
          return atomic.op->kind == Kind::atomic && c.op->kind == Kind::atomic && c.op->at == atomic.op->at &&
                 c.op != atomic.op && ordered(ops, c, plain);
        });
      };
      const bool unsure = knows_atomic(a, b) || knows_atomic(b, a);
      (unsure ? races.possible : races.certain).insert(a.op->at / 4);
    }
  return races;
}

/// What is wrong with the machine's judgement of a program, or nothing.
std::string judge(const KernelFile& file, const Program& ops, bool global, std::uint64_t seed, int& races) {
  Config config;
  config.arch = 80;
  config.seed = seed;
  config.completion = static_cast<gpu::Completion>(seed % 3);
  Machine machine(config);
  auto* from = static_cast<unsigned*>(machine.allocate("from", 4 * program::words, Contents::given));
  Op* given = static_cast<Op*>(machine.allocate("ops", ops.size() * sizeof(Op), Contents::given));
  std::copy(ops.begin(), ops.end(), given);
  auto* word = static_cast<unsigned*>(machine.allocate("word", 4 * program::words, Contents::given));
  auto* sums = static_cast<unsigned*>(machine.allocate("sums", 4 * threads, Contents::given));
  machine.run([&] {
    file.call("flash_execute", static_cast<const Op*>(given), static_cast<const unsigned*>(from),
              global ? word : nullptr, sums);
  });
  const auto [certain, possible] = races_of(ops);
  races += !certain.empty();
  if (machine.reports().empty())
    return certain.empty() ? "" : "a missed race of word " + std::to_string(*certain.begin());
  for (const gpu::Report& report : machine.reports()) {
    const std::size_t byte = report.text.find(", byte ");
    if (report.kind != "race" || byte == report.text.npos) return all_reports(machine);
    const auto word = static_cast<std::uint32_t>(std::atoi(report.text.c_str() + byte + 7)) / 4;
    if (certain.count(word) + possible.count(word) == 0) return "a false report:\n" + all_reports(machine);
  }
  return "";
}

void judge_programs(int count, std::uint64_t seed) {
  const KernelFile file = KernelFile::built("program");
  Random random(seed);
  int races = 0;
  for (int n = 0; n < count; ++n) {
    const Program ops = draw(random, n % 2 == 0);
    const std::string wrong = judge(file, ops, n % 2 == 1, static_cast<std::uint64_t>(n % 5), races);
    if (wrong.empty()) continue;
    INFO("program " << n << " of seed " << seed << (n % 2 ? ", global memory" : ", shared memory"));
    CHECK(wrong == "");
    break;
  }
  INFO(races << " of " << count << " programs race");
  CHECK(races > count / 10);
  CHECK(races < count * 9 / 10);
}

}  // namespace

TEST_CASE("Races are reported where there are any, and nowhere else", "[vgpu]") { judge_programs(1500, 1); }

TEST_CASE("Races are reported where there are any, and nowhere else, in many programs", "[vgpu][full]") {
  judge_programs(8000, 2);
}

// Random programs of a CTA's threads: a race is reported exactly where two conflicting accesses are not ordered, and
// the word that a report names is one of those.
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

bool is_access(const Op& op) { return op.kind == Kind::read || op.kind == Kind::write || op.kind == Kind::atomic; }

/// A few threads access a few words, or threads meet: all, some warps, or warps at a named barrier of which some don't
/// wait.
Program draw(Random& random) {
  Program ops(steps * threads, Op{Kind::nothing, 0, 0, 0});
  std::uint32_t barrier = 0;
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
      const std::uint32_t base = random.below(program::words) * 4;
      for (std::uint32_t n = 1 + random.below(5) / 4; n > 0; --n) {
        const std::uint32_t kinds = random.below(6), bytes = 1u << random.below(3);
        Op op{kinds < 3   ? Kind::read
              : kinds < 5 ? Kind::write
                          : Kind::atomic,
              base + random.below(4 / bytes) * bytes, bytes, 0};
        if (op.kind == Kind::atomic) op.at = base, op.bytes = 4;
        // Neighbours in time are often neighbours in place.
        now[random.one_in(2) ? random.below(threads) : random.below(3) * 32 + random.below(2)] = op;
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

/// Words of which two conflicting accesses are not ordered.
std::set<std::uint32_t> racing_words(const Program& ops) {
  std::set<std::uint32_t> words;
  for (int first = 0; first < steps; ++first)
    for (int one = 0; one < threads; ++one) {
      const Op& a = ops[static_cast<std::size_t>(first * threads + one)];
      if (!is_access(a)) continue;
      for (int second = first; second < steps; ++second) {
        const std::set<int> after = ordered_after(ops, one, first, second);
        for (int other = 0; other < threads; ++other) {
          const Op& b = ops[static_cast<std::size_t>(second * threads + other)];
          if (!is_access(b) || other == one || after.count(other)) continue;
          const bool overlap = a.at < b.at + b.bytes && b.at < a.at + a.bytes;
          const bool one_writes = a.kind != Kind::read || b.kind != Kind::read;
          const bool both_atomic = a.kind == Kind::atomic && b.kind == Kind::atomic;
          if (overlap && one_writes && !both_atomic) words.insert(a.at / 4);
        }
      }
    }
  return words;
}

/// What is wrong with the machine's judgement of a program, or nothing.
std::string judge(const KernelFile& file, const Program& ops, bool global, std::uint64_t seed, int& races) {
  Config config;
  config.seed = seed;
  Machine machine(config);
  Op* given = static_cast<Op*>(machine.allocate("ops", ops.size() * sizeof(Op), Contents::given));
  std::copy(ops.begin(), ops.end(), given);
  auto* word = static_cast<unsigned*>(machine.allocate("word", 4 * program::words, Contents::given));
  auto* sums = static_cast<unsigned*>(machine.allocate("sums", 4 * threads, Contents::given));
  machine.run([&] { file.call("flash_execute", static_cast<const Op*>(given), global ? word : nullptr, sums); });
  const std::set<std::uint32_t> racing = racing_words(ops);
  races += !racing.empty();
  if (racing.empty() != machine.reports().empty())
    return (racing.empty() ? "a false report:\n" : "a missed race of word " + std::to_string(*racing.begin())) +
           all_reports(machine);
  for (const gpu::Report& report : machine.reports()) {
    const std::size_t byte = report.text.find(", byte ");
    if (report.kind != "race" || byte == report.text.npos) return all_reports(machine);
    if (racing.count(static_cast<std::uint32_t>(std::atoi(report.text.c_str() + byte + 7)) / 4) == 0)
      return "the wrong word:\n" + all_reports(machine);
  }
  return "";
}

void judge_programs(int count, std::uint64_t seed) {
  const KernelFile file = KernelFile::built("program");
  Random random(seed);
  int races = 0;
  for (int n = 0; n < count; ++n) {
    const Program ops = draw(random);
    const std::string wrong = judge(file, ops, n % 2 == 1, static_cast<std::uint64_t>(n % 5), races);
    if (wrong.empty()) continue;
    INFO("program " << n << " of seed " << seed << (n % 2 ? ", global memory" : ", shared memory"));
    CHECK(wrong == "");
    break;
  }
  INFO(races << " of " << count << " programs race");
  CHECK(races > count / 5);
  CHECK(races < count * 4 / 5);
}

}  // namespace

TEST_CASE("Races are reported where there are any, and nowhere else", "[vgpu]") { judge_programs(150, 1); }

TEST_CASE("Races are reported where there are any, and nowhere else, in many programs", "[vgpu][full]") {
  judge_programs(8000, 2);
}

#include "app/memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string>
#include <thread>
#include <utility>

#include "app/output.hpp"
#include "sim/memory/range.hpp"

namespace flash::app {
namespace {

/// Elements of the arrays of one problem.
struct Sizes {
  double q, k, v, o, lse, scores;
  explicit Sizes(const Shape& s) {
    const double queries = 1.0 * s.batch * s.heads * s.Nq, keys = 1.0 * s.batch * s.kv_heads * s.Nk;
    q = queries * s.d, k = keys * s.d, v = keys * s.dv, o = queries * s.dv, lse = queries, scores = queries * s.Nk;
  }
};

/// A floor of what the run takes [bytes]: its arrays on the host and in simulated HBM, and the tiles of its workers.
double needed_bytes(const Stage& stage, const Shape& s, const MemoryUse& use) {
  const Sizes n(s);
  const double real = use.kernels ? 0 : use.dtype == Format::fp64 ? 8 : 4, host = 8;
  const double threads = std::max(1u, std::thread::hardware_concurrency());
  const double in = n.q + n.k + n.v + (use.backward ? n.o : 0);
  const double out = n.o + n.lse + (use.backward ? n.q + n.k + n.v : 0);
  const double rows = use.Br > 0 ? 1.0 * std::min(use.Br, s.Nq) : s.Nq,
               cols = use.Bc > 0 ? 1.0 * std::min(use.Bc, s.Nk) : s.Nk;

  double bytes = 32.0 * s.batch * s.heads;  // the grid
  if (use.Br > 0)
    bytes += 16.0 * threads * (sim::ceil_div(s.Nq, use.Br) + sim::ceil_div(s.Nk, use.Bc));  // lists of tiles
  bytes += use.mask_elements * (1 + host + real);
  if (!use.count_only || use.from_files) bytes += (host + real) * in;
  if (use.count_only) return bytes;
  bytes += (host + real) * out + 2 * real * n.lse;
  if (is_16_bit(use.dtype)) bytes += real * (n.o + (use.backward ? n.q : 0));  // O_acc, dQ_acc
  if (stage.lse == "S") bytes += (use.backward ? 4 : 2) * real * n.scores;     // S and P; dP and dS
  if (stage.lse == "S" && use.kernels) bytes += 2 * n.scores;                  // S is read back for LSE
  if (use.backward && s.heads != s.kv_heads)
    bytes += real * threads * s.Nk * (s.d + s.dv);  // sums that wait their turn
  bytes += real * threads * ((use.backward ? 3 : 1) * rows * cols + (rows + cols) * (s.d + s.dv));
  if (use.check) bytes += 4 * host * out;  // oracle, baseline, bounds
  return bytes;
}

}  // namespace

double available_bytes() {
  double available = 0;
  std::string word;
  for (std::ifstream info("/proc/meminfo"); info >> word;)
    if (double kib = 0; word == "MemAvailable:" && info >> kib) available = kib * 1024;
  double limit = 0;
  if (std::ifstream("/sys/fs/cgroup/memory.max") >> limit)
    available = available > 0 ? std::min(available, limit) : limit;
  return available;
}

void require_shape(const Shape& s) {
  const std::pair<const char*, Index> counts[] = {
      {"batch", s.batch}, {"the number of queries (--n)", s.Nq}, {"the number of keys (--nk)", s.Nk}};
  const std::pair<const char*, Index> sizes[] = {
      {"the number of query heads", s.heads}, {"the number of KV heads", s.kv_heads}, {"d", s.d}, {"dv", s.dv}};
  for (const auto& [name, value] : counts)
    if (value < 0)
      throw Refused(fmt::format("{} was given as {}, but it can't be negative; take 0 or more", name, value));
  for (const auto& [name, value] : sizes)
    if (value < 1)
      throw Refused(fmt::format("{} was given as {}, but there must be at least one; take 1 or more", name, value));
  if (s.heads % s.kv_heads != 0)
    throw Refused(
        fmt::format("{} query heads were asked to share {} KV heads, which does not come out even; take a number "
                    "of KV heads that divides {}",
                    s.heads, s.kv_heads, s.heads));

  constexpr Index widest = Index(1) << 20;
  if (std::max(s.d, s.dv) > widest)
    throw Refused(fmt::format("a head dimension of {} was asked for, but none beyond {} is taken; take a smaller one",
                              std::max(s.d, s.dv), widest));
  const long double operations =
      static_cast<long double>(s.batch) * s.heads * std::max<Index>(s.Nq, 1) * std::max<Index>(s.Nk, 1) * (s.d + s.dv);
  if (operations > 0x1p56L)
    throw Refused(fmt::format(
        "batch {}, {} heads, {} queries, {} keys, d = {}, dv = {} were asked for, but that makes {:.1e} "
        "multiplications and {:.1e} bytes of Q and K, more than this program counts with certainty in 64 bits; take a "
        "smaller problem",
        s.batch, s.heads, s.Nq, s.Nk, s.d, s.dv, static_cast<double>(operations), 4 * (Sizes(s).q + Sizes(s).k)));
}

void require_memory(const Stage& stage, const Shape& shape, const MemoryUse& use) {
  const double needed = needed_bytes(stage, shape, use), available = available_bytes();
  if (available == 0 || needed <= available) return;
  throw Refused(
      fmt::format("a run of stage {} was asked that needs {:.0f} bytes of memory, but this machine has {:.0f} "
                  "free; take a smaller problem{}",
                  stage.id, needed, available, use.count_only || use.kernels ? "" : " or --count-only"));
}

}  // namespace flash::app

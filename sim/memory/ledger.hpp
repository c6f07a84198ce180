// The ledger: what a run moved between HBM and SRAM, on which source line, and what its products and passes moved in
// SRAM. `Tally` is one thread's fast counter; `Ledger` is the sum that people and tests read.
#pragma once

#include <cstdint>
#include <map>
#include <source_location>
#include <string>
#include <vector>

#include "sim/memory/hbm.hpp"

namespace flash::sim {

enum class Access { read, write, rmw };  // rmw: an atomic read-modify-write

/// Elements moved by one source line for one tensor.
struct LedgerLine {
  std::string file;
  std::uint32_t line = 0;
  std::string tensor;
  Access access = Access::read;
  Index elements = 0, bytes = 0;
};

/// Floating-point operations: 2mnk for each product, one for each exp, one for each other elementwise operation.
struct Flops {
  Index matmul = 0, exp = 0, other = 0;
  bool operator==(const Flops&) const = default;
};

/// One tile in SRAM [bytes].
struct Holder {
  std::string name;
  Index rows = 0, cols = 0, bytes = 0;
};

/// Elements that the products and elementwise passes, loads (a write) and stores (a read) move in SRAM.
struct SramTraffic {
  Index read = 0, write = 0;
  SramTraffic& operator+=(const SramTraffic& other) {
    read += other.read;
    write += other.write;
    return *this;
  }
  bool operator==(const SramTraffic&) const = default;
};

/// The fullest that one worker's SRAM ever was, and with what.
struct SramPeak {
  Index bytes = 0;
  Index worker = 0;
  std::vector<Holder> holders;
};

class Tally;

/// What a run moved and computed; a sum over its workers.
class Ledger {
 public:
  /// Elements by tensor of one kind of access.
  std::map<std::string, Index> by_tensor(Access access) const;
  std::map<std::string, Index> bytes_by_tensor() const;  ///< rmw counts twice

  Index total(Access access) const;  ///< [elements]
  Index elements() const;            ///< reads + writes + 2·rmw
  Index bytes() const;

  const std::vector<LedgerLine>& lines() const { return lines_; }
  const SramTraffic& sram() const { return sram_; }
  const SramTraffic& exchange() const { return exchange_; }  ///< of that, what warps of a worker hand to each other
  const SramPeak& sram_peak() const { return peak_; }
  const Flops& flops() const { return flops_; }

  /// HBM beyond inputs and outputs that the run touched (Theorem 1), by tensor.
  const std::map<std::string, TensorInfo>& extra_hbm() const { return extra_; }
  Index extra_elements() const;
  Index extra_bytes() const;

  void add(const Tally& tally);

 private:
  std::vector<LedgerLine> lines_;  // by file, line, tensor, access
  SramTraffic sram_, exchange_;
  SramPeak peak_;
  Flops flops_;
  std::map<std::string, TensorInfo> extra_;
};

/// One worker's counter: cheap to add to, read only when it is added to a ledger.
class Tally {
 public:
  void count(const TensorInfo& tensor, Access access, Index elements, const std::source_location& where);

  struct Entry {
    const TensorInfo* tensor;
    Access access;
    std::source_location where;
    Index elements;
  };
  const std::vector<Entry>& entries() const { return entries_; }

  SramTraffic sram, exchange;
  SramPeak peak;
  Flops flops;

 private:
  std::vector<Entry> entries_;
  std::size_t expected_ = 0;  // loops repeat, so the next event is nearly always the one after the last
};

inline void Tally::count(const TensorInfo& tensor, Access access, Index elements, const std::source_location& where) {
  const auto is_it = [&](const Entry& e) {
    return e.tensor == &tensor && e.access == access && e.where.line() == where.line() &&
           e.where.file_name() == where.file_name();
  };
  for (std::size_t n = 0; n < entries_.size(); ++n) {
    const std::size_t at = expected_ < entries_.size() ? expected_ : 0;
    expected_ = at + 1;
    if (is_it(entries_[at])) {
      entries_[at].elements += elements;
      return;
    }
  }
  entries_.push_back({&tensor, access, where, elements});
  expected_ = entries_.size();
}

}  // namespace flash::sim

#include "sim/memory/ledger.hpp"

#include <algorithm>
#include <tuple>

namespace flash::sim {

namespace {

Index times(Access access) { return access == Access::rmw ? 2 : 1; }

auto key(const LedgerLine& l) { return std::tie(l.file, l.line, l.tensor, l.access); }

}  // namespace

std::map<std::string, Index> Ledger::by_tensor(Access access) const {
  std::map<std::string, Index> sums;
  for (const LedgerLine& l : lines_)
    if (l.access == access) sums[l.tensor] += l.elements;
  return sums;
}

std::map<std::string, Index> Ledger::bytes_by_tensor() const {
  std::map<std::string, Index> sums;
  for (const LedgerLine& l : lines_) sums[l.tensor] += times(l.access) * l.bytes;
  return sums;
}

Index Ledger::total(Access access) const {
  Index sum = 0;
  for (const LedgerLine& l : lines_)
    if (l.access == access) sum += l.elements;
  return sum;
}

Index Ledger::elements() const { return total(Access::read) + total(Access::write) + 2 * total(Access::rmw); }

Index Ledger::bytes() const {
  Index sum = 0;
  for (const LedgerLine& l : lines_) sum += times(l.access) * l.bytes;
  return sum;
}

Index Ledger::extra_elements() const {
  Index sum = 0;
  for (const auto& [name, info] : extra_) sum += info.elements();
  return sum;
}

Index Ledger::extra_bytes() const {
  Index sum = 0;
  for (const auto& [name, info] : extra_) sum += info.elements() * bytes_per_element(info.format);
  return sum;
}

void Ledger::add(const Tally& tally) {
  for (const Tally::Entry& e : tally.entries()) {
    const Index bytes = e.elements * bytes_per_element(e.tensor->format);
    LedgerLine line{e.where.file_name(), e.where.line(), e.tensor->name, e.access, e.elements, bytes};
    const auto at = std::lower_bound(lines_.begin(), lines_.end(), line,
                                     [](const LedgerLine& a, const LedgerLine& b) { return key(a) < key(b); });
    if (at != lines_.end() && key(*at) == key(line)) {
      at->elements += line.elements;
      at->bytes += line.bytes;
    } else {
      lines_.insert(at, std::move(line));
    }
    if (e.tensor->role == Role::extra) extra_[e.tensor->name] = *e.tensor;
  }
  sram_ += tally.sram;
  exchange_ += tally.exchange;
  flops_.matmul += tally.flops.matmul;
  flops_.exp += tally.flops.exp;
  flops_.other += tally.flops.other;
  const SramPeak& theirs = tally.peak;  // of equal peaks the first worker's, whichever thread ran it
  if (theirs.bytes > peak_.bytes || (theirs.bytes == peak_.bytes && theirs.worker < peak_.worker)) peak_ = theirs;
}

}  // namespace flash::sim

#include "app/steps.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>

namespace flash {

namespace {

std::string number(double x) {
  if (std::isinf(x)) return x > 0 ? "∞" : "−∞";
  if (x <= std::numeric_limits<float>::lowest()) return "lowest";  // stands for −∞ as the maximum of nothing
  return fmt::format("{:.4g}", x);
}

/// [1 0; 0 1], and (1 0) for a column: one number for each row.
std::string values(const sim::Values& v) {
  const bool column = v.cols == 1;
  std::string text;
  for (Index i = 0; i < v.rows; ++i) {
    if (i > 0) text += column ? " " : "; ";
    for (Index j = 0; j < v.cols; ++j) text += (j > 0 ? " " : "") + number(v(i, j));
  }
  return column ? "(" + text + ")" : "[" + text + "]";
}

std::string range(sim::Range r) {
  return r.size() == 1 ? fmt::format("{}", r.begin) : fmt::format("{}-{}", r.begin, r.end - 1);
}

const char* verb(sim::EventKind kind) {
  switch (kind) {
    case sim::EventKind::load: return "load";
    case sim::EventKind::store: return "store";
    case sim::EventKind::accumulate: return "add to";
    default: return "";
  }
}

}  // namespace

void Steps::add(const sim::Event& e) {
  if (e.kind == sim::EventKind::take || e.kind == sim::EventKind::give_back || e.kind == sim::EventKind::fill) return;
  const bool same_head = worker_ >= 0 && e.batch == batch_ && e.head == head_;
  if (e.worker != worker_)
    text_ += fmt::format("batch {}, head {}{}\n", e.batch, e.head, same_head ? ", another worker" : "");
  worker_ = e.worker, batch_ = e.batch, head_ = e.head;
  const bool is_compute = e.kind == sim::EventKind::compute;
  const std::string what = is_compute ? e.name : fmt::format("{} rows {}", e.name, range(e.rows));
  text_ += fmt::format("  {:6} {:16} {}\n", verb(e.kind), what, values(e.values));
}

}  // namespace flash

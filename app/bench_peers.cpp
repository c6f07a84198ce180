#include "app/bench_peers.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "app/output.hpp"

namespace flash::app {
namespace {

constexpr std::pair<const char*, const char*> known[] = {
    {"flash", "PyTorch's flash (FA2)"},
    {"cudnn", "PyTorch's cuDNN"},
    {"efficient", "PyTorch's memory-efficient"},
    {"triton", "Triton"},
    {"fa3", "FA3 (fa3_fwd_interface)"},
    {"fa4", "FA4 (flash_attn.cute)"},
    {"math", "PyTorch's math"},  // last: it takes what memory there is
};

/// FLASH_PYTHON in the environment names another than python3.
std::string python() {
  const char* given = std::getenv("FLASH_PYTHON");
  return given && *given ? given : "python3";
}

nlohmann::json question(const PeerRow& row, const BenchProblem& p, int launches) {
  const Shape s = p.shape();
  return {{"peer", row.name},
          {"launches", launches},
          {"cell",
           {{"batch", s.batch},
            {"heads", s.heads},
            {"kv_heads", s.kv_heads},
            {"nq", s.Nq},
            {"nk", s.Nk},
            {"d", s.d},
            {"dtype", name(p.dtype)},
            {"causal", p.causal},
            {"backward", p.backward}}}};
}

std::unique_ptr<Conversation> start() {
  return std::make_unique<Conversation>(
      std::vector<std::string>{python(), "-u", FLASH_SOURCE_DIR "/cuda/bench/peers.py"});
}

}  // namespace

Peers::Peers() : child_(start()) {}

std::vector<PeerRow> Peers::rows(const BenchProblem& problem) {
  std::vector<PeerRow> rows;
  for (const auto& [name, title] : known) {
    PeerRow& row = rows.emplace_back();
    row.name = name, row.title = title;
    run(row, problem, 0);
  }
  return rows;
}

double Peers::run(PeerRow& row, const BenchProblem& problem, int launches) {
  if (!row.why_not.empty()) return 0;
  const std::optional<std::string> line = child_->ask(question(row, problem, launches).dump());
  const auto answer = nlohmann::json::parse(line.value_or(""), nullptr, false);
  if (!answer.is_object()) {
    row.why_not = line ? fmt::format("peers.py answered \"{}\"", one_line(*line))
                       : fmt::format("peers.py has ended: {}", one_line(child_->last_words()));
    if (!line) child_ = start();
    return 0;
  }
  row.why_not = one_line(answer.value("why", ""));
  if (launches == 0) {
    row.version = answer.value("version", "");
    row.error = answer.value("error", 0.0), row.tolerance = answer.value("tolerance", 0.0);
    if (row.why_not.empty() && !(row.error <= row.tolerance))
      row.why_not =
          fmt::format("it is off by {:.1e} on a small problem, where {:.1e} is allowed", row.error, row.tolerance);
  }
  return answer.value("seconds", 0.0);
}

}  // namespace flash::app

// `verify`: the agreement table.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/commands.hpp"
#include "app/heading.hpp"
#include "app/output.hpp"
#include "app/stage_name.hpp"
#include "app/table.hpp"
#include "app/verify.hpp"

namespace flash::app {
namespace {

using Json = nlohmann::ordered_json;

/// O, or the gradient that comes nearest to its tolerance; LSE only decides.
const OutputCheck& shown_of(const Compared& compared) {
  std::vector<const OutputCheck*> shown;
  for (const OutputCheck& output : compared.outputs)
    if (output.name != "lse") shown.push_back(&output);
  return **std::ranges::max_element(shown, {}, [](const OutputCheck* c) { return c->error / c->tolerance; });
}

// ---- text

std::string cell_text(const VerifyCell& cell) {
  return fmt::format("{}, d = {}, N = {}{}", name(cell.dtype), cell.d, cell.n, cell.causal ? ", causal" : "");
}

Table agreement(const Verification& v) {
  Table table;
  for (const char* title : {"pass", "dtype"}) table.column(title, "", Table::Align::left);
  table.column("d").column("N").column("mask", "", Table::Align::left);
  for (const std::string& backend : v.backends) table.column(backend, "max |Δ|").column("", "allowed");
  for (const VerifyRow& row : v.rows) {
    std::vector<std::string> cells{std::string(name(row.direction)), std::string(name(row.cell.dtype)),
                                   fmt::format("{}", row.cell.d), fmt::format("{}", row.cell.n),
                                   row.cell.causal ? "causal" : "none"};
    for (const std::string& backend : v.backends) {
      const auto found = row.on.find(backend);
      const bool ran = found != row.on.end() && !found->second.outputs.empty();
      const std::string absent = found == row.on.end() ? "-" : "FAILS";
      cells.push_back(ran ? fmt::format("{:.1e}", shown_of(found->second).error) : absent);
      cells.push_back(ran ? fmt::format("{:.1e}", shown_of(found->second).tolerance) : absent);
    }
    table.row(cells);
  }
  return table;
}

std::string text(const Verification& v) {
  std::string all = paragraph(
      "",
      fmt::format("Stage {} beside the fp64 oracle: one head, drawn at random. Of the forward pass O's error is shown, "
                  "of the backward pass that of dQ, dK or dV that comes nearest to what is allowed; LSE is compared, "
                  "too. The virtual GPU is asked up to N = {}.",
                  v.stage->id, largest_on_vgpu),
      columns);
  all += "\n" + agreement(v).text();
  for (const VerifyRow& row : v.rows)
    for (const auto& [backend, compared] : row.on)
      if (!compared.failure.empty())
        all += fmt::format("FAILS: {} on {}, {}: {}\n", name(row.direction), backend, cell_text(row.cell),
                           one_line(compared.failure));
  for (const Missing& missing : v.missing)
    all += paragraph("not here: ", missing.backend + ": " + missing.why, columns);
  return all + fmt::format("{} comparisons, {} beyond what is allowed\n", v.comparisons(), v.breaches());
}

// ---- JSON

Json json(const Compared& compared) {
  Json outputs = Json::object();
  for (const OutputCheck& c : compared.outputs)
    outputs[c.name] = {{"error", json_number(c.error)}, {"tolerance", json_number(c.tolerance)}, {"pass", c.pass}};
  Json json = {{"outputs", outputs}, {"pass", compared.failure.empty()}};
  if (!compared.failure.empty()) json["failure"] = compared.failure;
  return json;
}

Json json(const Verification& v, double seconds) {
  Json rows = Json::array(), missing = Json::array();
  for (const VerifyRow& row : v.rows) {
    Json on = Json::object();
    for (const auto& [backend, compared] : row.on) on[backend] = json(compared);
    rows.push_back({{"direction", name(row.direction)},
                    {"dtype", name(row.cell.dtype)},
                    {"d", row.cell.d},
                    {"n", row.cell.n},
                    {"causal", row.cell.causal},
                    {"on", on}});
  }
  for (const Missing& m : v.missing) missing.push_back({{"backend", m.backend}, {"why", m.why}});
  return {{"stage", v.stage->id},           {"backends", v.backends},   {"rows", rows},      {"missing", missing},
          {"comparisons", v.comparisons()}, {"breaches", v.breaches()}, {"seconds", seconds}};
}

// ---- the command

struct VerifyCommand {
  std::string stage, on;
  bool json = false;
};

Status run_verify(const VerifyCommand& c) {
  const auto begin = std::chrono::steady_clock::now();
  const Verification v = verify(c.stage.empty() ? main_stages().back().get() : stage_named(c.stage), c.on);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (c.json)
    print_json(json(v, seconds));
  else
    print(text(v));
  if (v.breaches() == 0) return ok;
  fmt::print(stderr, "flashsteps: {} of {} comparisons are beyond what is allowed\n", v.breaches(), v.comparisons());
  return check_failed;
}

}  // namespace

void add_verify(CLI::App& program, int& status) {
  CLI::App* command = program.add_subcommand(
      "verify", "agreement with the oracle: fp16, bf16, d 64, 128, N 512, 2048, causal or not, on each backend");
  const auto c = std::make_shared<VerifyCommand>();
  const Heading what(*command, "What is compared");
  what.text("--stage", c->stage, "STAGE", "its programs and kernels (the newest)");
  what.text("--on", c->on, "NAME", "cpu, vgpu or gpu alone (all that are here)");
  command->add_flag("--json", c->json, "one JSON document (docs/schema/verify.schema.json)")->group("Output");
  command->footer("Exit status 1 where an output is beyond its tolerance.");
  command->callback([c, &status] { status = run_verify(*c); });
}

}  // namespace flash::app

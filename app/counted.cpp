#include "app/counted.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "app/output.hpp"
#include "app/table.hpp"

namespace flash::app {

std::string StatedProblem::text() const {
  return fmt::format("{}, N = {}, d = {}, {}, SRAM {} (M = {} elements)",
                     heads == 1 ? "one head" : fmt::format("{} heads", heads), N, d, flash::name(dtype),
                     binary_bytes(sram_bytes), grouped(M()));
}

std::string StatedProblem::options() const {
  return fmt::format("--n {} --d {} --dtype {} --sram {}{}", N, d, flash::name(dtype), binary_bytes(sram_bytes),
                     heads == 1 ? "" : fmt::format(" --heads {}", heads));
}

Inputs StatedProblem::inputs() const {
  Inputs inputs;
  inputs.shape = {1, heads, heads, N, N, d, d};
  inputs.dtype = dtype;
  return inputs;
}

nlohmann::ordered_json to_json(const StatedProblem& p) {
  return {{"batch", 1},
          {"heads", p.heads},
          {"n", p.N},
          {"d", p.d},
          {"dtype", flash::name(p.dtype)},
          {"sram_bytes", p.sram_bytes},
          {"M", p.M()}};
}

Pass count(const Step& step, const StatedProblem& problem, const std::optional<Blocks>& blocks) {
  Options options;
  if (blocks && step.program().sram_bytes) options.br = blocks->Br, options.bc = blocks->Bc;
  RunConfig config;
  config.machine.sram_bytes = problem.sram_bytes;
  config.machine.count_only = true;
  config.backward = step.direction == Direction::backward;
  RunResult result = run(*step.stage, problem.inputs(), options, config);
  return config.backward ? std::move(*result.backward) : std::move(result.forward);
}

std::string blocks_text(const std::optional<Blocks>& blocks) {
  return blocks ? fmt::format("tiles of {} x {}", blocks->Br, blocks->Bc) : "no tiles";
}

nlohmann::ordered_json blocks_json(const std::optional<Blocks>& blocks) {
  if (!blocks) return nullptr;
  return {{"br", blocks->Br}, {"bc", blocks->Bc}};
}

}  // namespace flash::app

// Count-only runs on one stated problem, on which `why` and `diff` compare stages.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "app/lesson.hpp"
#include "stages/common/run.hpp"

namespace flash::app {

/// N = Nq = Nk and d = dv. The SRAM is large enough for Theorem 2 to show: M is several times 3d².
struct StatedProblem {
  Index N = 4096, d = 64, heads = 1;
  Format dtype = Format::fp16;
  Index sram_bytes = 192 * 1024;

  Index M() const { return sram_bytes / bytes_per_element(dtype); }  ///< [elements]
  std::string text() const;     ///< "one head, N = 4096, d = 64, fp16, SRAM 192KiB (M = 98,304 elements)"
  std::string options() const;  ///< the same for `run`
  Inputs inputs() const;        ///< without arrays
};

nlohmann::ordered_json to_json(const StatedProblem& problem);

/// What the step moves, with its own blocks or with those given (a step without tiles ignores them).
Pass count(const Step& step, const StatedProblem& problem, const std::optional<Blocks>& blocks = {});

/// "tiles of 64 x 384", or "no tiles".
std::string blocks_text(const std::optional<Blocks>& blocks);
nlohmann::ordered_json blocks_json(const std::optional<Blocks>& blocks);

}  // namespace flash::app

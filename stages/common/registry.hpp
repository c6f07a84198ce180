// The stages that this build knows: one entry for each folder stages/NN_name with a stage.json.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stages/common/stage.hpp"

namespace flash {

/// One program of a stage, forward or backward, for both number types.
struct Program {
  void (*in_fp32)(const Problem<float>&, const Options&, Machine<float>&) = nullptr;
  void (*in_fp64)(const Problem<double>&, const Options&, Machine<double>&) = nullptr;
  Index (*sram_bytes)(const TileSizes&) = nullptr;  ///< null: the program has no tiles

  template <class Real>
  void run(const Problem<Real>& p, const Options& o, Machine<Real>& machine) const {
    if constexpr (sizeof(Real) == sizeof(double))
      in_fp64(p, o, machine);
    else
      in_fp32(p, o, machine);
  }
};

/// stage.json of one program.
struct ProgramFacts {
  std::string extends;                ///< "02_tiling/forward"; empty for a first one
  std::vector<std::string> sections;  ///< banners under which it may differ from what it extends
  int budget = 0;                     ///< changed lines allowed
  std::string law;                    ///< name of its closed form in sim/theory
};

/// A folder of stages/: its stage.json and its programs.
struct Stage {
  std::string id;                     ///< "03_online_softmax"
  std::string title;
  std::string lse;                    ///< where the host finds LSE: "S", "l and m" or "LSE"
  std::vector<std::string> options;   ///< the options it takes, by their names on the command line
  Program forward, backward;
  ProgramFacts forward_facts, backward_facts;

  std::string_view number() const { return std::string_view(id).substr(0, 2); }
  std::string_view name() const { return std::string_view(id).substr(3); }
  bool has_backward() const { return backward.in_fp32 != nullptr; }
  bool takes(std::string_view option) const;
};

/// All stages, by number.
const std::vector<Stage>& stages();

/// `3`, `03`, `online_softmax` or `03_online_softmax`. @throws Refused naming the stages there are.
const Stage& find_stage(std::string_view name);

/// Called once by each stage's generated file.
struct Registration {
  Registration(const char* id, const char* stage_json, const Program& forward, const Program& backward);
};

}  // namespace flash

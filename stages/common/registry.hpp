// What this build can run: the folders stages/NN_name with a stage.json, and the lettered steps of those that have any.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stages/common/stage.hpp"

namespace flash {

enum class Direction { forward, backward };
constexpr std::string_view name(Direction d) { return d == Direction::forward ? "forward" : "backward"; }

/// A program of stages/, or its kernels in cuda/.
enum class Side { cpu, cuda };

/// One program of a stage, forward or backward, for both number types.
struct Program {
  void (*in_fp32)(const Problem<float>&, const Options&, Machine<float>&) = nullptr;
  void (*in_fp64)(const Problem<double>&, const Options&, Machine<double>&) = nullptr;
  Index (*sram_bytes)(const TileSizes&) = nullptr;  ///< null: the program has no tiles
  Long side = Long::cols;                           ///< that the budget makes long

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

/// A stage without letters; one lettered step of a stage; or a lettered stage's main entry, which has the programs of
/// its main letters.
struct Stage {
  std::string id;  ///< "03_online_softmax", "05_fa2_partitioning/a_loop_swap", "05_fa2_partitioning"
  std::string title;
  std::string lse;                    ///< where the host finds LSE: "S", "l and m" or "LSE"
  std::vector<std::string> options;   ///< the options it takes, by their names on the command line
  Program forward, backward;          ///< on the CPU; a step may be CUDA's alone
  ProgramFacts forward_facts, backward_facts;
  std::array<std::array<std::string, 2>, 2> sources;  ///< by side and direction

  std::string_view number() const { return std::string_view(id).substr(0, 2); }
  std::string_view name() const { return std::string_view(id).substr(3); }
  std::string_view folder() const { return std::string_view(id).substr(0, id.find('/')); }
  std::string_view letter() const;  ///< "a_loop_swap"; empty for a stage without letters and a main entry
  std::string short_name() const;   ///< "03", "05a", "05"
  bool has_forward() const { return forward.in_fp32 != nullptr; }
  bool has_backward() const { return backward.in_fp32 != nullptr; }
  bool has(Side side, Direction direction) const { return !source(side, direction).empty(); }
  /// "03_online_softmax/forward", "05_fa2_partitioning/a_loop_swap_backward": the file without folder stages/ or cuda/
  /// and extension; empty where there is no such program.
  const std::string& source(Side side, Direction direction) const {
    return sources[static_cast<std::size_t>(side)][static_cast<std::size_t>(direction)];
  }
  bool takes(std::string_view option) const;
};

using StageList = std::vector<std::reference_wrapper<const Stage>>;

/// All steps, by number and letter.
const std::vector<Stage>& stages();

/// Those with a forward program on that side.
StageList stages_on(Side side);

/// Each number once: stages without letters, and the main entries of the others.
StageList main_stages();

/// A name apart: "05b" and "fa2_partitioning/b_split_q_warps" have a letter, "05" has none.
struct StageName {
  std::string_view stage, letter;
  explicit StageName(std::string_view name);
  bool means_folder(std::string_view folder) const;
  bool means(const Stage& stage) const;
};

/// `3`, `03`, `online_softmax`, `03_online_softmax`; with a letter `05a`, `fa2_partitioning/a_loop_swap`. @throws
/// Refused naming those there are.
const Stage& find_stage(std::string_view name);

/// Whose program a source is, "03_online_softmax/forward". @throws Refused.
std::pair<const Stage*, Direction> find_program(std::string_view source);

/// Called once by each step's generated file.
struct Registration {
  Registration(const char* id, const char* stage_json, const Program& forward, const Program& backward);
};

}  // namespace flash

// The options that describe a problem and how to run it, as typed, and the problem that they mean.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "app/backend.hpp"
#include "stages/common/run.hpp"

namespace flash::app {

/// What was typed, before it is looked at. An empty file name was not given.
struct RunOptions {
  std::string stage;
  std::string q, k, v, dout, alibi, mask, block_mask;  ///< .npy files
  std::string example;
  std::optional<Index> n, nk, d, dv, batch, heads, kv_heads, br, bc, splits;
  std::uint64_t seed = 0;
  std::string on = "cpu";
  std::string dtype;   ///< fp32 where empty; kernels: fp16
  std::string budget;  ///< paper where empty
  std::string sram;    ///< 64KiB where empty
  std::string window;
  std::string warps;  ///< split-q where empty
  double softcap = 0, dropout = 0;
  std::optional<double> scale;
  std::uint64_t dropout_seed = 0;
  bool backward = false, causal = false, first_touch = false, count_only = false, allow_nonfinite = false;
  bool deterministic = false;  ///< nothing to do where all is in one order anyway
  std::string completion;      ///< of the virtual GPU's asynchronous instructions; late where empty
  std::optional<std::uint64_t> vgpu_seed;
  std::optional<Index> device;
  bool check = false;     ///< not the problem's, but it takes memory
  bool timeline = false;  ///< the virtual GPU keeps one, for a trace
  bool accesses = false;  ///< and each lane's accesses, for steps
};

/// Adds STAGE and the options to `command`; those of later stages too, which are refused by name when used.
void add_run_options(CLI::App& command, RunOptions& typed);

/// A problem that can be run.
struct Asked {
  const Stage* stage = nullptr;
  std::string on;
  std::optional<cuda::Kernels> kernels;  ///< nothing on the CPU
  Inputs inputs;                         ///< in count-only mode without the arrays that would have been drawn
  Options options;
  RunConfig config;
  std::string source;  ///< "files", "generated", "hand" or "minilm"
  std::uint64_t seed = 0;
  std::size_t axes = 4;    ///< of Q, K, V and O as the user sees them: 2, 3 or 4
  bool made_dout = false;  ///< dO was not given by the user
};

/// Checks what was typed, reads or draws the arrays. Throws Refused; before it takes much memory it makes sure that
/// there is as much.
Asked asked(const RunOptions& typed);

/// "64KiB", "65536", "16384el" → bytes. KB and KiB are both 1024 bytes, as in "48 KB of shared memory"; `el` are
/// elements of `dtype`. Throws Refused.
Index parse_sram(std::string_view text, Format dtype);

/// "L,R" with whole numbers of 64 bits. Throws Refused.
Window parse_window(std::string_view text);

}  // namespace flash::app

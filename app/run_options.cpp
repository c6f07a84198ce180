#include "app/run_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <utility>

#include "app/arrays.hpp"
#include "app/heading.hpp"
#include "app/stage_name.hpp"

namespace flash::app {
namespace {

// ---- values

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

Format parse_dtype(std::string_view text) {
  for (const Format format : {Format::fp64, Format::fp32, Format::fp16, Format::bf16})
    if (text == name(format)) return format;
  if (text == "fp8")
    throw Refused(
        "dtype fp8 was asked for, but it waits for stage 06_fa3_pipelines, not built yet; take fp64, fp32, fp16 or "
        "bf16");
  throw Refused(
      fmt::format("dtype \"{}\" was asked for, but there is no such dtype here; take fp64, fp32, fp16 or bf16", text));
}

sim::Budget parse_budget(std::string_view text) {
  if (text.empty() || text == "paper") return sim::Budget::paper;
  if (text == "strict") return sim::Budget::strict;
  throw Refused(
      fmt::format("the budget \"{}\" was asked for, but there is no such budget; take paper or strict", text));
}

std::optional<Warps> parse_warps(std::string_view text) {
  if (text.empty()) return std::nullopt;
  if (text == "split-q") return Warps::split_q;
  if (text == "split-k") return Warps::split_k;
  throw Refused(
      fmt::format("--warps {} was asked for, but warps share no work that way; take split-q or split-k", text));
}

// ---- options on the command line

void add_input_options(CLI::App& command, RunOptions& t) {
  const Heading input(command, "Input: files, sizes, or an example");
  input.text("--q", t.q, "FILE", "queries, .npy of float32 (or 16, 64): [N,d], [H,N,d] or [B,H,N,d]");
  input.text("--k", t.k, "FILE", "keys; fewer heads than q: grouped-query attention");
  input.text("--v", t.v, "FILE", "values, [..,dv]");
  input.whole("--n", t.n, "queries (512); what sizes describe is drawn at random");
  input.whole("--nk", t.nk, "keys (as many as queries)");
  input.whole("--d", t.d, "channels of q and k (64)");
  input.whole("--dv", t.dv, "channels of v and o (d)");
  input.whole("--batch", t.batch, "sequences (1)");
  input.whole("--heads", t.heads, "query heads (1)");
  input.whole("--kv-heads", t.kv_heads, "key and value heads; they divide the query heads (as many)");
  input.seed("--seed", t.seed, "of what is drawn (0); dO is drawn from seed + 1");
  input.text("--example", t.example, "NAME",
             "hand: N=4, d=2, scale 1, tiles 2 x 2; minilm: 12 heads of a real model, N=512, d=32");
  input.flag("--backward", t.backward, "the backward pass too: dQ, dK, dV");
  input.text("--dout", t.dout, "FILE", "gradient of o for --backward (drawn without it)");
}

void add_attention_options(CLI::App& command, RunOptions& t) {
  const Heading attention(command, "Attention: query i is centred on key i + (Nk - N)");
  attention.flag("--causal", t.causal, "a query sees the keys up to its centre");
  attention.text("--window", t.window, "L,R",
                 "only L keys before and R after the centre, ends included; negative: no limit");
  attention.real("--scale", t.scale, "factor of the scores (1/sqrt(d))");
  attention.real("--softcap", t.softcap, "C: s becomes C tanh(s/C); 0: off");
  attention.text("--alibi", t.alibi, "FILE", "one slope for each query head: slope x distance is subtracted");
  attention.text("--mask", t.mask, "FILE",
                 "[N,Nk], [H,N,Nk] or [B,H,N,Nk], bool, uint8 or float32: nonzero may attend");
  attention.text("--block-mask", t.block_mask, "FILE", "[Tr,Tc], nonzero tiles are computed; needs --br and --bc");
  attention.real("--dropout", t.dropout, "probability to drop an entry of P (0)");
  attention.seed("--dropout-seed", t.dropout_seed, "of the dropout (0)");
  attention.whole("--splits", t.splits, "05e: parts of the keys that are worked on apart and combined (1)");
  attention.flag("--allow-nonfinite", t.allow_nonfinite, "take NaN and infinity: rows that see one become NaN");
}

void add_machine_options(CLI::App& command, RunOptions& t) {
  const Heading place(command, "Where it runs");
  place.text("--on", t.on, "NAME",
             "cpu (default), or the stage's kernels: vgpu (trace's default), which checks and counts, or gpu");
  place.text("--dtype", t.dtype, "NAME",
             "fp64, fp32 (default of the cpu), fp16 (of kernels) or bf16; sums are kept in fp32");
  place.flag(
      "--deterministic", t.deterministic,
      "the same bits every time: given always, but on a gpu by 01 to 04 for dK and dV of grouped queries; in 05's "
      "backward pass the sums of dQ then wait for their turn");

  const Heading cpu(command, "On the cpu");
  cpu.text("--sram", t.sram, "SIZE",
           "of one worker's SRAM (64KiB): bytes, or with B, KiB = KB = 1024 bytes, MiB, GiB, el = elements");
  cpu.text("--budget", t.budget, "NAME",
           "paper (default): Algorithm 1's tiles, may overflow; strict: the largest that fit; 01: neither");
  cpu.whole("--br", t.br, "rows of a tile (queries); with --bc, in place of the budget's; not for 01");
  cpu.whole("--bc", t.bc, "columns of a tile (keys)");
  cpu.text("--warps", t.warps, "NAME", "05b: split-q (default): a warp has rows; split-k: it has keys");
  cpu.flag("--first-touch", t.first_touch, "03: the first visit makes O, l, m; none are initialised in HBM");
  cpu.flag("--count-only", t.count_only, "the same loops, counted without arithmetic");

  const Heading kernels(command, "On a vgpu or gpu");
  kernels.text("--completion", t.completion, "WHEN",
               "vgpu: when asynchronous copies become visible: early, late (default) or random");
  kernels.seed("--vgpu-seed", t.vgpu_seed, "vgpu: of the order in which warps run (1); 0: in turn");
  kernels.whole("--device", t.device, "gpu: which one (0)");
}

void add_waiting_options(CLI::App& command) {
  const Heading later(command, "Options that wait for a later stage of the work");
  const auto waits = [&](const std::string& name, const char* type, const char* what) {
    later.option(name, type, what, [name, what](const std::string&) {  // refused by name, not as a typing mistake
      throw Refused(fmt::format(
          "{} was asked for, but {} wait for a later part of the work, not built yet; leave it out", name, what));
    });
  };
  waits("--cu-seqlens-q", "FILE", "sequences of several lengths");
  waits("--cu-seqlens-k", "FILE", "sequences of several lengths");
  waits("--page-table", "FILE", "paged keys and values");
  waits("--page-size", "INT", "paged keys and values");
  waits("--seqlens", "FILE", "paged keys and values");
  waits("--append-k", "FILE", "growing caches");
  waits("--append-v", "FILE", "growing caches");
  waits("--rotary", "X", "rotary positions");
  waits("--l2", "SIZE", "counts of an L2 cache");
}

// ---- checks

/// A number that a stage computes with in fp32 must be one there.
void require_in_format(const char* option, double value, Format dtype) {
  const double in_fp32 = static_cast<float>(value);
  const bool lost = std::isinf(in_fp32) || (value != 0 && in_fp32 == 0);
  if (lost && dtype != Format::fp64)
    throw Refused(fmt::format("{} {} was asked in {}, but it is beyond what fp32 holds; take fp64 or a tamer number",
                              option, value, name(dtype)));
}

Options attention_options(const RunOptions& t, Format dtype) {
  Options o;
  o.causal = t.causal;
  if (!t.window.empty()) o.window = parse_window(t.window);
  if (!(t.softcap >= 0))
    throw Refused(fmt::format(
        "--softcap {} was asked for, but a cap can't be negative; take a positive one, or 0 for off", t.softcap));
  if (!(t.dropout >= 0 && t.dropout < 1))
    throw Refused(fmt::format(
        "--dropout {} was asked for, but a probability to drop is at least 0 and below 1; take one of those",
        t.dropout));
  o.softcap = t.softcap;
  o.dropout = t.dropout;
  o.dropout_seed = t.dropout_seed;
  o.scale = t.scale;
  o.first_touch = t.first_touch;
  o.warps = parse_warps(t.warps);
  o.splits = t.splits.value_or(1);
  if (o.splits < 1)
    throw Refused(
        fmt::format("--splits {} was asked for, but the keys have at least one part; take 1 or more", o.splits));
  require_in_format("--softcap", t.softcap, dtype);
  if (t.scale) require_in_format("--scale", *t.scale, dtype);
  return o;
}

void set_blocks(const RunOptions& t, const Stage& stage, Options& o) {
  if (!t.br && !t.bc) return;
  if (!stage.forward.sram_bytes)
    throw Refused(
        fmt::format("--br and --bc were asked of stage {}, which has no tiles; leave them out, or take stage 02 or "
                    "a later one",
                    stage.id));
  if (!t.br || !t.bc)
    throw Refused(fmt::format("--{} was given alone; give --br and --bc together, or neither", t.br ? "br" : "bc"));
  constexpr Index largest = Index(1) << 24;
  for (const auto& [option, value] : {std::pair{"--br", *t.br}, {"--bc", *t.bc}})
    if (value < 1 || value > largest)
      throw Refused(fmt::format("{} {} was asked for, but a tile has 1 to {} rows and columns; take one of those",
                                option, value, largest));
  o.br = *t.br;
  o.bc = *t.bc;
}

/// Atomics add up dK and dV of grouped queries, on a GPU in any order.
void require_deterministic(const Asked& asked) {
  const Shape& s = asked.inputs.shape;
  if (asked.config.backward && s.heads != s.kv_heads)
    throw Refused(
        fmt::format("--deterministic was asked of a backward pass with {} query heads for {} KV heads, but on a "
                    "GPU these add to dK and dV in any order; take --on vgpu or --on cpu",
                    s.heads, s.kv_heads));
}

}  // namespace

Index parse_sram(std::string_view text, Format dtype) {
  std::size_t digits = 0;
  while (digits < text.size() && std::isdigit(static_cast<unsigned char>(text[digits]))) ++digits;
  std::string unit = lower(text.substr(digits));
  if (unit.starts_with(' ')) unit.erase(0, 1);
  const std::pair<const char*, Index> units[] = {{"", 1},         {"b", 1},         {"k", 1 << 10},
                                                 {"kb", 1 << 10}, {"kib", 1 << 10}, {"m", 1 << 20},
                                                 {"mb", 1 << 20}, {"mib", 1 << 20}, {"g", 1 << 30},
                                                 {"gb", 1 << 30}, {"gib", 1 << 30}, {"el", bytes_per_element(dtype)}};
  constexpr Index largest = Index(1) << 40;
  for (const auto& [known, bytes] : units) {
    if (digits == 0 || unit != known) continue;
    const Index count = parse_index("--sram", text.substr(0, digits));
    if (count < 1 || count > largest / bytes)
      throw Refused(
          fmt::format("--sram {} was asked for, but an SRAM has from 1 byte to 1024 GiB; take one of those", text));
    return count * bytes;
  }
  throw Refused(
      fmt::format("--sram was given \"{}\"; give a whole number of bytes, or one with B, KiB, MiB, GiB, or el for "
                  "elements, such as 64KiB or 16384el",
                  text));
}

Window parse_window(std::string_view text) {
  const std::size_t comma = text.find(',');
  const auto sides = std::ranges::count(text, ',') + 1;
  if (sides != 2 || comma == 0 || comma + 1 == text.size())
    throw Refused(
        fmt::format("--window was given \"{}\"; give two sides such as 16,0, a negative one for no limit", text));
  return {parse_index("--window", text.substr(0, comma)), parse_index("--window", text.substr(comma + 1))};
}

void add_run_options(CLI::App& command, RunOptions& typed) {
  command.add_option("STAGE", typed.stage, "3, 03, online_softmax or 03_online_softmax")->required()->type_name("");
  add_input_options(command, typed);
  add_attention_options(command, typed);
  add_machine_options(command, typed);
  add_waiting_options(command);
}

Asked asked(const RunOptions& typed) {
  Asked result;
  result.stage = &stage_named(typed.stage);
  result.on = typed.on;
  const std::optional<cuda::Backend> backend = parse_backend(typed.on);
  const Format dtype = parse_dtype(!typed.dtype.empty() ? typed.dtype : backend ? "fp16" : "fp32");
  result.inputs.dtype = dtype;
  result.seed = typed.seed;
  result.options = attention_options(typed, dtype);
  result.options.deterministic = typed.deterministic && typed.backward && result.stage->takes("deterministic");
  require_own_options(typed, backend);
  if (backend)
    result.kernels = open_kernels(typed, *result.stage, *backend);
  else
    set_blocks(typed, *result.stage, result.options);

  sim::MachineConfig& machine = result.config.machine;
  machine.sram_bytes = parse_sram(typed.sram.empty() ? "64KiB" : typed.sram, dtype);
  machine.budget = parse_budget(typed.budget);
  if (!result.stage->forward.sram_bytes) machine.budget = sim::Budget::paper;  // 01 takes the SRAM that it needs
  machine.count_only = typed.count_only;
  result.config.backward = typed.backward;
  result.config.allow_nonfinite = typed.allow_nonfinite;

  read_problem(typed, result);
  if (!typed.block_mask.empty()) read_block_mask(typed.block_mask, result);
  if (backend == cuda::Backend::gpu && typed.deterministic && !result.options.deterministic)
    require_deterministic(result);
  return result;
}

}  // namespace flash::app

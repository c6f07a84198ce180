#include "cuda/common/execute.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <sstream>

#include "cuda/common/on_device.hpp"
#include "cuda/common/tensors.hpp"
#include "cuda/common/virtual_device.hpp"
#include "stages/common/around_run.hpp"
// Last: it brings CUDA's words.
#include "cuda/common/module.hpp"

namespace flash::cuda {
namespace {

const Module* require_module(const Stage& stage, Backend backend, Direction direction) {
  if (const Module* module = find_module(backend, stage.source(Side::cuda, direction))) return module;
  if (backend == Backend::vgpu && !has_kernels(backend))
    throw Refused(fmt::format("a run on the virtual GPU was asked for, but {}; take --on cpu", why_no_virtual_gpu()));
  throw Refused(fmt::format("the {} kernels of stage {} were asked for, but this build has none; take --on cpu",
                            name(direction), stage.id));
}

std::vector<std::string> words(const char* text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

/// Does the option change this pass?
bool concerns(std::string_view option, bool backward) { return option != (backward ? "splits" : "deterministic"); }

/// What the virtual GPU counted, in elements of each tensor.
sim::Ledger ledger_of(const gpu::Counts& counts, const Inputs& in, const Options& o) {
  sim::Ledger ledger;
  sim::Tally tally;
  const std::vector<Tensor> all = tensors(in.shape, in.dtype, o.splits);
  for (const Tensor& t : all) {
    const auto found = counts.tensors.find(t.info.name);
    if (found == counts.tensors.end()) continue;
    const auto count = [&](sim::Access access, std::uint64_t bytes) {
      if (bytes > 0)
        tally.count(t.info, access, static_cast<Index>(bytes) / bytes_per_element(t.info.format),
                    std::source_location::current());
    };
    count(sim::Access::read, found->second.read);
    count(sim::Access::write, found->second.written);
    count(sim::Access::rmw, found->second.rmw);
  }
  ledger.add(tally);
  return ledger;
}

/// Has the virtual GPU something to say of the last pass, or of what was copied out after it?
bool reported(const Kernels& k) { return k.virtual_device && !k.virtual_device->watched().back().reports.empty(); }

/// One pass. False where the virtual GPU had something to report.
bool run_pass(const Kernels& k, const Module& module, const OnDevice& memory, const Inputs& in, const Options& o,
              Pass& pass, double& seconds) {
  pass.blocks = tiles(module, *k.device, in, o);
  seconds += k.device->run(module, memory.problem(), 1);
  if (!k.virtual_device) return true;
  pass.ledger = ledger_of(k.virtual_device->watched().back().counts, in, o);
  return !reported(k);
}

template <class Element>
std::vector<double> values(const OnDevice& memory, const char* tensor) {
  const auto read = memory.read<Element>(tensor);
  return {read.begin(), read.end()};
}

std::vector<double> values(const OnDevice& memory, const char* tensor, Format dtype) {
  return dtype == Format::bf16 ? values<Eigen::bfloat16>(memory, tensor) : values<Eigen::half>(memory, tensor);
}

std::vector<double> lse_of(const Stage& stage, const Inputs& in, const Options& o, const OnDevice& memory) {
  if (stage.lse == "l and m") return lse_of_l_and_m(memory.read<float>("l"), memory.read<float>("m"));
  if (stage.lse == "S") return lse_of_scores(stage, in, o, memory.read<Eigen::half>("S"));
  return values<float>(memory, "LSE");
}

RunResult run_finite(const Kernels& k, const Inputs& in, const Options& o) {
  const OnDevice memory(*k.device, in, o, tensors_of(modules(k), !in.slopes.empty()));
  RunResult result;
  if (!run_pass(k, *k.forward, memory, in, o, result.forward, result.seconds)) return result;
  Outputs out;
  out.o = values(memory, "O", in.dtype);
  out.lse = lse_of(*k.stage, in, o, memory);
  if (reported(k)) return result;
  refuse_overflow(in, o, out.lse);
  if (k.backward) {
    if (!run_pass(k, *k.backward, memory, in, o, result.backward.emplace(), result.seconds)) return result;
    out.dq = values(memory, "dQ", in.dtype);
    out.dk = values(memory, "dK", in.dtype);
    out.dv = values(memory, "dV", in.dtype);
    if (reported(k)) return result;
  }
  refuse_infinite_outputs(*k.stage, in, out);
  result.outputs = std::move(out);
  return result;
}

}  // namespace

Kernels find_kernels(const Stage& stage, Backend backend, bool backward) {
  require_programs(stage, Side::cuda, backward);
  Kernels k;
  k.stage = &stage;
  k.forward = require_module(stage, backend, Direction::forward);
  if (backward) k.backward = require_module(stage, backend, Direction::backward);
  return k;
}

std::vector<const Module*> modules(const Kernels& k) {
  if (!k.backward) return {k.forward};
  return {k.forward, k.backward};
}

int arch(const Module& module) { return module.arch; }

int arch(const Kernels& k) { return std::max(k.forward->arch, k.backward ? k.backward->arch : 0); }

std::vector<int> head_sizes(const Module& module) {
  constexpr int largest = 512;
  std::vector<int> sizes;
  Problem empty{};  // its grids are empty: nothing is launched, but what the launcher doesn't take it refuses
  empty.heads = empty.kv_heads = empty.splits = 1;
  for (empty.d = 1; empty.d <= largest; ++empty.d) try {
      module.launch(empty, nullptr);
      sizes.push_back(empty.d);
    } catch (const std::exception&) {
    }
  return sizes;
}

std::vector<Format> dtypes(const Module& module) {
  std::vector<Format> taken;
  for (const std::string& word : words(module.dtypes))
    for (const Format format : {Format::fp16, Format::bf16})
      if (word == name(format)) taken.push_back(format);
  return taken;
}

std::vector<std::string> options_taken(const Module& module) { return words(module.options); }

std::optional<Blocks> tiles(const Module& module, const Device& device, const Inputs& in, const Options& o) {
  const TileShape shape = module.tiles(problem_of(in, o), device.smem_per_cta());
  if (shape.Br == 0) return std::nullopt;
  return Blocks{shape.Br, shape.Bc};
}

void require_taken(const Kernels& k, const Inputs& in, const Options& o) {
  const std::string& stage = k.stage->id;
  const bool is_letter = stage.find('/') != std::string::npos;  // the stage's main letters take more
  const std::string elsewhere = is_letter ? fmt::format("stage {}", k.stage->number()) : "--on cpu";
  const Shape& s = in.shape;
  if (s.d != s.dv)
    throw Refused(
        fmt::format("d = {} and dv = {} were asked of the kernels of stage {}, which take one size for both; "
                    "take --dv {} or --on cpu",
                    s.d, s.dv, stage, s.d));
  for (const Module* module : modules(k)) {
    const std::vector<std::string> formats = words(module->dtypes);
    if (std::ranges::find(formats, name(in.dtype)) == formats.end())
      throw Refused(fmt::format("{} was asked of the kernels of stage {}, which take {}; take --dtype {} or {}",
                                name(in.dtype), stage, fmt::join(formats, " and "), fmt::join(formats, " or "),
                                elsewhere));
    const std::vector<int> sizes = head_sizes(*module);
    if (std::ranges::find(sizes, s.d) == sizes.end())
      throw Refused(fmt::format("d = {} was asked of the kernels of stage {}, which take {}; take one of these or {}",
                                s.d, stage, fmt::join(sizes, ", "), elsewhere));
    const std::vector<std::string> taken = options_taken(*module);
    for (const std::string_view option : options_asked(in, o))
      if (concerns(option, module == k.backward) && std::ranges::find(taken, option) == taken.end())
        throw Refused(fmt::format("{} was asked of the kernels of stage {}, which don't take it; take {}", option,
                                  stage, elsewhere));
  }
}

void require_room(const Kernels& k, const Shape& shape, Index splits, bool alibi) {
  const auto names = tensors_of(modules(k), alibi);
  const double needed = device_bytes(shape, names, splits), free = static_cast<double>(k.device->free_bytes());
  if (needed <= free) return;
  const bool stores_scores = names.contains("S");
  throw Refused(
      fmt::format("the kernels of stage {} were asked for tensors of {:.0f} bytes{}, but {} has {:.0f} free; "
                  "take a smaller problem{}",
                  k.stage->id, needed, stores_scores ? ", S and P among them" : "", k.device->name(), free,
                  stores_scores ? " or a stage from 03 on, which stores neither" : ""));
}

void require_runnable(const Kernels& k, const Inputs& inputs, const Options& options) {
  require_arrays(inputs, options, k.backward != nullptr, false);
  require_softcap_in_format(*k.stage, inputs, options, k.backward != nullptr);
  require_taken(k, inputs, options);
  require_room(k, inputs.shape, options.splits, !inputs.slopes.empty());
}

RunResult execute(const Kernels& k, const Inputs& inputs, const Options& options, bool allow_nonfinite) {
  require_runnable(k, inputs, options);
  return run_on_finite(inputs, options, allow_nonfinite,
                       [&](const Inputs& finite) { return run_finite(k, finite, options); });
}

}  // namespace flash::cuda

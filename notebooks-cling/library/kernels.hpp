// A stage's kernels on the virtual GPU: stepped, looked at, run to the end and judged. And kernels written in a cell.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/gpu/machine.hpp"
#include "sim/trace/svg.hpp"
#include "stages/common/inputs.hpp"

namespace flash::notebook {

/// Compiles a kernel for the virtual GPU. `words`: "NAME", then `text` is the whole file; or "NAME = 03/forward", then
/// it is that kernel's file with edits: a line "- old" must stand in the file once, and the lines "+ new" behind it
/// come in its place. Returns what was done. @throws Refused for edits that don't fit and for what the compiler
/// refuses.
std::string compile_kernel(const std::string& words, const std::string& text);

/// A kernel's file, as a cell that compiles it under another name: "03/forward", "mine".
std::string cell_of_kernel(const std::string& kernel, const std::string& name);

/// One problem on a virtual GPU and kernels that work on it, one after the other: "03/forward", or a name that
/// compile_kernel was given. They begin with the first step.
class Stepper {
 public:
  Stepper(const std::vector<std::string>& kernels, const Inputs& inputs, const Options& options = {},
          gpu::Config config = {});
  ~Stepper();
  Stepper(const Stepper&) = delete;

  gpu::Machine& machine();

  // ---- going on; each says where it stopped. @throws Refused for a warp that there isn't, and at the kernels' end
  std::string to_launch(const std::string& kernel);                            ///< whose name contains this: "backward"
  std::string to_mark(const std::string& name, std::int64_t value, int warp);  ///< ptx::mark, "row tile" 1
  std::string to_barrier(int warp);                                            ///< behind the next one
  std::string to_instruction(const std::string& name, int warp);               ///< whose name begins so: "mma"
  std::string to_end();

  // ---- looking, at the CTA of the last event
  trace::Matrix shared(const std::string& name);               ///< an array that ptx::name named
  std::string state();                                         ///< who waits where for what
  trace::Matrix registers(int warp, const std::string& name);  ///< a local array that ptx::watch named

  // ---- what came of it
  std::string reports();         ///< in words; "no reports"
  std::string moved();           ///< bytes of each tensor
  std::string bank_conflicts();  ///< by source line, where there are any
  std::string check();           ///< O, or the gradients, against the fp64 oracle. Runs to the end.
  /// By warp, from the first event of `from` nominal cycles to `to`. Needs Config::timeline.
  trace::Timeline timeline(double from = 0, double to = 1e300);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace flash::notebook

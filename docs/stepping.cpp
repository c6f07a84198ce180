// Stage 03's kernel on the virtual GPU, stopped in the middle of a tile.    build/cpu/stepping
#include <fmt/format.h>

#include "cuda/common/library.hpp"
#include "cuda/common/on_device.hpp"
#include "cuda/common/tensors.hpp"
#include "cuda/common/virtual_device.hpp"
#include "stages/common/draw.hpp"
// Last: it brings CUDA's words.
#include "cuda/common/module.hpp"

using namespace flash;

int main() {
  const Inputs inputs =
      draw_inputs({.batch = 1, .heads = 1, .kv_heads = 1, .Nq = 64, .Nk = 64, .d = 64, .dv = 64}, Format::fp16, 1);
  const cuda::Module* kernel = cuda::find_module(cuda::Backend::vgpu, "03_online_softmax/forward");
  const gpu::Config config{.arch = kernel->arch};  // and seed, completion, timeline
  cuda::VirtualDevice device(config, std::size_t{1} << 30);
  const cuda::OnDevice tensors(device, inputs, {}, cuda::tensors_of({kernel}, false));

  gpu::Machine& machine = device.machine();
  machine.start(
      [&] { kernel->launch(tensors.problem(), nullptr); });  // host code; it runs inside step(), until() and run()
  const auto warp_1 = [&](auto is) { return machine.until([=](const gpu::Event& e) { return e.warp == 1 && is(e); }); };
  warp_1([](const gpu::Event& e) { return e.name == "row tile" && e.value == 1; });    // ptx::mark("row tile", 1)
  warp_1([](const gpu::Event& e) { return e.name == "bar.sync"; });                    // Q, l and m are there
  const auto stop = warp_1([](const gpu::Event& e) { return e.name == "bar.sync"; });  // and the maxima of all warps
  fmt::print("warp {} is behind the barrier at {}\n\n{}\n", stop->warp, stop->where, machine.state());

  const gpu::Matrix S = *machine.registers(1, "S");       // what warp 1's lanes hold; named by ptx::watch
  const gpu::Matrix max = *machine.shared_matrix("max");  // [warps, Br] in shared memory; named by ptx::name
  fmt::print("warp 1 has columns {} to {} of S; row 1 begins {:.3f} {:.3f}, and its maximum there is {:.3f}\n", S.col0,
             S.col0 + S.cols - 1, S(1, 0), S(1, 1), max(1, 1));

  machine.run();  // to the end
  fmt::print("{} reports\n", machine.reports().size());
}

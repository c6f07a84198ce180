#include "app/kernel_trace.hpp"

#include <nlohmann/json.hpp>

#include "app/kernel_report.hpp"
#include "cuda/common/on_device.hpp"
#include "cuda/common/tensors.hpp"
#include "sim/trace/kernel_recorder.hpp"
#include "stages/common/around_run.hpp"
// Last: it brings CUDA's words.
#include "cuda/common/module.hpp"

namespace flash::app {
namespace {

/// The tensors as they lie in the device's memory, and what the inputs among them hold.
std::vector<trace::DeviceTensor> tensors_on(const cuda::OnDevice& memory, const Shape& shape) {
  std::vector<trace::DeviceTensor> all;
  for (const cuda::Tensor& t : cuda::tensors(shape))
    if (const void* at = memory.find(t.info.name)) all.push_back({t.info, static_cast<const std::byte*>(at)});
  return all;
}

trace::Contents contents(const cuda::OnDevice& memory, const std::vector<trace::DeviceTensor>& tensors) {
  trace::Contents inputs;
  const auto add = [&](const sim::TensorInfo& info, const auto& values) {
    inputs.push_back({info, {values.begin(), values.end()}});
  };
  for (const trace::DeviceTensor& t : tensors)
    if (t.info.role == sim::Role::input)
      is_16_bit(t.info.format) ? add(t.info, memory.read<Eigen::half>(t.info.name))
                               : add(t.info, memory.read<float>(t.info.name));
  return inputs;
}

}  // namespace

std::string record_kernels(const Asked& asked, nlohmann::ordered_json& document) {
  const cuda::Kernels& k = *asked.kernels;
  const Inputs& in = asked.inputs;
  cuda::require_runnable(k, in, asked.options);
  require_finite(in);
  const cuda::OnDevice memory(*k.device, in, asked.options, cuda::tensors_of(cuda::modules(k), !in.slopes.empty()));
  const std::vector<trace::DeviceTensor> tensors = tensors_on(memory, in.shape);
  gpu::Machine& machine = k.virtual_device->machine();
  trace::KernelRecorder recorder(machine, tensors, contents(memory, tensors));
  machine.start([&] {
    for (const cuda::Module* module : cuda::modules(k)) module->launch(memory.problem(), nullptr);
  });
  recorder.record();
  recorder.finish(document);
  document["sram"]["capacity_bytes"] = k.virtual_device->limits().smem_per_cta;
  return reports_text(*k.stage, machine.reports());
}

}  // namespace flash::app

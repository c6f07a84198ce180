// Traces of runs: what a recorder says of a step is what the ledger and the virtual GPU counted, and what they hold.
#include <nlohmann/json.hpp>

#include "cuda/common/library.hpp"
#include "cuda/common/on_device.hpp"
#include "cuda/common/tensors.hpp"
#include "cuda/common/virtual_device.hpp"
#include "sim/trace/kernel_recorder.hpp"
#include "sim/trace/stage_recorder.hpp"
#include "tests/catch.hpp"
#include "tests/support/random_problem.hpp"
// Last: it brings CUDA's words.
#include "cuda/common/module.hpp"

using namespace flash;
using trace::Json;

namespace {

RandomProblem grouped_problem(const Stage& stage, Format dtype) {
  RandomProblem p;
  p.inputs = draw_inputs({2, 4, 2, 9, 11, 3, 4}, dtype, 3);
  draw_dout(p.inputs, 3);
  p.options.causal = true;
  p.config.backward = stage.has_backward();
  if (stage.takes("br and bc")) p.options.br = 4, p.options.bc = 5;
  return p;
}

/// The run's trace, without what the inputs hold.
Json recorded(const Stage& stage, RandomProblem& p, RunResult& result) {
  trace::StageRecorder recorder({});
  p.config.observer = [&](const sim::Event& event) { recorder.add(event); };
  result = run(stage, p.inputs, p.options, p.config);
  Json document;
  recorder.finish(document);
  return document;
}

Index total(const Json& document, const char* key, std::size_t n) {
  Index sum = 0;
  for (const Json& step : document["steps"])
    if (step.contains(key)) sum += step[key][n].get<Index>();
  return sum;
}

/// A tensor after the last step, from the values that its stores and sums tell.
std::vector<double> told(const Json& document, const char* name) {
  std::vector<double> values;
  for (const Json& step : document["steps"]) {
    if (!step.contains("tensor") || step["name"] != name || step["do"] == "load") continue;
    const Json& tensor = document["tensors"][step["tensor"].get<std::size_t>()];
    const auto width = tensor["cols"].get<std::size_t>(), cols = step["cols"][1].get<std::size_t>();
    values.resize(tensor["batch"].get<std::size_t>() * tensor["heads"].get<std::size_t>() *
                  tensor["rows"].get<std::size_t>() * width);
    for (std::size_t n = 0; n < step["values"].size(); ++n)
      values[step["first"].get<std::size_t>() + n / cols * width + n % cols] = step["values"][n].get<float>();
  }
  return values;
}

/// Stage 03's kernel on one head.
Json recorded_kernel(gpu::Counts& counts) {
  const Inputs inputs = draw_inputs({1, 1, 1, 70, 150, 64, 64}, Format::fp16, 1);
  const cuda::Module* kernel = cuda::find_module(cuda::Backend::vgpu, "03_online_softmax/forward");
  cuda::VirtualDevice device({.timeline = true, .accesses = true}, std::size_t{1} << 30);
  const cuda::OnDevice memory(device, inputs, {}, cuda::tensors_of({kernel}, false));
  std::vector<trace::DeviceTensor> tensors;
  for (const cuda::Tensor& t : cuda::tensors(inputs.shape))
    if (const void* at = memory.find(t.info.name)) tensors.push_back({t.info, static_cast<const std::byte*>(at)});
  trace::KernelRecorder recorder(device.machine(), tensors, {});
  device.machine().start([&] { kernel->launch(memory.problem(), nullptr); });
  recorder.record();
  counts = device.machine().counts();
  Json document;
  recorder.finish(document);
  return document;
}

}  // namespace

TEST_CASE("numbers that JSON has none for are words, and fp32 is as short as can be", "[trace]") {
  CHECK(trace::number(NAN, false).dump() == "\"nan\"");
  CHECK(trace::number(-INFINITY, true).dump() == "\"-inf\"");
  CHECK(trace::number(INFINITY, false).dump() == "\"inf\"");
  CHECK(trace::number(0.1f, false).dump() == "0.1");
  CHECK(trace::number(static_cast<double>(0.1f), true).get<double>() == static_cast<double>(0.1f));
}

TEST_CASE("steps of a stage cost what its ledger says", "[trace]") {
  for (const Stage& stage : stages_on(Side::cpu)) {
    RandomProblem p = grouped_problem(stage, Format::fp32);
    RunResult result;
    const Json document = recorded(stage, p, result);
    Index read = 0, written = 0, rmw = 0, sram_read = 0, sram_written = 0, matmul = 0, exps = 0;
    for (const Pass* pass : {&result.forward, result.backward ? &*result.backward : nullptr}) {
      if (!pass) continue;
      read += pass->ledger.total(sim::Access::read), written += pass->ledger.total(sim::Access::write);
      rmw += pass->ledger.total(sim::Access::rmw);
      sram_read += pass->ledger.sram().read, sram_written += pass->ledger.sram().write;
      matmul += pass->ledger.flops().matmul, exps += pass->ledger.flops().exp;
    }
    INFO(stage.id);
    CHECK((total(document, "hbm", 0) == read && total(document, "hbm", 1) == written));
    CHECK(total(document, "hbm", 2) == rmw);
    CHECK((total(document, "sram", 0) == sram_read && total(document, "sram", 1) == sram_written));
    CHECK((total(document, "flops", 0) == matmul && total(document, "flops", 1) == exps));
    CHECK(document["chapters"].size() == (result.backward ? 2 : 1));
  }
}

TEST_CASE("what a 16-bit tensor holds after a store or a sum is told", "[trace]") {
  const Stage& stage = find_stage("4");
  RandomProblem p = grouped_problem(stage, Format::fp16);
  RunResult result;
  const Json document = recorded(stage, p, result);
  CHECK(told(document, "dK") == result.outputs.dk);  // grouped heads add to it
  CHECK(told(document, "dV") == result.outputs.dv);
  CHECK(told(document, "O") == result.outputs.o);
}

TEST_CASE("a trace that is full counts the steps that it leaves out", "[trace]") {
  const Stage& stage = find_stage("3");
  RandomProblem p;
  p.inputs = draw_inputs({1, 1, 1, 256, 256, 32, 32}, Format::fp32, 3);
  p.options.br = p.options.bc = 16;
  RunResult result;
  const Json document = recorded(stage, p, result);
  Index steps = 0;
  p.config.observer = [&](const sim::Event& e) {
    steps += e.kind != sim::EventKind::take && e.kind != sim::EventKind::give_back;
  };
  run(stage, p.inputs, p.options, p.config);
  CHECK(document["cut"]["of"] == steps);
  CHECK(document["cut"]["steps"] == document["steps"].size());
  CHECK(document["steps"].size() < static_cast<std::size_t>(steps));
}

TEST_CASE("slices of a kernel move what the virtual GPU counted, and what stores change is told in theirs", "[trace]") {
  gpu::Counts counts;
  const Json document = recorded_kernel(counts);
  std::uint64_t bytes = 0, told_bytes = 0;
  for (const auto& [name, of] : counts.tensors) bytes += of.read + of.written + 2 * of.rmw;
  std::map<std::size_t, std::string> space;
  Index shared_changes = 0;
  for (const Json& step : document["steps"]) {
    told_bytes += step.value("hbm_bytes", std::uint64_t(0));
    for (const Json& take : step.value("takes", Json::array())) space[take["tile"]] = take["space"];
    for (const Json& change : step.value("changes", Json::array())) {
      INFO(step["do"] << " " << step["name"]);
      if (change.contains("tensor")) {
        CHECK(step["do"] == "global");
      } else if (space.at(change["tile"]) == "shared") {
        CHECK(step["do"] == "shared");
        ++shared_changes;
      }
    }
  }
  CHECK(told_bytes == bytes);
  CHECK(shared_changes > 0);
}

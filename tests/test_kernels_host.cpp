// The host side of kernels: what it puts into a device's memory, what it refuses, what it makes of what the device
// says.
#include <cstring>
#include <limits>
#include <map>

#include "cuda/common/execute.hpp"
#include "cuda/common/on_device.hpp"
#include "cuda/common/tensors.hpp"
#include "cuda/common/virtual_device.hpp"
#include "stages/common/draw.hpp"
#include "stages/common/oracle.hpp"
#include "tests/catch.hpp"
// Last: it brings CUDA's words.
#include "cuda/common/module.hpp"

using namespace flash;
using cuda::Kernels;
using cuda::OnDevice;
using cuda::VirtualDevice;

namespace {

constexpr std::size_t much = std::size_t(1) << 34;
const Shape grouped{2, 4, 2, 5, 7, 64, 64};

Inputs problem(const Shape& shape) {
  Inputs in = draw_inputs(shape, Format::fp16, 1);
  draw_dout(in, 1);
  return in;
}

Kernels kernels_of(const char* stage, bool backward = false, std::size_t bytes = much) {
  Kernels k = cuda::find_kernels(find_stage(stage), cuda::Backend::vgpu, backward);
  gpu::Config config;
  config.arch = cuda::arch(k);
  const auto device = std::make_shared<VirtualDevice>(config, bytes);
  k.device = device;
  k.virtual_device = device.get();
  return k;
}

std::string refusal(const Kernels& k, const Inputs& in, const Options& o = {}) {
  try {
    cuda::execute(k, in, o, false);
  } catch (const Refused& refused) {
    return refused.what();
  }
  return "was run";
}

bool near(const std::vector<double>& got, const std::vector<double>& wanted, double tolerance) {
  if (got.size() != wanted.size()) return false;
  for (std::size_t n = 0; n < got.size(); ++n)
    if (got[n] != wanted[n] && !(std::abs(got[n] - wanted[n]) <= tolerance)) return false;
  return true;
}

}  // namespace

TEST_CASE("tensors have the CPU's shapes, and memory is asked for those that are used") {
  std::map<std::string, std::size_t> bytes;
  for (const cuda::Tensor& t : cuda::tensors(grouped)) bytes[t.info.name] = t.bytes();
  const std::size_t rows = 2 * 4 * 5, keys = 2 * 2 * 7;
  CHECK(bytes["Q"] == rows * 64 * 2);
  CHECK(bytes["dV"] == keys * 64 * 2);
  CHECK(bytes["S"] == rows * 7 * 2);
  CHECK(bytes["O_acc"] == rows * 64 * 4);
  CHECK(bytes["LSE"] == rows * 4);
  CHECK(bytes["slopes"] == 4 * 4);

  const Kernels k = kernels_of("03");
  const auto names = cuda::tensors_of({k.forward}, false);
  CHECK(names == std::set<std::string>{"Q", "K", "V", "O", "O_acc", "l", "m"});
  CHECK(cuda::tensors_of({k.forward}, true).contains("slopes"));
  CHECK(cuda::device_bytes(grouped, names) == rows * 64 * (2 + 2 + 4) + 2 * keys * 64 * 2 + 2 * rows * 4);
  const Index far = Index(1) << 40;  // N² overflows 64 bits
  CHECK(cuda::device_bytes({1, 1, 1, far, far, 64, 64}, {"S", "P"}) == 4.0 * 0x1p80);
}

TEST_CASE("a problem on a device holds the inputs, and the rest is not to be read") {
  VirtualDevice device({}, much);
  Inputs in = problem(grouped);
  in.slopes = {0.5f, 0.25f, 2, 0};
  Options o;
  o.causal = true;
  o.softcap = 3;
  const std::size_t free = device.free_bytes();
  {
    const OnDevice memory(device, in, o, {"Q", "K", "V", "O", "dO", "slopes", "LSE"});
    CHECK(device.free_bytes() < free);
    const cuda::Problem& p = memory.problem();
    CHECK((p.batch == 2 && p.heads == 4 && p.kv_heads == 2 && p.Nq == 5 && p.Nk == 7 && p.d == 64));
    CHECK((p.scale == 0.125f && p.softcap == 3));
    CHECK((rules::visible(p.sees, 0, 2) && !rules::visible(p.sees, 0, 3)));
    CHECK((p.S == nullptr && p.dQ == nullptr && p.l == nullptr));
    for (const auto& [tensor, values] : {std::pair{"Q", &in.q}, {"K", &in.k}, {"V", &in.v}, {"dO", &in.dout}}) {
      const auto read = memory.read<Eigen::half>(tensor);
      CHECK(std::vector<double>(read.begin(), read.end()) == *values);
    }
    CHECK(memory.read<float>("slopes") == in.slopes);
    for (const float x : memory.read<float>("LSE")) CHECK(std::isnan(x));
    CHECK_THROWS_AS(memory.read<float>("l"), std::logic_error);
  }
  CHECK(device.free_bytes() == free);
}

TEST_CASE("LSE and gradients, wherever the stage keeps them") {
  const Inputs in = problem(grouped);
  Options o;
  o.causal = true;
  o.window = {1, -1};
  const Outputs wanted = oracle(in, o, true);
  for (const Stage& stage : stages_on(Side::cuda)) {
    const RunResult result =
        cuda::execute(kernels_of(stage.id.c_str(), stage.has(Side::cuda, Direction::backward)), in, o, false);
    CHECK(near(result.outputs.o, wanted.o, 4e-3));
    CHECK(near(result.outputs.lse, wanted.lse, 4e-3));
    if (!stage.has(Side::cuda, Direction::backward)) continue;
    CHECK(near(result.outputs.dq, wanted.dq, 8e-3));
    CHECK(near(result.outputs.dk, wanted.dk, 8e-3));
    CHECK(near(result.outputs.dv, wanted.dv, 8e-3));
  }
}

TEST_CASE("rows that see no key, and problems without rows or keys") {
  const double infinity = std::numeric_limits<double>::infinity();
  Options causal;
  causal.causal = true;
  for (const Stage& stage : stages_on(Side::cuda)) {
    const Kernels k = kernels_of(stage.id.c_str(), stage.has(Side::cuda, Direction::backward));
    const Outputs out = cuda::execute(k, problem({1, 1, 1, 5, 3, 64, 64}), causal, false).outputs;
    CHECK((out.lse[0] == -infinity && out.lse[1] == -infinity && std::isfinite(out.lse[2])));
    const Outputs keyless = cuda::execute(k, problem({1, 1, 1, 5, 0, 64, 64}), {}, false).outputs;
    CHECK(keyless.lse == std::vector<double>(5, -infinity));
    CHECK(keyless.o == std::vector<double>(5 * 64, 0.0));
    CHECK(cuda::execute(k, problem({1, 1, 1, 0, 3, 64, 64}), {}, false).outputs.o.empty());
  }
}

TEST_CASE("what stage 05 adds: both dtypes, parts of the keys, options of one pass, sums in whole tiles") {
  const Kernels k = kernels_of("05", true);
  CHECK(cuda::dtypes(*k.forward) == std::vector<Format>{Format::fp16, Format::bf16});

  std::map<std::string, std::size_t> bytes;
  for (const cuda::Tensor& t : cuda::tensors(grouped, Format::bf16, 3)) bytes[t.info.name] = t.bytes();
  const std::size_t rows = 2 * 4 * 5;
  CHECK(bytes["partial_O"] == 3 * rows * 64 * 4);
  CHECK(bytes["partial_LSE"] == 3 * rows * 4);
  CHECK(bytes["dQ_acc"] == 2 * 4 * 128 * 64 * 4);
  CHECK(cuda::device_bytes(grouped, {"partial_O"}, 3) == 3 * rows * 64 * 4);
  CHECK(cuda::device_bytes(grouped, {"partial_O"}, 1) == 0);

  Options o;
  o.splits = 3;            // of the forward pass
  o.deterministic = true;  // of the backward pass
  for (const Format dtype : {Format::fp16, Format::bf16}) {
    Inputs in = draw_inputs({1, 2, 1, 5, 200, 64, 64}, dtype, 1);
    draw_dout(in, 1);
    const Outputs wanted = oracle(in, o, true);
    const RunResult result = cuda::execute(k, in, o, false);
    const double tolerance = dtype == Format::bf16 ? 3e-2 : 4e-3;
    CHECK(near(result.outputs.o, wanted.o, tolerance));
    CHECK(near(result.outputs.lse, wanted.lse, 4e-3));
    CHECK(near(result.outputs.dq, wanted.dq, tolerance));
    CHECK(near(result.outputs.dk, wanted.dk, tolerance));
    CHECK(near(result.outputs.dv, wanted.dv, tolerance));
    REQUIRE(result.backward);
    CHECK(result.forward.ledger.by_tensor(sim::Access::write).contains("partial_O"));
    CHECK(result.backward->ledger.by_tensor(sim::Access::write).contains("turn"));
  }
}

TEST_CASE("each pass has its own ledger") {
  const Inputs in = problem({1, 1, 1, 40, 40, 64, 64});
  const Kernels k = kernels_of("04", true);
  for (int run = 0; run < 2; ++run) {
    const RunResult result = cuda::execute(k, in, {}, false);
    const auto forward = result.forward.ledger.by_tensor(sim::Access::read),
               backward = result.backward->ledger.by_tensor(sim::Access::read);
    CHECK(forward.at("Q") == 40 * 64);
    CHECK(backward.at("Q") == 40 * 64);
    CHECK(!forward.contains("dO"));
    CHECK(result.backward->ledger.by_tensor(sim::Access::write).at("dK") == 2 * 40 * 64);  // zeros, and the gradient
    CHECK(result.forward.ledger.extra_hbm().contains("LSE"));
    CHECK(!result.forward.ledger.extra_hbm().contains("O"));
    CHECK(result.seconds > 0);
  }
  REQUIRE(k.virtual_device->watched().size() == 4);
  const OnDevice memory(*k.device, in, {}, cuda::tensors_of({k.forward}, false));
  k.device->run(*k.forward, memory.problem(), 3);
  const auto &once = k.virtual_device->watched()[0].counts, &thrice = k.virtual_device->watched()[4].counts;
  CHECK(thrice.ctas == 3 * once.ctas);
  CHECK(thrice.instructions.at("shfl.sync") == 3 * once.instructions.at("shfl.sync"));
}

TEST_CASE("what kernels don't take is refused") {
  const Kernels k = kernels_of("03");
  CHECK(cuda::head_sizes(*k.forward) == std::vector<int>{64, 128});
  const Inputs in = problem({1, 1, 1, 4, 4, 64, 64});
  CHECK(refusal(k, in) == "was run");
  Inputs wide = in;
  wide.dtype = Format::fp32;
  CHECK_THAT(refusal(k, wide), Catch::Contains("fp32 was asked") && Catch::Contains("--dtype fp16"));
  CHECK_THAT(refusal(k, problem({1, 1, 1, 4, 4, 64, 32})), Catch::Contains("dv = 32"));
  CHECK_THAT(refusal(k, problem({1, 1, 1, 4, 4, 80, 80})), Catch::Contains("d = 80") && Catch::Contains("64, 128"));
  Options o;
  o.dropout = 0.5;
  CHECK_THAT(refusal(k, in, o), Catch::Contains("dropout was asked of the kernels of stage 03_online_softmax"));
  o = {};
  o.first_touch = true;
  CHECK_THAT(refusal(k, in, o), Catch::Contains("first-touch"));
  Inputs masked = in;
  masked.mask.assign(16, 1);
  CHECK_THAT(refusal(k, masked), Catch::Contains("mask"));
  Inputs torn = in;
  torn.k.pop_back();
  CHECK_THAT(refusal(k, torn), Catch::Contains("k has 255 elements where the problem needs 256"));
  Inputs nan = in;
  nan.v[3] = std::numeric_limits<double>::quiet_NaN();
  CHECK_THAT(refusal(k, nan), Catch::Contains("v[0,0,0,3] is nan"));
  CHECK_THROWS_WITH(cuda::find_kernels(find_stage("02"), cuda::Backend::vgpu, true),
                    Catch::Contains("has only a forward pass"));
}

TEST_CASE("S and P that exceed the device's memory are refused with both numbers") {
  const Shape large{1, 1, 1, 4096, 4096, 64, 64};
  Inputs in;
  in.shape = large;
  const auto sentence = [&](const Kernels& k) -> std::string {
    try {
      cuda::require_room(k, large, 1, false);
    } catch (const Refused& refused) {
      return refused.what();
    }
    return "there is room";
  };
  const std::size_t of_S_and_P = 2 * 2 * 4096 * 4096, of_Q_K_V_O = 4 * 4096 * 64 * 2;
  const Kernels small = kernels_of("01", false, 1 << 28);
  CHECK_THAT(sentence(small), Catch::Contains(std::to_string(of_S_and_P + of_Q_K_V_O) + " bytes, S and P among them") &&
                                  Catch::Contains(std::to_string(small.device->free_bytes()) + " free") &&
                                  Catch::Contains("a stage from 03 on"));
  CHECK(sentence(kernels_of("03", false, 1 << 28)) == "there is room");
  CHECK(sentence(kernels_of("01")) == "there is room");
  CHECK_THAT(sentence(kernels_of("03", false, 1 << 20)), !Catch::Contains("S and P"));
}

// ---- a kernel that is wrong

namespace {

void launch_nothing(const cuda::Problem&, ptx::Stream) {}

}  // namespace

TEST_CASE("what the virtual GPU reports ends a run without outputs") {
  Kernels k = kernels_of("04", true);
  const cuda::Module wrong{"04_recomputed_backward/forward",
                           75,
                           "fp16",
                           "Q K V O LSE",
                           "causal",
                           [](const cuda::Problem&, std::size_t) {
                             return cuda::TileShape{16, 16};
                           },
                           launch_nothing};
  k.forward = &wrong;
  const RunResult result = cuda::execute(k, problem({1, 1, 1, 4, 4, 64, 64}), {}, false);
  REQUIRE(k.virtual_device->watched().size() == 1);
  REQUIRE(!k.virtual_device->watched()[0].reports.empty());
  CHECK(k.virtual_device->watched()[0].reports[0].kind == "unwritten");
  CHECK(result.outputs.o.empty());
  CHECK(!result.backward);
}

TEST_CASE("tiles of S that nobody sees need not be written") {
  Options causal;
  causal.causal = true;
  const Kernels k = kernels_of("02");
  CHECK(!cuda::execute(k, problem({1, 1, 1, 150, 150, 64, 64}), causal, false).outputs.o.empty());
  CHECK(k.virtual_device->watched()[0].reports.empty());
}

// Arrays of a stopped kernel as matrices: what lies in shared memory, and what a warp's lanes hold in registers.
#include <algorithm>
#include <cmath>

#include "cuda/common/library.hpp"
#include "cuda/common/on_device.hpp"
#include "cuda/common/tensors.hpp"
#include "cuda/common/virtual_device.hpp"
#include "stages/common/draw.hpp"
#include "tests/catch.hpp"
// Last: it brings CUDA's words.
#include "cuda/common/module.hpp"

using namespace flash;

namespace {

/// Stage 03's kernel on one head of N queries and keys, stopped where the test wants it.
struct Stopped {
  Inputs inputs;
  const cuda::Module* kernel = cuda::find_module(cuda::Backend::vgpu, "03_online_softmax/forward");
  cuda::VirtualDevice device{gpu::Config{}, std::size_t{1} << 30};
  cuda::OnDevice tensors;
  gpu::Machine& machine = device.machine();

  explicit Stopped(Index N)
      : inputs(draw_inputs({.batch = 1, .heads = 1, .kv_heads = 1, .Nq = N, .Nk = N, .d = 64, .dv = 64}, Format::fp16, 1)),
        tensors(device, inputs, {}, cuda::tensors_of({kernel}, false)) {
    machine.start([this] { kernel->launch(tensors.problem(), nullptr); });
  }
  void next_barrier(int warp) {
    machine.until([=](const gpu::Event& e) { return e.warp == warp && e.name == "bar.sync"; });
  }
  double q(Index i, Index c) const { return inputs.q[static_cast<std::size_t>(i * 64 + c)]; }
  double k(Index j, Index c) const { return inputs.k[static_cast<std::size_t>(j * 64 + c)]; }
  double score(Index i, Index j) const {
    double s = 0;
    for (Index c = 0; c < 64; ++c) s += q(i, c) * k(j, c);
    return s / 8;
  }
};

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

}  // namespace

TEST_CASE("A tile in shared memory is a matrix, and what nobody wrote is not known", "[vgpu]") {
  Stopped s(80);
  s.next_barrier(2);  // the barrier before K and V are written
  CHECK(s.machine.shared_names() == std::vector<std::string>{"Q", "K", "V", "P", "l", "m", "max", "sum"});
  const auto nothing = s.machine.shared_matrix("Q");
  REQUIRE(nothing);
  CHECK(std::ranges::none_of(nothing->known, std::identity()));
  s.next_barrier(2);  // Q, K, V, l and m are there
  const gpu::Matrix Q = *s.machine.shared_matrix("Q"), K = *s.machine.shared_matrix("K");
  CHECK((Q.rows == 32 && Q.cols == 64 && K.rows == 128 && K.cols == 64));
  CHECK(std::ranges::all_of(Q.known, std::identity()));
  for (int i = 0; i < 32; ++i)
    for (int c = 0; c < 64; ++c) REQUIRE(Q(i, c) == s.q(i, c));
  for (int j = 0; j < 128; ++j)
    for (int c = 0; c < 64; ++c) REQUIRE(K(j, c) == (j < 80 ? s.k(j, c) : 0));
  CHECK(s.machine.shared_matrix("m")->rows == 32);
  CHECK(s.machine.shared_matrix("m")->cols == 1);
  CHECK(!s.machine.shared_matrix("nothing of this name"));
}

TEST_CASE("A warp's registers are its part of a tile", "[vgpu]") {
  Stopped s(128);
  for (int n = 0; n < 3; ++n) s.next_barrier(1);  // the last one: the maxima of all warps are there
  const auto S = s.machine.registers(1, "S");
  REQUIRE(S);
  CHECK((S->row0 == 0 && S->rows == 32 && S->col0 == 32 && S->cols == 32));
  CHECK(std::ranges::all_of(S->known, std::identity()));
  const gpu::Matrix max = *s.machine.shared_matrix("max");
  for (int i = 0; i < 32; ++i) {
    double most = -INFINITY;
    for (int j = 0; j < 32; ++j) {
      REQUIRE(std::abs((*S)(i, j) - s.score(i, 32 + j)) < 1e-3);
      most = std::max(most, (*S)(i, j));
    }
    REQUIRE(max(1, i) == most);
  }
  CHECK(contains(s.machine.register_names(1), "O"));
  CHECK(s.machine.registers(1, "O")->col0 == 16);
  CHECK(!s.machine.registers(1, "nothing of this name"));
  CHECK(!s.machine.registers(4, "S"));
  CHECK(!s.machine.registers(-1, "S"));
  s.machine.run();
  CHECK(!s.machine.registers(1, "S"));
  CHECK(!s.machine.shared_matrix("Q"));
  CHECK((s.machine.shared_names().empty() && s.machine.register_names(0).empty()));
}

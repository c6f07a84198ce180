// mma.sync: D[16,8] += A[16,K]·B[K,8] with fp32 accumulators. Products are exact; sums are made in fp32 in the order of
// k, where the hardware truncates in an order of its own: results agree within a few ulp of the largest term.
#include "cuda/ptx/layout.hpp"
#include "sim/gpu/numbers.hpp"
#include "sim/gpu/parts.hpp"

namespace flash::gpu {
namespace {

struct Operands {
  float* d;
  const std::uint32_t *a, *b;
};

const Operands& operands_of(const Thread& t) { return *static_cast<const Operands*>(t.operands); }

std::uint16_t half_of(const std::uint32_t* r, int i) { return static_cast<std::uint16_t>(r[i / 2] >> 16 * (i % 2)); }

template <int K>
struct Matrices {
  std::uint16_t a[16][K], b[K][8];
  float c[16][8];
};

template <int K>
void gather(const Warp& warp, Matrices<K>& m) {
  namespace layout = ptx::layout;
  for (int lane = 0; lane < 32; ++lane) {
    const Operands& o = operands_of(*warp.lanes[lane]);
    for (int i = 0; i < K / 2; ++i) m.a[layout::mma_a(lane, i).row][layout::mma_a(lane, i).col] = half_of(o.a, i);
    for (int i = 0; i < K / 4; ++i) m.b[layout::mma_b(lane, i).row][layout::mma_b(lane, i).col] = half_of(o.b, i);
    for (int i = 0; i < 4; ++i) m.c[layout::mma_c(lane, i).row][layout::mma_c(lane, i).col] = o.d[i];
  }
}

template <int K, class Convert>
void multiply(Matrices<K>& m, Convert convert) {
  float a[16][K], b[K][8];
  for (int i = 0; i < 16; ++i)
    for (int k = 0; k < K; ++k) a[i][k] = convert(m.a[i][k]);
  for (int k = 0; k < K; ++k)
    for (int j = 0; j < 8; ++j) b[k][j] = convert(m.b[k][j]);
  for (int i = 0; i < 16; ++i)
    for (int k = 0; k < K; ++k)
      for (int j = 0; j < 8; ++j) m.c[i][j] += a[i][k] * b[k][j];
}

template <int K>
void execute(const Warp& warp, Operand operand) {
  Matrices<K> m;
  gather(warp, m);
  if (operand == Operand::f16)
    multiply(m, from_f16);
  else
    multiply(m, from_bf16);
  for (int lane = 0; lane < 32; ++lane)
    for (int i = 0; i < 4; ++i) {
      const auto at = ptx::layout::mma_c(lane, i);
      operands_of(*warp.lanes[lane]).d[i] = m.c[at.row][at.col];
    }
}

const char* name_of(int k, Operand operand) {
  if (operand == Operand::f16) return k == 8 ? "mma.sync.aligned.m16n8k8.f16" : "mma.sync.aligned.m16n8k16.f16";
  return k == 8 ? "mma.sync.aligned.m16n8k8.bf16" : "mma.sync.aligned.m16n8k16.bf16";
}

}  // namespace

void mma(float* d, int k, Operand operand, const std::uint32_t* a, const std::uint32_t* b) {
  const Pc pc = __builtin_return_address(0);
  const char* name = name_of(k, operand);
  if (k == 16 || operand == Operand::bf16) require_arch(80, name, pc);
  Operands mine{d, a, b};
  if (!meet(name, whole_warp, &mine, pc)) return;
  Warp& warp = *current->warp;
  look_at_log(warp);
  if (k == 8)
    execute<8>(warp, operand);
  else
    execute<16>(warp, operand);
  count_instruction(name);
  meeting_done(whole_warp);
  event(at_instruction, name, pc, 0, k == 8 ? cost::mma_k8 : cost::mma_k16);
}

}  // namespace flash::gpu

// ldmatrix: 8×8 matrices of 16-bit elements from shared memory to a warp's registers.
#include <cstring>

#include "cuda/ptx/layout.hpp"
#include "sim/gpu/parts.hpp"

namespace flash::gpu {
namespace {

constexpr unsigned row_bytes = 16;

struct Load {
  std::uint32_t* r;
  const void* row;
};

const Load& load_of(const Thread& t) { return *static_cast<const Load*>(t.operands); }

/// The eight rows of a matrix are served at once where they lie in different banks.
unsigned wavefronts(const std::size_t (&rows)[8]) {
  unsigned held[8] = {}, most = 1;
  for (int i = 0; i < 8; ++i) {
    bool known = false;
    for (int k = 0; k < i; ++k) known = known || rows[k] == rows[i];
    if (!known) most = std::max(most, ++held[rows[i] / row_bytes % 8]);
  }
  return most;
}

void load_matrix(const Warp& warp, int matrix, bool transposed, Pc pc, unsigned& waves) {
  std::uint16_t element[8][8];
  std::size_t rows[8];
  Thread* const executing = current;
  for (int row = 0; row < 8; ++row) {
    current = warp.lanes[matrix * 8 + row];  // each row is an access of the lane that gave its address
    rows[row] = smem_offset(load_of(*current).row, row_bytes, row_bytes, pc, "ldmatrix");
    touch_smem(rows[row], row_bytes, Way::read, pc, "ldmatrix");
    std::memcpy(element[row], current->cta->smem + rows[row], row_bytes);
  }
  current = executing;
  waves += wavefronts(rows);
  for (int lane = 0; lane < 32; ++lane) {
    std::uint32_t bits = 0;
    for (int i = 0; i < 2; ++i) {
      const auto at = transposed ? ptx::layout::ldmatrix_trans(lane, i) : ptx::layout::ldmatrix(lane, i);
      bits |= static_cast<std::uint32_t>(element[at.row][at.col]) << 16 * i;
    }
    load_of(*warp.lanes[lane]).r[matrix] = bits;
  }
}

}  // namespace

void ldmatrix(std::uint32_t* r, int matrices, bool transposed, const void* row) {
  const Pc pc = __builtin_return_address(0);
  const char* name = transposed ? "ldmatrix.sync.aligned.trans" : "ldmatrix.sync.aligned";
  Load mine{r, row};
  if (!meet(name, whole_warp, &mine, pc)) return;
  Warp& warp = *current->warp;
  look_at_log(warp);
  unsigned waves = 0;
  for (int m = 0; m < matrices; ++m) load_matrix(warp, m, transposed, pc, waves);
  if (machine->config.counts) count_wavefronts(pc, waves, static_cast<unsigned>(matrices));
  count_instruction(transposed ? "ldmatrix.trans" : "ldmatrix");
  meeting_done(whole_warp);
  event(at_instruction, name, pc, 0, cost::ldmatrix);
}

}  // namespace flash::gpu

// Executes program.hpp.
#include "cuda/ptx/ptx.hpp"
#include "tests/kernels/program.hpp"

namespace ptx = flash::ptx;
using namespace program;

namespace {

struct Smem {
  unsigned word[words];
};

template <class T>
__device__ __forceinline__ void access(unsigned char* p, Kind kind, unsigned& sum) {
  if (kind == Kind::read) sum += *reinterpret_cast<T*>(p);
  if (kind == Kind::write) *reinterpret_cast<T*>(p) = static_cast<T>(sum);
}

/// The words lie in shared memory, or where `global` points; copies come from `from`.
__global__ void execute(const Op* ops, const unsigned* from, unsigned* global, unsigned* sums) {
  const int thread = threadIdx.x;
  unsigned* word = global ? global : ptx::dynamic_smem<Smem>().word;
  if (thread < words) word[thread] = 0;
  __syncthreads();
  unsigned sum = 0;
  for (int step = 0; step < steps; ++step) {
    const Op op = ops[step * threads + thread];
    auto* p = reinterpret_cast<unsigned char*>(word) + op.at;
    if (op.kind == Kind::sync_threads) __syncthreads();
    if (op.kind == Kind::sync_warp) __syncwarp();
    if (op.kind == Kind::arrive) ptx::bar_arrive(op.at, op.count);
    if (op.kind == Kind::sync) ptx::bar_sync(op.at, op.count);
    if (op.kind == Kind::copy) ptx::cp_async_4(p, from + op.at / 4);
    if (op.kind == Kind::commit) ptx::cp_async_commit_group();
    if (op.kind == Kind::wait && op.at == 0) ptx::cp_async_wait_group<0>();
    if (op.kind == Kind::wait && op.at == 1) ptx::cp_async_wait_group<1>();
    if (op.kind == Kind::atomic) sum += atomicAdd(reinterpret_cast<unsigned*>(p), 1u);
    if (op.bytes == 1) access<unsigned char>(p, op.kind, sum);
    if (op.bytes == 2) access<unsigned short>(p, op.kind, sum);
    if (op.bytes == 4) access<unsigned>(p, op.kind, sum);
  }
  ptx::cp_async_wait_all();
  sums[thread] = sum;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) void flash_execute(const Op* ops, const unsigned* from,
                                                                     unsigned* global, unsigned* sums) {
  ptx::launch("execute", execute, 1, threads, sizeof(Smem), nullptr, ops, from, global, sums);
}

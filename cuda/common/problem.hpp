// One attention problem in global memory: for kernels what stages/common/problem.hpp is for the Eigen stages.
#pragma once

#include "cuda/ptx/target.hpp"
#include "stages/common/rules.hpp"

namespace flash::cuda {

using i64 = std::int64_t;

/// Passed to kernels by value. Tensors are row-major, one matrix after the other by batch and head; what a kernel does
/// not use is null.
struct Problem {
  i64 batch, heads, kv_heads, Nq, Nk;
  int d;                          ///< of Q, K, V and O
  float scale;                    ///< of Q·Kᵀ
  float softcap;                  ///< c: s <- c·tanh(s/c); 0 is off
  rules::Visibility sees;         ///< causal and window
  double dropout;                 ///< p; 0 is off
  std::uint64_t dropout_seed;
  int splits;                     ///< of the keys
  bool deterministic;             ///< sums of several CTAs are made in the order of their column blocks
  bool bf16;                      ///< `half` below stands for 16 bits, which are then a bf16
  int head, sequence;             ///< of_head: which one this is, the head within its sequence
  const float* slopes;            ///< ALiBi [heads]; null is off

  const half *Q, *K, *V;          ///< [Nq,d] [Nk,d] [Nk,d] of each head or KV head
  half* O;                        ///< [Nq,d]
  float* O_acc;                   ///< [Nq,d] O between visits, fp32
  float *l, *m, *LSE;             ///< [Nq]
  half *S, *P;                    ///< [Nq,Nk]
  const half* dO;                 ///< [Nq,d]
  half *dQ, *dK, *dV;             ///< [Nq,d] [Nk,d] [Nk,d]
  float* dQ_acc;                  ///< [Nq,d] dQ between visits, fp32
  float* D;                       ///< [Nq] rowsum(dO∘O)
  int* turn;                      ///< [Nq], Tr of them used: how many column tiles have added to a row tile of dQ
  float *partial_O, *partial_LSE; ///< [splits,Nq,d] [splits,Nq] of each head
  half *dP, *dS;                  ///< [Nq,Nk]
};

}  // namespace flash::cuda

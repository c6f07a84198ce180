// Tensors in HBM. A stage can't read or write their elements: it has to load a tile to SRAM or store one, and those
// calls (sim/memory/worker.hpp) count. Only the host, before and after a run, sees the values.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "sim/memory/format.hpp"

namespace flash::sim {

/// Inputs and outputs are the problem's own; everything else is the extra memory of FlashAttention's Theorem 1.
enum class Role { input, output, extra };

/// What the ledger knows of a tensor: [batch, heads, rows, cols] elements of `format`.
struct TensorInfo {
  std::string name;
  Format format = Format::fp32;
  Role role = Role::input;
  Index batch = 0, heads = 0, rows = 0, cols = 0;
  Index elements() const { return batch * heads * rows * cols; }
};

/// A handle: copies share the same memory. Memory is taken at first use and starts as NaN, so that reading what nobody
/// wrote shows. A tensor with fewer heads than the grid is shared by neighbouring heads (GQA, or one mask for all).
template <class Real>
class HbmTensor {
 public:
  HbmTensor() = default;
  explicit HbmTensor(TensorInfo info);

  const TensorInfo& info() const { return *info_; }
  bool empty() const { return !info_; }

  /// Values [batch, heads, rows, cols], row-major. For the host alone: not traffic.
  std::span<Real> host() const;

 private:
  struct Memory;
  std::shared_ptr<const TensorInfo> info_;
  std::shared_ptr<Memory> memory_;
};

/// [batch, heads, rows, cols]: a matrix for each head.
template <class Real>
class HbmMatrix : public HbmTensor<Real> {
  using HbmTensor<Real>::HbmTensor;
};

/// [batch, heads, rows]: one number a row.
template <class Real>
class HbmVector : public HbmTensor<Real> {
  using HbmTensor<Real>::HbmTensor;
};

}  // namespace flash::sim

#include "sim/memory/hbm.hpp"

#include <atomic>
#include <limits>
#include <mutex>
#include <vector>

namespace flash::sim {

template <class Real>
struct HbmTensor<Real>::Memory {
  std::mutex mutex;  // protects the first use of `values` by several workers
  std::atomic<bool> ready = false;
  std::vector<Real> values;
};

template <class Real>
HbmTensor<Real>::HbmTensor(TensorInfo info)
    : info_(std::make_shared<const TensorInfo>(std::move(info))), memory_(std::make_shared<Memory>()) {}

template <class Real>
std::span<Real> HbmTensor<Real>::host() const {
  if (!memory_->ready.load(std::memory_order_acquire)) {
    const std::lock_guard lock(memory_->mutex);
    if (!memory_->ready.load(std::memory_order_relaxed)) {
      memory_->values.assign(info_->elements(), std::numeric_limits<Real>::quiet_NaN());
      memory_->ready.store(true, std::memory_order_release);
    }
  }
  return memory_->values;
}

template class HbmTensor<float>;
template class HbmTensor<double>;

}  // namespace flash::sim

// The virtual GPU as a device: what it counted and reported is kept for each run.
#pragma once

#include <vector>

#include "cuda/common/device.hpp"
#include "sim/gpu/machine.hpp"

namespace flash::cuda {

/// What the virtual GPU saw while a module's kernels ran.
struct Watched {
  gpu::Counts counts;
  std::vector<gpu::Report> reports;
};

/// The virtual GPU as a device.
class VirtualDevice final : public Device {
 public:
  /// `host_bytes`: memory of this computer that it may take.
  VirtualDevice(const gpu::Config& config, std::size_t host_bytes);

  std::string name() const override { return limits_.device; }
  std::size_t smem_per_cta() const override { return limits_.smem_per_cta; }
  std::size_t free_bytes() const override;
  void* allocate(const std::string& tensor, std::size_t bytes, const void* contents) override;
  void copy_out(void* to, const void* from, std::size_t bytes) override;
  void require_written(const void* memory, std::size_t bytes) override;
  void free_all() override;
  double run(const Module& module, const Problem& problem, int times) override;

  gpu::Machine& machine() { return machine_; }  ///< to step a kernel on it
  const gpu::Config& config() const { return config_; }
  const gpu::DeviceLimits& limits() const { return limits_; }
  const std::vector<Watched>& watched() const { return watched_; }  ///< one for each run() and what is read after it
  std::string trace() const { return machine_.trace(); }            ///< needs Config::timeline

 private:
  void keep_reports();

  gpu::Config config_;
  gpu::Machine machine_;
  gpu::DeviceLimits limits_;
  std::size_t host_bytes_, taken_ = 0, reports_kept_ = 0;
  std::vector<Watched> watched_;
};

}  // namespace flash::cuda

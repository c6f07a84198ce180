#include "cuda/common/virtual_device.hpp"

#include <chrono>
#include <cstring>

#include "cuda/common/module.hpp"
#include "sim/gpu/happens_before.hpp"

namespace flash::cuda {
namespace {

/// Bytes of this computer for a byte of the virtual GPU's memory: itself, and its share of a shadow cell of four.
constexpr std::size_t kBytesOfAByte = 1 + sizeof(gpu::Cell) / 4;

gpu::Counts operator-(gpu::Counts after, const gpu::Counts& before) {
  for (const auto& [tensor, b] : before.tensors) {
    gpu::TensorBytes& a = after.tensors[tensor];
    a.read -= b.read, a.written -= b.written, a.rmw -= b.rmw;
  }
  for (const auto& [instruction, n] : before.instructions) after.instructions[instruction] -= n;
  for (const auto& [line, b] : before.lines) {
    gpu::LineCounts& a = after.lines[line];
    a.accesses -= b.accesses;
    a.wavefronts -= b.wavefronts, a.least_wavefronts -= b.least_wavefronts;
    a.sectors -= b.sectors, a.least_sectors -= b.least_sectors;
  }
  after.smem_read -= before.smem_read, after.smem_written -= before.smem_written;
  after.wavefronts -= before.wavefronts, after.least_wavefronts -= before.least_wavefronts;
  after.sectors -= before.sectors, after.least_sectors -= before.least_sectors;
  after.barriers -= before.barriers, after.ctas -= before.ctas, after.cycles -= before.cycles;
  return after;
}

}  // namespace

VirtualDevice::VirtualDevice(const gpu::Config& config, std::size_t host_bytes)
    : config_(config), machine_(config), host_bytes_(host_bytes) {
  machine_.run([&] { limits_ = gpu::device_limits(); });
}

std::size_t VirtualDevice::free_bytes() const {
  const std::size_t bytes = host_bytes_ / kBytesOfAByte;
  return taken_ < bytes ? bytes - taken_ : 0;
}

void* VirtualDevice::allocate(const std::string& tensor, std::size_t bytes, const void* contents) {
  taken_ += bytes;
  void* memory = machine_.allocate(tensor, bytes, contents ? gpu::Contents::given : gpu::Contents::undefined);
  if (contents && bytes > 0) std::memcpy(memory, contents, bytes);
  return memory;
}

void VirtualDevice::copy_out(void* to, const void* from, std::size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

void VirtualDevice::require_written(const void* memory, std::size_t bytes) {
  machine_.require_written(memory, bytes);
  keep_reports();
}

void VirtualDevice::free_all() {
  machine_.free_all();
  taken_ = 0;
}

double VirtualDevice::run(const Module& module, const Problem& problem, int times) {
  const gpu::Counts before = machine_.counts();
  const auto start = std::chrono::steady_clock::now();
  machine_.run([&] {
    for (int n = 0; n < times; ++n) module.launch(problem, nullptr);
  });
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  watched_.push_back({machine_.counts() - before, {}});
  keep_reports();
  return seconds;
}

void VirtualDevice::keep_reports() {
  const auto& all = machine_.reports();
  for (; reports_kept_ < all.size() && !watched_.empty(); ++reports_kept_)
    watched_.back().reports.push_back(all[reports_kept_]);
}

}  // namespace flash::cuda

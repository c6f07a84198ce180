// A GPU as a device. Built by nvcc into kernels/gpu/device.so.
#include <vector>

#include "cuda/common/cuda_device.hpp"
#include "cuda/common/module.hpp"

namespace flash::cuda {
namespace {

using ptx::require_success;

__device__ long long nanoseconds() {
  long long now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

/// Cycles of an SM and the nanoseconds that they took, about `length` of them.
__global__ void measure_clock(long long length, long long* cycles_and_time) {
  const long long time = nanoseconds(), cycles = clock64();
  while (nanoseconds() - time < length) {
  }
  cycles_and_time[0] = clock64() - cycles;
  cycles_and_time[1] = nanoseconds() - time;
}

class CudaDevice final : public Device {
 public:
  explicit CudaDevice(int ordinal) : ordinal_(ordinal) {
    make_current();
    // Non-blocking: work that a kernel file put into the default stream by mistake would not be waited for, and show.
    require_success(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "a stream");
    require_success(cudaEventCreate(&begin_), "an event");
    require_success(cudaEventCreate(&end_), "an event");
  }

  ~CudaDevice() override {
    release();
    cudaEventDestroy(begin_);
    cudaEventDestroy(end_);
    cudaStreamDestroy(stream_);
  }

  std::string name() const override {
    make_current();
    return ptx::device_limits().device;
  }

  std::size_t free_bytes() const override {
    make_current();
    std::size_t free = 0, total = 0;
    require_success(cudaMemGetInfo(&free, &total), "the free memory");
    return free;
  }

  std::size_t smem_per_cta() const override {
    make_current();
    return ptx::device_limits().smem_per_cta;
  }

  void* allocate(const std::string& tensor, std::size_t bytes, const void* contents) override {
    make_current();
    if (bytes == 0) return nullptr;
    const std::string what = "memory for " + tensor;
    void* memory = nullptr;
    require_success(cudaMalloc(&memory, bytes), what.c_str());
    memory_.push_back(memory);
    if (contents)
      require_success(cudaMemcpyAsync(memory, contents, bytes, cudaMemcpyHostToDevice, stream_), what.c_str());
    else
      require_success(cudaMemsetAsync(memory, 0xFF, bytes, stream_), what.c_str());
    wait();
    return memory;
  }

  void copy_out(void* to, const void* from, std::size_t bytes) override {
    make_current();
    if (bytes == 0) return;
    require_success(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream_), "a copy to the host");
    wait();
  }

  void free_all() override {
    make_current();
    release();
  }

  double run(const Module& module, const Problem& problem, int times) override {
    make_current();
    return timed([&] {
      for (int n = 0; n < times; ++n) module.launch(problem, stream_);
    });
  }

  double clock_mhz() {
    make_current();
    constexpr long long length = 2'000'000;  // [ns]: the timer counts in steps of up to a microsecond
    long long measured[2] = {}, *on_device = nullptr;
    require_success(cudaMalloc(&on_device, sizeof measured), "memory for the clock");
    measure_clock<<<1, 1, 0, stream_>>>(length, on_device);
    require_success(cudaMemcpyAsync(measured, on_device, sizeof measured, cudaMemcpyDeviceToHost, stream_), "the clock");
    wait();
    cudaFree(on_device);
    return 1e3 * static_cast<double>(measured[0]) / static_cast<double>(measured[1]);
  }

 private:
  void make_current() const { require_success(cudaSetDevice(ordinal_), "the device"); }
  void wait() { require_success(cudaStreamSynchronize(stream_), "the kernels' end"); }

  void release() {
    for (void* memory : memory_) cudaFree(memory);
    memory_.clear();
  }

  template <class Work>
  double timed(const Work& work) {
    require_success(cudaEventRecord(begin_, stream_), "an event");
    work();
    require_success(cudaGetLastError(), "a launch");
    require_success(cudaEventRecord(end_, stream_), "an event");
    wait();
    float milliseconds = 0;
    require_success(cudaEventElapsedTime(&milliseconds, begin_, end_), "the time between two events");
    return milliseconds * 1e-3;
  }

  int ordinal_;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
  std::vector<void*> memory_;
};

int count() {
  int devices = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&devices); error != cudaSuccess)
    throw std::runtime_error(cudaGetErrorString(error));
  return devices;
}

int driver() {
  int version = 0;
  require_success(cudaDriverGetVersion(&version), "the driver's version");
  return version;
}

GpuFacts facts(int ordinal) {
  cudaDeviceProp p{};
  require_success(cudaGetDeviceProperties(&p, ordinal), "the device's properties");
  return {p.name,
          p.major * 10 + p.minor,
          p.multiProcessorCount,
          p.totalGlobalMem,
          static_cast<std::size_t>(p.l2CacheSize),
          p.sharedMemPerBlockOptin};
}

Device* open(int ordinal) { return new CudaDevice(ordinal); }
double clock_mhz(Device& device) { return static_cast<CudaDevice&>(device).clock_mhz(); }

#define FLASH_TEXT(x) #x
#define FLASH_VALUE(x) FLASH_TEXT(x)
constexpr char kCompiler[] = "nvcc " FLASH_VALUE(__CUDACC_VER_MAJOR__) "." FLASH_VALUE(
    __CUDACC_VER_MINOR__) "." FLASH_VALUE(__CUDACC_VER_BUILD__);

}  // namespace
}  // namespace flash::cuda

extern "C" __attribute__((visibility("default"))) const flash::cuda::Cuda flash_cuda{
    flash::cuda::kCompiler, FLASH_BUILT_FOR,   flash::cuda::count,    flash::cuda::driver,
    flash::cuda::facts,     flash::cuda::open, flash::cuda::clock_mhz};

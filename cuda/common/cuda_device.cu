// A GPU as a device. Built by nvcc into kernels/gpu/device.so.
#include <cublas_api.h>  // declarations alone: the library is loaded where a product is asked for
#include <cuda_profiler_api.h>
#include <dlfcn.h>

#include <string>
#include <type_traits>
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

/// Holds the stream up for `length`, while the host queues what comes behind.
__global__ void hold(long long length) {
  const long long time = nanoseconds();
  while (nanoseconds() - time < length) {
  }
}

/// Bell-shaped, mean 0, variance 1.
template <class Number>
__global__ void draw(Number* to, long long count, unsigned long long seed) {
  const long long step = (long long)gridDim.x * blockDim.x;
  for (long long n = (long long)blockIdx.x * blockDim.x + threadIdx.x; n < count; n += step) {
    unsigned long long bits = (n + seed) * 0x9e3779b97f4a7c15ull;  // splitmix64
    bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9ull;
    bits = (bits ^ bits >> 27) * 0x94d049bb133111ebull;
    bits ^= bits >> 31;
    float sum = 0;  // of four uniform numbers in (-1/2, 1/2), each of variance 1/12
    for (int part = 0; part < 64; part += 16) sum += ((bits >> part & 0xffff) + 0.5f) / 65536 - 0.5f;
    to[n] = Number(sum * 1.7320508f);
  }
}

/// Reads it all; `to` is written only if a word is what none is.
__global__ void read(const uint4* from, long long count, int* to) {
  const long long step = (long long)gridDim.x * blockDim.x;
  for (long long n = (long long)blockIdx.x * blockDim.x + threadIdx.x; n < count; n += step)
    if (from[n].x == 1) *to = 1;
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
    return timed([&] {
      for (int n = 0; n < times; ++n) module.launch(problem, stream_);
    });
  }

  double clock_mhz() {
    make_current();
    constexpr long long length = 1'000'000;  // [ns]: the timer counts in steps of up to a microsecond
    long long measured[2] = {}, *on_device = nullptr;
    require_success(cudaMalloc(&on_device, sizeof measured), "memory for the clock");
    measure_clock<<<1, 1, 0, stream_>>>(length, on_device);
    require_success(cudaMemcpyAsync(measured, on_device, sizeof measured, cudaMemcpyDeviceToHost, stream_),
                    "the clock");
    wait();
    cudaFree(on_device);
    return 1e3 * static_cast<double>(measured[0]) / static_cast<double>(measured[1]);
  }

  /// Seconds that the device takes for `work`, which queues it.
  template <class Work>
  double timed(const Work& work) {
    constexpr long long length = 500'000;  // [ns]: so that launches are queued before the first begins
    make_current();
    hold<<<1, 1, 0, stream_>>>(length);
    require_success(cudaEventRecord(begin_, stream_), "an event");
    work();
    require_success(cudaGetLastError(), "a launch");
    require_success(cudaEventRecord(end_, stream_), "an event");
    wait();
    float milliseconds = 0;
    require_success(cudaEventElapsedTime(&milliseconds, begin_, end_), "the time between two events");
    return milliseconds * 1e-3;
  }

  cudaStream_t stream() const { return stream_; }
  void make_current() const { require_success(cudaSetDevice(ordinal_), "the device"); }
  void wait() { require_success(cudaStreamSynchronize(stream_), "the kernels' end"); }

 private:
  void release() {
    for (void* memory : memory_) cudaFree(memory);
    memory_.clear();
  }

  int ordinal_;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
  std::vector<void*> memory_;
};

/// Memory of a device, for as long as this lives.
class Memory {
 public:
  explicit Memory(std::size_t bytes) : bytes(bytes) { require_success(cudaMalloc(&at, bytes), "memory"); }
  ~Memory() { cudaFree(at); }
  Memory(const Memory&) = delete;

  std::size_t bytes;
  void* at = nullptr;
};

/// What is needed of cuBLAS.
struct Cublas {
  decltype(&cublasCreate_v2) create;
  decltype(&cublasDestroy_v2) destroy;
  decltype(&cublasSetStream_v2) set_stream;
  cublasStatus_t (*gemm)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int m, int n, int k, const void* alpha,
                         const void* A, cudaDataType, int lda, const void* B, cudaDataType, int ldb, const void* beta,
                         void* C, cudaDataType, int ldc, cublasComputeType_t, cublasGemmAlgo_t);
};

#define FLASH_TEXT(x) #x
#define FLASH_VALUE(x) FLASH_TEXT(x)
constexpr char kCublas[] = "libcublas.so." FLASH_VALUE(CUBLAS_VER_MAJOR);

Cublas load_cublas() {
  void* library = dlopen(kCublas, RTLD_NOW | RTLD_LOCAL);
  if (!library) library = dlopen((std::string("/usr/local/cuda/lib64/") + kCublas).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    throw std::runtime_error(std::string("the card's own GEMM was to be timed, but there is no ") + kCublas +
                             " here; install CUDA's cuBLAS or name its folder in LD_LIBRARY_PATH");
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    if (!function)
      throw std::runtime_error(std::string("the card's own GEMM was to be timed, but ") + kCublas + " has no " + name);
  };
  Cublas cublas{};
  find(cublas.create, "cublasCreate_v2");
  find(cublas.destroy, "cublasDestroy_v2");
  find(cublas.set_stream, "cublasSetStream_v2");
  find(cublas.gemm, "cublasGemmEx");
  return cublas;
}

class Gemm final : public Yardstick {
 public:
  Gemm(CudaDevice& device, bool bf16, int n) : device_(device), cublas_(load_cublas()), bf16_(bf16), n_(n) {
    device_.make_current();
    require_success(cublas_.create(&handle_));
    require_success(cublas_.set_stream(handle_, device_.stream()));
    for (Memory* matrix : {&A_, &B_}) {
      const auto seed = static_cast<unsigned long long>(matrix == &B_) << 40;
      if (bf16_)
        draw<<<1024, 256, 0, device_.stream()>>>(static_cast<__nv_bfloat16*>(matrix->at), elements(), seed);
      else
        draw<<<1024, 256, 0, device_.stream()>>>(static_cast<half*>(matrix->at), elements(), seed);
    }
  }
  ~Gemm() override { cublas_.destroy(handle_); }

  double run(int times) override {
    const cudaDataType_t type = bf16_ ? CUDA_R_16BF : CUDA_R_16F;
    const float one = 1, zero = 0;
    return device_.timed([&] {
      for (int n = 0; n < times; ++n)
        require_success(cublas_.gemm(handle_, CUBLAS_OP_N, CUBLAS_OP_N, n_, n_, n_, &one, A_.at, type, n_, B_.at, type,
                                     n_, &zero, C_.at, type, n_, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
    });
  }

 private:
  static void require_success(cublasStatus_t status) {
    if (status != CUBLAS_STATUS_SUCCESS)
      throw std::runtime_error("a product was asked of cuBLAS, which answers with status " + std::to_string(status));
  }
  long long elements() const { return (long long)n_ * n_; }

  CudaDevice& device_;
  Cublas cublas_;
  bool bf16_;
  int n_;
  Memory A_{std::size_t(2) * n_ * n_}, B_{A_.bytes}, C_{A_.bytes};
  cublasHandle_t handle_ = nullptr;
};

class Copy final : public Yardstick {
 public:
  Copy(CudaDevice& device, std::size_t bytes) : device_(device), from_(bytes), to_(bytes) {
    draw<<<1024, 256, 0, device_.stream()>>>(static_cast<half*>(from_.at), (long long)(bytes / sizeof(half)), 0);
  }
  double run(int times) override {
    return device_.timed([&] {
      for (int n = 0; n < times; ++n)
        require_success(cudaMemcpyAsync(to_.at, from_.at, from_.bytes, cudaMemcpyDeviceToDevice, device_.stream()),
                        "a copy");
    });
  }

 private:
  CudaDevice& device_;
  Memory from_, to_;
};

Yardstick* gemm(Device& device, bool bf16, int n) {
  auto& cuda = static_cast<CudaDevice&>(device);
  cuda.make_current();
  return new Gemm(cuda, bf16, n);
}

Yardstick* copy(Device& device, std::size_t bytes) {
  auto& cuda = static_cast<CudaDevice&>(device);
  cuda.make_current();
  return new Copy(cuda, bytes);
}

/// By reading: what was written would be on its way to DRAM while the kernels run.
void clear_l2(CudaDevice& device) {
  constexpr std::size_t bytes = std::size_t(1) << 28;  // several times any L2 that there is
  const Memory much(bytes), word(sizeof(int));
  require_success(cudaMemsetAsync(much.at, 0, bytes, device.stream()), "memory");
  for (int time = 0; time < 3; ++time)
    read<<<1024, 256, 0, device.stream()>>>(static_cast<const uint4*>(much.at), (long long)(bytes / sizeof(uint4)),
                                            static_cast<int*>(word.at));
  device.wait();
}

void run_for_profiler(Device& device, const Module& kernels, const Problem& problem) {
  auto& cuda = static_cast<CudaDevice&>(device);
  cuda.make_current();
  clear_l2(cuda);
  require_success(cudaProfilerStart(), "the profiler");
  kernels.launch(problem, cuda.stream());
  require_success(cudaGetLastError(), "a launch");
  cuda.wait();
  require_success(cudaProfilerStop(), "the profiler");
}

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

constexpr char kCompiler[] = "nvcc " FLASH_VALUE(__CUDACC_VER_MAJOR__) "." FLASH_VALUE(
    __CUDACC_VER_MINOR__) "." FLASH_VALUE(__CUDACC_VER_BUILD__);

}  // namespace
}  // namespace flash::cuda

extern "C" __attribute__((visibility("default"))) const flash::cuda::Cuda flash_cuda{
    flash::cuda::kCompiler, FLASH_BUILT_FOR,   flash::cuda::count,    flash::cuda::driver,
    flash::cuda::facts,     flash::cuda::open, flash::cuda::clock_mhz, flash::cuda::gemm,
    flash::cuda::copy,      flash::cuda::run_for_profiler};

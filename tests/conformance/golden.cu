// Runs the conformance cases on this machine's GPU and writes the golden files that the virtual GPU is held to:
// FOLDER/sm_NN/instructions.bin and instructions.json. It needs nothing but the CUDA toolkit; the command is `build`
// below.
#define FLASH_BUILT_FOR "the architectures of golden.cu's command"
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/conformance/instructions.cu"

namespace {

constexpr const char* build =
    "mkdir -p build && nvcc -std=c++20 -O3 -I. -gencode arch=compute_75,code=compute_75 -gencode "
    "arch=compute_80,code=sm_80 "
    "-gencode arch=compute_90,code=sm_90 tests/conformance/golden.cu -o build/golden && build/golden tests/golden";

using Words = std::vector<Word>;

Words run(const Case& c) {
  Words in(c.all_in()), out(c.all_out());
  c.draw(golden_seed, in.data(), in.size());
  void *device_in = nullptr, *device_out = nullptr;
  const auto done = [&](cudaError_t error) { ptx::require_success(error, c.name); };
  done(cudaMalloc(&device_in, in.size() * sizeof(Word)));
  done(cudaMalloc(&device_out, out.size() * sizeof(Word)));
  done(cudaMemcpy(device_in, in.data(), in.size() * sizeof(Word), cudaMemcpyHostToDevice));
  done(cudaMemset(device_out, 0, out.size() * sizeof(Word)));
  c.launch(static_cast<const Word*>(device_in), static_cast<Word*>(device_out));
  done(cudaDeviceSynchronize());
  done(cudaMemcpy(out.data(), device_out, out.size() * sizeof(Word), cudaMemcpyDeviceToHost));
  done(cudaFree(device_in));
  done(cudaFree(device_out));
  return out;
}

void write(std::ofstream& file, const Case& c, const Words& out) {
  Words in(c.all_in());
  c.draw(golden_seed, in.data(), in.size());
  Record record{};
  std::snprintf(record.name, sizeof record.name, "%s", c.name);
  record.input_hash = hash(in.data(), in.size());
  record.bytes = out.size() * sizeof(Word);
  file.write(reinterpret_cast<const char*>(&record), sizeof record);
  file.write(reinterpret_cast<const char*>(out.data()), static_cast<std::streamsize>(record.bytes));
}

/// The first line of the driver's own description or, where it can't be read, the CUDA version that it takes.
std::string driver() {
  std::ifstream file("/proc/driver/nvidia/version");
  std::string line;
  std::getline(file, line);
  for (char& c : line)
    if (c == '"' || c == '\\' || c == '\t') c = ' ';
  int version = 0;
  if (line.empty() && cudaDriverGetVersion(&version) == cudaSuccess) line = "of CUDA " + std::to_string(version);
  return line;
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  char text[16];
  std::strftime(text, sizeof text, "%Y-%m-%d", std::gmtime(&now));
  return text;
}

void write_all(const std::filesystem::path& folder) {
  cudaDeviceProp card{};
  ptx::require_success(cudaGetDeviceProperties(&card, 0), "the device's properties");
  const int arch = 10 * card.major + card.minor;
  const std::filesystem::path place = folder / ("sm_" + std::to_string(arch));
  std::filesystem::create_directories(place);
  std::ofstream file(place / "instructions.bin", std::ios::binary), about(place / "instructions.json");
  int written = 0;
  for (const Case& c : flash_cases) {
    if (c.arch > arch) continue;
    const Words out = run(c);
    if (run(c) != out) throw std::runtime_error(std::string(c.name) + " gave two answers; nothing to compare with");
    write(file, c, out);
    ++written;
  }
  int runtime = 0;
  ptx::require_success(cudaRuntimeGetVersion(&runtime), "the runtime's version");
  about << "{\n  \"card\": \"" << card.name << "\",\n  \"arch\": " << arch << ",\n  \"driver\": \"" << driver()
        << "\",\n  \"cuda_runtime\": " << runtime << ",\n  \"date\": \"" << today()
        << "\",\n  \"seed\": " << golden_seed << ",\n  \"cases\": " << written << ",\n  \"command\": \"" << build
        << "\"\n}\n";
  if (!file.flush() || !about.flush()) throw std::runtime_error(place.string() + " can't be written");
  std::printf("%d cases of sm_%d written to %s\n", written, arch, place.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "golden FOLDER, built by\n  %s\n", build);
    return 2;
  }
  try {
    write_all(argv[1]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

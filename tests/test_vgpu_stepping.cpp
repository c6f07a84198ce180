// The virtual GPU from its host's side: launches and their limits, stepping and looking, counts of known patterns,
// machines that are started again, destroyed in the middle of a kernel, or run beside each other.
#include <array>
#include <cstring>
#include <set>
#include <thread>
#include <vector>

#include "tests/catch.hpp"
#include "tests/support/vgpu.hpp"

using namespace flash;
using gpu::Config;
using gpu::Contents;
using gpu::Event;
using gpu::Machine;
using Word = std::uint32_t;

namespace {

/// A machine with two tensors of 1024 words: A counts up, B is zero.
struct Run {
  Machine machine;
  Word *A, *B;

  explicit Run(const Config& config = {})
      : machine(config),
        A(static_cast<Word*>(machine.allocate("A", 4096, Contents::given))),
        B(static_cast<Word*>(machine.allocate("B", 4096, Contents::given))) {
    for (Word i = 0; i < 1024; ++i) A[i] = i;
  }
  const Word* given() const { return A; }
  float* floats() const { return reinterpret_cast<float*>(B); }
  const float* given_floats() const { return reinterpret_cast<const float*>(A); }
};

const KernelFile& effects() {
  static const KernelFile file = KernelFile::built("effects");
  return file;
}
const KernelFile& measured() {
  static const KernelFile file = KernelFile::built("measured");
  return file;
}

void start_steps(Run& run) {
  run.machine.start([&run] { effects().call("flash_steps", run.given(), run.B); });
}

/// 2 · Σ over tiles of the partner's value, as flash_steps adds it up.
Word expected_sum(Word cta, Word thread) { return (63 - thread) + (64 + 63 - thread) + 2 * 1000 * cta; }

void check_sums(const Run& run) {
  for (Word i = 0; i < 128; ++i) CHECK(run.B[i] == expected_sum(i / 64, i % 64));
}

std::vector<Word> words(std::span<const std::byte> bytes) {
  std::vector<Word> all(bytes.size() / sizeof(Word));
  std::memcpy(all.data(), bytes.data(), all.size() * sizeof(Word));
  return all;
}

bool is_mark(const Event& e, const char* name, std::int64_t value, unsigned cta) {
  return e.kind == gpu::at_mark && e.name == name && e.value == value && e.cta.x == cta;
}

/// Counts of the line that has "// @tag".
gpu::LineCounts line(const Machine& machine, const char* file, const char* tag) {
  return machine.counts().lines.at(line_with(file, std::string("// @") + tag));
}
gpu::LineCounts measured_line(const Run& run, const char* tag) {
  CHECK(all_reports(run.machine) == "");
  return line(run.machine, "tests/kernels/measured.cu", tag);
}

std::string refused(const Config& config, unsigned x, unsigned y, unsigned z, unsigned threads, std::size_t smem) {
  Run run(config);
  try {
    run.machine.run([&] { effects().call("flash_grid", run.B, 1024u, x, y, z, threads, smem); });
  } catch (const std::runtime_error& error) {
    CHECK(run.machine.counts().ctas == 0);
    return error.what();
  }
  return "";
}

}  // namespace

// ---- launching

TEST_CASE("A launch beyond the limits is refused in a sentence, before it begins", "[vgpu]") {
  Config turing, ampere;
  ampere.arch = 80;
  CHECK(refused(turing, 1, 1, 1, 1024, 65536) == "");
  CHECK(refused(ampere, 1, 1, 1, 1024, 163 * 1024) == "");
  CHECK(refused(turing, 1, 65535, 1, 1, 0) == "");
  using Catch::Contains;
  CHECK_THAT(refused(turing, 1, 1, 1, 1025, 0), Contains("grid_of was launched with 1025 threads a CTA") &&
                                                    Contains("sm_75 takes 1024") && Contains("take fewer"));
  CHECK_THAT(refused(turing, 1, 1, 1, 32, 65537), Contains("needs 65537 bytes of shared memory a CTA") &&
                                                      Contains("sm_75 has 65536") && Contains("take smaller tiles"));
  CHECK_THAT(refused(ampere, 1, 1, 1, 32, 163 * 1024 + 1), Contains("sm_80 has 166912"));
  for (const auto& [y, z] : {std::pair{65536u, 1u}, std::pair{1u, 65536u}})
    CHECK_THAT(refused(turing, 1, y, z, 32, 0),
               Contains("a grid of 1 x " + std::to_string(y) + " x " + std::to_string(z)) &&
                   Contains("2147483647 x 65535 x 65535") && Contains("take a smaller problem"));
  CHECK_THAT(refused(turing, 0x80000000u, 1, 1, 32, 0), Contains("a grid of 2147483648 x 1 x 1"));
  CHECK_THAT(refused(turing, 1, 1, 1, 0, 0), Contains("grid_of was launched with") && Contains("thread"));
}

TEST_CASE("An empty grid launches nothing, and each CTA has its place in a full one", "[vgpu]") {
  Run run;
  run.machine.run([&] { effects().call("flash_grid", run.B, 1024u, 0u, 7u, 2u, 32u, std::size_t(0)); });
  CHECK(run.machine.counts().ctas == 0);
  run.machine.run([&] { effects().call("flash_grid", run.B, 1024u, 5u, 7u, 3u, 40u, std::size_t(0)); });
  CHECK(run.machine.counts().ctas == 105);
  for (Word i = 0; i < 1024; ++i) CHECK(run.B[i] == (i < 105 ? i : 0));
  CHECK(all_reports(run.machine) == "");
}

TEST_CASE("Architectures and configurations that there are not are refused", "[vgpu]") {
  Config config;
  config.arch = 70;
  CHECK_THROWS_WITH(Machine(config), Catch::Contains("sm_70") && Catch::Contains("sm_75") && Catch::Contains("sm_90"));
  config = {};
  config.sms = 0;
  CHECK_THROWS_WITH(Machine(config), Catch::Contains("0 SMs"));
}

TEST_CASE("Outside of Machine::run() a launch is refused, and hooks are let through", "[vgpu]") {
  Word a[4] = {1, 2, 3, 4};
  CHECK_THROWS_WITH(effects().call("flash_marks", a + 0), Catch::Contains("outside Machine::run()"));
  CHECK_THROWS_WITH(gpu::launch("f", 1, 1, 0, nullptr, 0, nullptr), Catch::Contains("f was launched outside"));
  const auto host_code = effects().symbol<unsigned(Word*, unsigned)>("flash_host_code");
  CHECK(host_code(a, 4) == 1);
  CHECK(a[3] == 10);
  Run run;
  run.machine.run([&] { host_code(run.A, 1024); });
  CHECK(run.A[1023] == 1023 * 1024 / 2);
  CHECK(all_reports(run.machine) == "");
  CHECK(run.machine.counts().tensors.at("A").read == 0);
}

TEST_CASE("What the program throws comes out of run()", "[vgpu]") {
  Run run;
  CHECK_THROWS_WITH(run.machine.run([] { throw std::runtime_error("no"); }), "no");
  run.machine.run([&] { effects().call("flash_steps", run.given(), run.B); });
  check_sums(run);
}

// ---- stepping and looking

TEST_CASE("step() stops at each event that was asked for", "[vgpu]") {
  Config config;
  config.seed = 0;
  Run run(config);
  const std::string file = "tests/kernels/effects.cu";
  std::map<std::string, int> seen;
  start_steps(run);
  while (const auto event = run.machine.step()) {
    CHECK(event->warp < 2);
    CHECK(event->begin <= event->end);
    ++seen[event->name + (event->where.empty() ? "" : " at " + event->where)];
  }
  const auto at = [&](const char* name, const char* tag) {
    return std::string(name) + " at " + line_with(file, std::string("// @") + tag);
  };
  std::string all;
  for (const auto& [what, times] : seen) all += std::to_string(times) + " " + what + "\n";
  INFO(all);
  // Each is an event of a warp.
  CHECK(seen == std::map<std::string, int>{{"steps", 1},
                                           {at("bar.sync", "first_barrier"), 8},
                                           {at("tile", "mark"), 8},
                                           {at("shfl.sync.bfly", "shuffle"), 8},
                                           {at("bar.sync", "second_barrier"), 8}});
  check_sums(run);
  CHECK_FALSE(run.machine.step());

  for (const auto& [kinds, count] : {std::pair{gpu::at_mark, 8},
                                     {gpu::at_barrier, 16},
                                     {gpu::at_instruction, 8},
                                     {gpu::at_launch, 1},
                                     {gpu::at_async, 0}}) {
    Run again(config);
    start_steps(again);
    int stops = 0;
    while (const auto event = again.machine.step(kinds)) {
      CHECK(event->kind == kinds);
      ++stops;
    }
    CHECK(stops == count);
    check_sums(again);
  }
}

TEST_CASE("At a stop shared memory, watched arrays and who waits can be seen", "[vgpu]") {
  Run run;
  start_steps(run);
  CHECK(run.machine.shared_memory().empty());
  CHECK(run.machine.state() == "no kernel is running\n");
  for (const unsigned cta : {0u, 1u}) {
    Run stepped;
    start_steps(stepped);
    const auto event = stepped.machine.until([&](const Event& e) { return is_mark(e, "tile", 1, cta); });
    REQUIRE(event);
    const std::vector<Word> tile = words(stepped.machine.shared_memory());
    REQUIRE(tile.size() == 256);
    for (Word i = 0; i < 64; ++i) CHECK(tile[i] == 64 + i + 1000 * cta);
    for (Word i = 64; i < 256; ++i) CHECK(tile[i] == 0xffffffff);
    const int leader = 32 * event->warp;
    const std::vector<Word> sums = words(stepped.machine.watched(leader, "sums"));
    REQUIRE(sums.size() == 2);
    CHECK(sums[0] == 63 - static_cast<Word>(leader) + 1000 * cta);
    CHECK(sums[1] == 127 - static_cast<Word>(leader) + 1000 * cta);
    CHECK(stepped.machine.watched(leader, "nothing of this name").empty());
    CHECK(stepped.machine.watched(-1, "sums").empty());
    CHECK(stepped.machine.watched(64, "sums").empty());
    CHECK_THAT(stepped.machine.state(), Catch::Contains("CTA (" + std::to_string(cta) + ",0,0) threads"));
    stepped.machine.run();
    CHECK(stepped.machine.shared_memory().empty());
    CHECK(stepped.machine.watched(0, "sums").empty());
    check_sums(stepped);
  }
}

TEST_CASE("state() says who waits at which barrier for how many", "[vgpu]") {
  Run run;
  start_steps(run);
  const std::string one_warp = "bar.sync at " + line_with("tests/kernels/effects.cu", "// @second_barrier") +
                               ", barrier 0 [32 of 64 threads are there]";
  std::string states;
  while (run.machine.step(gpu::at_barrier)) states += run.machine.state();
  CHECK_THAT(states, Catch::Contains("CTA (0,0,0) threads 0-31: " + one_warp) ||
                         Catch::Contains("CTA (0,0,0) threads 32-63: " + one_warp));
  CHECK_THAT(states, Catch::Contains("ready to run"));
}

TEST_CASE("A run is the same again with the same seed, and another with another", "[vgpu]") {
  const auto order = [](std::uint64_t seed) {
    Config config;
    config.seed = seed;
    config.timeline = true;
    Run run(config);
    start_steps(run);
    std::string events;
    while (const auto e = run.machine.step())
      events += e->name + std::to_string(e->cta.x) + std::to_string(e->warp) + " " + std::to_string(e->end) + "\n";
    check_sums(run);
    return events + run.machine.trace();
  };
  std::set<std::string> orders;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    const std::string once = order(seed);
    CHECK(once == order(seed));
    orders.insert(once);
  }
  CHECK(orders.size() > 3);
}

TEST_CASE("Stepping changes no count", "[vgpu]") {
  Run straight, stepped;
  straight.machine.run([&] { effects().call("flash_steps", straight.given(), straight.B); });
  start_steps(stepped);
  while (stepped.machine.step()) {
  }
  const gpu::Counts &one = straight.machine.counts(), &other = stepped.machine.counts();
  CHECK(one.instructions == other.instructions);
  CHECK(one.barriers == other.barriers);
  CHECK(one.smem_read == other.smem_read);
  CHECK(one.wavefronts == other.wavefronts);
  CHECK(one.cycles == other.cycles);
  CHECK(one.sectors == other.sectors);
}

// ---- counts

TEST_CASE("Bytes of tensors and of shared memory are those that threads asked for", "[vgpu]") {
  Run run;
  run.machine.run([&] { effects().call("flash_steps", run.given(), run.B); });
  const gpu::Counts& counts = run.machine.counts();
  CHECK(counts.tensors.at("A").read == 2 * 2 * 64 * 4);
  CHECK(counts.tensors.at("A").written == 0);
  CHECK(counts.tensors.at("B").written == 2 * 64 * 4);
  CHECK(counts.smem_written == 2 * 2 * 64 * 4);
  CHECK(counts.smem_read == 2 * 2 * 64 * 4);
  CHECK(counts.barriers == 8);
  CHECK(counts.ctas == 2);
  CHECK(counts.instructions.at("shfl.sync") == 8);

  Run narrow;
  float* C = static_cast<float*>(narrow.machine.allocate("C", 4096, Contents::given));
  narrow.machine.run([&] { measured().call("flash_bytes", narrow.given_floats(), narrow.floats(), C); });
  const auto& tensors = narrow.machine.counts().tensors;
  CHECK(tensors.at("A").read == 100 * 12);
  CHECK(tensors.at("B").written == 100 * 4);
  CHECK(tensors.at("C").written == 100 * 2);
  CHECK(tensors.at("C").rmw == 100 * 4);
  CHECK(tensors.at("C").read == 0);
}

TEST_CASE("Sectors of a warp's global accesses", "[vgpu]") {
  for (const auto& [stride, sectors] : {std::pair{1, 4u}, {2, 8u}, {3, 12u}, {8, 32u}, {32, 32u}, {0, 1u}}) {
    Run run;
    run.machine.run([&] { measured().call("flash_global_stride", run.given_floats(), run.floats(), stride); });
    const gpu::LineCounts read = measured_line(run, "global_read"), write = measured_line(run, "global_write");
    INFO("stride " << stride);
    CHECK(read.accesses == 1);
    CHECK(read.sectors == sectors);
    CHECK(read.least_sectors == (stride == 0 ? 1 : 4));
    CHECK(write.sectors == 1);
    CHECK(write.least_sectors == 1);
  }
  Run run;
  run.machine.run([&] { measured().call("flash_global_vectors", run.given_floats(), run.floats()); });
  for (const char* tag : {"vector_load", "vector_store"}) {
    const gpu::LineCounts vectors = measured_line(run, tag);
    CHECK(vectors.accesses == 1);
    CHECK(vectors.sectors == 16);
    CHECK(vectors.least_sectors == 16);
  }
}

TEST_CASE("Counts of lines add up to those of the run", "[vgpu]") {
  Run run;
  run.machine.run([&] {
    measured().call("flash_rows", run.floats(), 32);
    measured().call("flash_global_stride", run.given_floats(), run.floats(), 3);
    effects().call("flash_steps", run.given(), run.B);
  });
  gpu::LineCounts sum;
  for (const auto& [place, counts] : run.machine.counts().lines) {
    sum.wavefronts += counts.wavefronts;
    sum.least_wavefronts += counts.least_wavefronts;
    sum.sectors += counts.sectors;
    sum.least_sectors += counts.least_sectors;
  }
  const gpu::Counts& all = run.machine.counts();
  CHECK(sum.sectors > 40);
  CHECK(sum.wavefronts > 40);
  CHECK(sum.sectors == all.sectors);
  CHECK(sum.least_sectors == all.least_sectors);
  CHECK(sum.wavefronts == all.wavefronts);
  CHECK(sum.least_wavefronts == all.least_wavefronts);
}

TEST_CASE("Wavefronts of a warp's shared accesses", "[vgpu]") {
  for (const auto& [stride, wavefronts] :
       {std::pair{1, 1u}, {2, 2u}, {3, 1u}, {4, 4u}, {8, 8u}, {16, 16u}, {32, 32u}, {33, 1u}, {64, 32u}}) {
    Run run;
    run.machine.run([&] { measured().call("flash_shared_stride", run.floats(), stride); });
    INFO("stride " << stride);
    for (const char* tag : {"shared_write", "shared_read"}) {
      const gpu::LineCounts access = measured_line(run, tag);
      CHECK(access.accesses == 1);
      CHECK(access.wavefronts == wavefronts);
      CHECK(access.least_wavefronts == 1);
    }
  }
  Run run;
  run.machine.run([&] { measured().call("flash_broadcast", run.floats()); });
  CHECK(measured_line(run, "broadcast").wavefronts == 1);
  CHECK(measured_line(run, "two_words").wavefronts == 2);

  Run vectors;
  vectors.machine.run([&] { measured().call("flash_shared_vectors", vectors.floats()); });
  CHECK(measured_line(vectors, "vector_write").accesses == 1);
  CHECK(measured_line(vectors, "vector_write").wavefronts == 4);
  CHECK(measured_line(vectors, "vector_write").least_wavefronts == 4);
  CHECK(measured_line(vectors, "pair_read").accesses == 1);
  CHECK(measured_line(vectors, "pair_read").wavefronts == 2);
}

TEST_CASE("Bank conflicts of ldmatrix: none with rows padded by 16 bytes, eight-way without", "[vgpu]") {
  // Words between rows: dense, 64 and 128 bytes, 128 bytes padded by 16, by 8-way conflicting 256 bytes.
  for (const auto& [row, wavefronts] :
       {std::pair{4, 4u}, {8, 8u}, {16, 16u}, {32, 32u}, {36, 4u}, {20, 4u}, {64, 32u}}) {
    Run run;
    run.machine.run([&] { measured().call("flash_rows", run.floats(), row); });
    INFO(row << " words");
    const gpu::LineCounts rows = measured_line(run, "rows");
    CHECK(rows.accesses == 1);
    CHECK(rows.wavefronts == wavefronts);
    CHECK(rows.least_wavefronts == 4);
  }
}

// ---- machines

TEST_CASE("A machine runs again after a fatal report, and after it was left in the middle of a kernel", "[vgpu]") {
  const std::string after_fatal = in_child([] {
    Run run;
    run.machine.run(
        [&] { effects().call("flash_grid", static_cast<Word*>(nullptr), 1024u, 1u, 1u, 1u, 32u, std::size_t(0)); });
    if (run.machine.reports().size() != 1) return std::string("no report");
    run.machine.run([&] { effects().call("flash_steps", run.given(), run.B); });
    for (Word i = 0; i < 128; ++i)
      if (run.B[i] != expected_sum(i / 64, i % 64)) return std::string("wrong numbers");
    return std::to_string(run.machine.reports().size()) + " report";
  });
  CHECK(after_fatal == "1 report");
  const std::string in_the_middle = in_child([] {
    Run run;
    start_steps(run);
    run.machine.until([](const Event& e) { return is_mark(e, "tile", 1, 0); });
    run.machine.run([&] { effects().call("flash_steps", run.given(), run.B); });
    for (Word i = 0; i < 128; ++i)
      if (run.B[i] != expected_sum(i / 64, i % 64)) return std::string("wrong numbers");
    return all_reports(run.machine);
  });
  CHECK(in_the_middle == "");
}

TEST_CASE("A machine can be destroyed anywhere in a kernel", "[vgpu]") {
  CHECK(in_child([] {
          for (int events = 0; events < 40; ++events) {
            Run run;
            start_steps(run);
            for (int i = 0; i < events; ++i) run.machine.step();
          }
          for (const bool waits : {false, true}) {
            Run run;
            run.machine.start([&run] { effects().call("flash_forever", run.A, run.B); });
            run.A[1000] = 0;
            run.machine.step(gpu::at_mark);
            if (waits) run.machine.run();  // to the report that nothing more will come
          }
          Run never;
          start_steps(never);
          return std::string("done");
        }) == "done");
}

TEST_CASE("Destroying a machine unwinds the program, and leaves its kernels' threads where they are", "[vgpu]") {
  const KernelFile file = KernelFile::compiled_text(R"(
    #include "cuda/ptx/ptx.hpp"
    namespace ptx = flash::ptx;
    struct Holder {
      int* count;
      explicit Holder(int* c) : count(c) { atomicAdd(count, 1); }
      ~Holder() { atomicAdd(count, -1); }
    };
    __global__ void holds(volatile int* A, int* held) {
      Holder holder(held);
      ptx::mark("here", 0);
      __syncthreads();
      while (*A == 0) {}
    }
    extern "C" __attribute__((visibility("default"))) void flash_holds(int* A, int* held) {
      ptx::launch("holds", holds, 1, 64, 0, nullptr, static_cast<volatile int*>(A), held);
    })");
  CHECK(in_child([&] {
          int by_host = 0, in_kernel = 0;
          {
            Run run;
            run.A[0] = 0;
            run.machine.start([&] {
              struct Guard {
                int& n;
                ~Guard() { --n; }
              } guard{++by_host};
              file.call("flash_holds", reinterpret_cast<int*>(run.A), reinterpret_cast<int*>(run.B));
            });
            run.machine.run();
            in_kernel = static_cast<int>(run.B[0]);
          }
          return std::to_string(in_kernel) + " " + std::to_string(by_host);
        }) == "64 0");
}

TEST_CASE("Machines in two OS threads run beside each other", "[vgpu]") {
  CHECK(in_child([] {
          std::array<int, 2> wrong{};
          const auto work = [&wrong](std::size_t me) {
            for (int i = 0; i < 30; ++i) {
              Config config;
              config.seed = static_cast<std::uint64_t>(i) * 2 + me;
              Run run(config);
              start_steps(run);
              while (run.machine.step(gpu::at_mark)) {
              }
              for (Word k = 0; k < 128; ++k) wrong[me] += run.B[k] != expected_sum(k / 64, k % 64);
              wrong[me] += static_cast<int>(run.machine.reports().size());
            }
          };
          std::thread other(work, 1);
          work(0);
          other.join();
          return std::to_string(wrong[0] + wrong[1]);
        }) == "0");
}

TEST_CASE("Two machines of one OS thread can be stepped in turn", "[vgpu]") {
  Run one, other;
  start_steps(one);
  start_steps(other);
  bool more = true;
  while (more) {
    const bool first = one.machine.step().has_value();
    more = other.machine.step().has_value() || first;
  }
  check_sums(one);
  check_sums(other);
  CHECK(all_reports(one.machine) + all_reports(other.machine) == "");
}

TEST_CASE("Many tensors, freed and made again", "[vgpu]") {
  Machine machine;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 100; ++i) {
      auto* p = static_cast<unsigned char*>(machine.allocate("t" + std::to_string(i), 1000, Contents::undefined));
      CHECK(reinterpret_cast<std::uintptr_t>(p) % 256 == 0);
      CHECK((p[0] == 0xff && p[999] == 0xff));
    }
    machine.free_all();
  }
  std::string said;
  try {
    for (int i = 0; i < 100000; ++i) machine.allocate("t", 1, Contents::given);
  } catch (const std::exception& error) {
    said = error.what();
  }
  CHECK_THAT(said, Catch::Contains("tensor"));
}

TEST_CASE("Threads have room for large local arrays", "[vgpu]") {
  const KernelFile file = KernelFile::compiled_text(R"(
    #include "cuda/ptx/ptx.hpp"
    __global__ void local(int* A, int n) {
      volatile int large[200 * 256];  // 200 KiB
      for (int i = 0; i < n; ++i) large[i] = i;
      __syncthreads();
      A[threadIdx.x] = large[n - 1 - threadIdx.x];
    }
    extern "C" __attribute__((visibility("default"))) void flash_local(int* A) {
      flash::ptx::launch("local", local, 1, 64, 0, nullptr, A, 200 * 256);
    })");
  CHECK(in_child([&] {
          Run run;
          run.machine.run([&] { file.call("flash_local", reinterpret_cast<int*>(run.B)); });
          return all_reports(run.machine) + std::to_string(run.B[63]);
        }) == std::to_string(200 * 256 - 64));
}

TEST_CASE("Kernels compiled on the spot have their own lines", "[vgpu]") {
  const auto text = [](int lines) {
    return "#include \"cuda/ptx/ptx.hpp\"\n" + std::string(static_cast<std::size_t>(lines), '\n') +
           "__global__ void f(int* A) { *A = 1; }\n"
           "extern \"C\" __attribute__((visibility(\"default\"))) void flash_f() {"
           " flash::ptx::launch(\"f\", f, 1, 1, 0, nullptr, static_cast<int*>(nullptr)); }\n";
  };
  for (const int lines : {3, 17}) {
    const KernelFile file = KernelFile::compiled_text(text(lines));
    Machine machine;
    machine.run([&] { file.call("flash_f"); });
    CHECK_THAT(all_reports(machine), Catch::Contains("kernel.cu:" + std::to_string(lines + 2)));
  }
}

TEST_CASE("Host code of a kernel file may use the standard library", "[vgpu]") {
  const KernelFile file = KernelFile::compiled_text(R"(
    #include "cuda/ptx/ptx.hpp"
    #include <atomic>
    #include <map>
    #include <memory>
    #include <mutex>
    #include <string>
    extern "C" __attribute__((visibility("default"))) int flash_host() {
      static const std::map<std::string, int> table{{"one", 1}};
      static std::mutex lock;
      const std::lock_guard guard(lock);
      const auto shared = std::make_shared<int>(table.at("one"));
      const auto other = shared;
      std::atomic<int> count{1};
      count.fetch_add(2);
      long long wide = 5;
      __atomic_fetch_add(&wide, 1, __ATOMIC_SEQ_CST);
      return *other + count.load() + static_cast<int>(wide);
    })");
  CHECK(file.symbol<int()>("flash_host")() == 10);
}

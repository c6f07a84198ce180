#include "sim/theory/published.hpp"

#include <fmt/format.h>

#include "sim/memory/format.hpp"
#include "sim/theory/blocks.hpp"
#include "stages/common/options.hpp"

namespace flash::theory {

namespace {

/// The setting of FA1's Figure 2, left.
const Shape kShape{64, 16, 16, 1024, 1024, 64, 64};
constexpr Format kDtype = Format::fp16;

/// Passes over an N×N matrix, over an N×d matrix, both in the dtype, and over an fp32 word per row. A 1-byte mask is
/// half a pass over N×N; an fp32 N×d matrix is two passes.
struct Passes {
  double NN = 0, Nd = 0, N = 0;
};

struct Moved {
  Passes read, write;
};

Passes operator+(const Passes& a, const Passes& b) { return {a.NN + b.NN, a.Nd + b.Nd, a.N + b.N}; }
Moved operator+(const Moved& a, const Moved& b) { return {a.read + b.read, a.write + b.write}; }

Index bytes_of(const Passes& p) {
  const auto heads = static_cast<double>(kShape.batch * kShape.heads);
  const auto element = static_cast<double>(bytes_per_element(kDtype)), word = static_cast<double>(sizeof(float));
  const auto N = static_cast<double>(kShape.Nq), d = static_cast<double>(kShape.d);
  return static_cast<Index>(heads * (element * (p.NN * N * N + p.Nd * N * d) + word * p.N * N));
}

Accounting account(const std::string& name, const Moved& moved) {
  return {name, bytes_of(moved.read), bytes_of(moved.write)};
}

// ---- standard attention

/// FA1, Algorithms 0 and 3.
Moved algorithms_0_and_3() {
  const Moved scores{{0, 2}, {1, 0}}, softmax{{1, 0}, {1, 0}}, output{{1, 1}, {0, 1}};
  const Moved dV{{1, 1}, {0, 1}}, dP{{0, 2}, {1, 0}}, dS{{2, 0}, {1, 0}}, dQ{{1, 1}, {0, 1}}, dK{{1, 1}, {0, 1}};
  return scores + softmax + output + dV + dP + dS + dQ + dK;
}

// Forward writes the byte mask, backward reads it.
const Moved kDropout = Moved{{1, 0}, {1.5, 0}} + Moved{{1.5, 0}, {1, 0}};
const Moved kMaskPass{{1, 0}, {1, 0}};      // S read, masked, written
const Moved kLayoutCopies{{0, 6}, {0, 6}};  // twelve passes: half of each kind

/// PyTorch's kernels for matmul, scale, softmax, matmul and their autograd.
Moved pytorch_today() {
  const Moved scores{{0, 2}, {1, 0}}, scaling{{1, 0}, {1, 0}}, softmax{{1, 0}, {1, 0}}, output{{1, 1}, {0, 1}};
  const Moved dV{{1, 1}, {0, 1}}, dP{{0, 2}, {1, 0}}, dQ{{1, 1}, {0, 1}}, dK{{1, 1}, {0, 1}};
  const Moved product{{2, 0}, {1, 0}}, sum_and_difference{{2, 0}, {1, 0}};  // softmax's backward is two kernels
  return scores + scaling + softmax + output + dV + dP + product + sum_and_difference + scaling + dQ + dK;
}

std::vector<Accounting> standard_accountings() {
  const Moved base = algorithms_0_and_3();
  return {account("Algorithms 0 and 3 alone", base),
          account("+ dropout with a 1-byte mask", base + kDropout),
          account("+ masked_fill forward and backward, no dropout", base + kMaskPass + kMaskPass),
          account("+ masked_fill forward and backward, no dropout, 12 layout copies of Nd",
                  base + kMaskPass + kMaskPass + kLayoutCopies),
          account("+ additive mask forward, dropout with a 1-byte mask", base + kMaskPass + kDropout),
          account("PyTorch today: a scaling pass both ways, softmax's backward in two kernels", pytorch_today()),
          {"the same, measured by Nsight Compute on one H200, 2026-11-29, L2 cleared", 24'697'000'000, 15'573'000'000,
           true}};
}

// ---- FlashAttention

/// K and V outside, Tc = ⌈N/Bc⌉ column blocks: Algorithm 1's order forward, Algorithm 4's backward.
struct KvOutside {
  Index Bc;
  bool fp32_between_visits;  ///< O and dQ
  bool first_touch;          ///< nothing is initialised
  bool zero_key_gradients;   ///< dK and dV are zeroed in HBM although they are stored once
  bool O_once;               ///< D = rowsum(dO∘O) is made once, not at every visit
  double statistics;         ///< words per row: 2 for l and m, 1 for LSE
};

Moved moved(const KvOutside& a) {
  const auto Tc = static_cast<double>(ceil_div(kShape.Nk, a.Bc));
  const double again = Tc - (a.first_touch ? 1 : 0);  // visits that find an earlier O or dQ
  const double between = (a.fp32_between_visits ? 2 : 1) * again, s = a.statistics;
  const double D = a.O_once && s > 0 ? 1 : 0;
  const Moved forward{{0, 2 + Tc + between, s * again},                                // K, V; Q; O; l, m
                      {0, between + 1, s * (again + 1)}};                              // O; l, m
  const Moved backward{{0, 2 + 2 * Tc + (a.O_once ? 1 : Tc) + between, (s + D) * Tc},  // K, V; Q, dO; O; dQ; l, m, D
                       {0, between + 1 + (a.zero_key_gradients ? 4 : 2), D}};          // dQ; dK, dV; D
  return forward + backward;
}

std::vector<Accounting> flash_accountings() {
  const Moved each_once{{0, 8}, {0, 4}};  // Q, K, V; Q, K, V, O, dO | O; dQ, dK, dV
  return {account("each tensor once", each_once),
          account("Bc = 256, first touch, O once backward, no statistics", moved({256, false, true, false, true, 0})),
          account("Bc = 256, first touch, O once backward, LSE and D", moved({256, false, true, false, true, 1})),
          account("Bc = 256, first touch, O once backward, LSE and D, O and dQ fp32 between visits",
                  moved({256, true, true, false, true, 1})),
          account("Bc = 256, Algorithms 1 and 4 as printed", moved({256, false, false, true, false, 2})),
          account("Bc = 384, Algorithms 1 and 4 as printed", moved({384, false, false, true, false, 2})),
          account("Bc = 384, Algorithms 1 and 4, dK and dV not zeroed", moved({384, false, false, false, false, 2})),
          account("Bc = 512, Algorithms 1 and 4, dK and dV not zeroed, O and dQ fp32 between visits",
                  moved({512, true, false, false, false, 2}))};
}

constexpr const char* kOneOfSeveral = "one of several accountings that fit";

}  // namespace

std::vector<PublishedFigure> published_figures() {
  const std::string setting =
      "FA1, Figure 2 left, forward + backward, batch 64, 16 heads, N = 1024, d = 64, fp16, A100";
  const std::string many =
      fmt::format("The closest is {}; the paper doesn't say which passes it counts.", kOneOfSeveral);
  return {{setting + "; standard, edition with GPT-2 medium", 40.3, standard_accountings(), many},
          {setting + "; standard, edition with key-padding mask and no dropout", 35.3, standard_accountings(), many},
          {setting + "; FlashAttention, both editions", 4.4, flash_accountings(),
           fmt::format("The closest is {}; fp32 temporaries of which L2 absorbs a part would fit as well.",
                       kOneOfSeveral)}};
}

}  // namespace flash::theory

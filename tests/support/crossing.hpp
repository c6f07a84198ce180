// Designs that cross what a stage can be asked for: options, N, Nk, d, dv, formats, heads and tiles.
#pragma once

#include <vector>

#include "tests/support/judge.hpp"
#include "tests/support/random_problem.hpp"

namespace flash {

/// One option, or several together, and how they are asked for.
struct Asked {
  const char* name;
  void (*of)(RandomProblem&, Random&);
};
const std::vector<Asked>& asked_options();

inline constexpr Index kSizes[] = {1, 2, 15, 16, 17, 31, 33, 63, 65, 127, 129, 193};
inline constexpr Index kHeadDims[] = {1, 3, 8, 32, 40, 64, 80, 96, 128, 256};

enum class Keys { equal, more, fewer };              ///< Nk beside Nq
enum class Heads { one, six_two, four_one, three };  ///< 1/1; 6/2; 4/1 and 3/3 with batch 2
enum class Tiling { paper, strict, flat, wide, tall, oversized };

/// One problem of a design: an index into each list.
struct Crossing {
  std::size_t option = 0, size = 0, head_dim = 0, format = 0;
  Keys keys = Keys::equal;
  Keys width = Keys::equal;  ///< dv beside d
  Heads heads = Heads::one;
  Tiling tiling = Tiling::paper;
};

/// A problem for each (option, N), numbered by `replica`, in which over all (option, N) the pairs (option, d), (option,
/// format), (N, format), (d, format), (option, Nk) and (option, tiles) occur as well. Several heads where they cost at
/// most `most_work` multiplications a product.
std::vector<Crossing> crossing_design(int replica, Index most_work);

/// Draws the problem; equal crossings give equal problems.
RandomProblem crossed_problem(const Crossing& c);

// ---- definitions

namespace crossing {

inline Shape shape(const Crossing& c) {
  const auto beside = [](Index n, Keys how) {
    return how == Keys::equal ? n : how == Keys::more ? n + n / 2 + 1 : (n + 1) / 2;
  };
  Shape s;
  s.Nq = kSizes[c.size];
  s.Nk = beside(s.Nq, c.keys);
  s.d = kHeadDims[c.head_dim];
  s.dv = beside(s.d, c.width);
  s.heads = c.heads == Heads::one ? 1 : c.heads == Heads::six_two ? 6 : c.heads == Heads::four_one ? 4 : 3;
  s.kv_heads = c.heads == Heads::six_two ? 2 : c.heads == Heads::three ? 3 : 1;
  s.batch = c.heads == Heads::four_one || c.heads == Heads::three ? 2 : 1;
  return s;
}

/// Algorithm 1's Bc is 16 under the paper budget; the strict one has room for about as much.
inline void ask_for_tiles(const Crossing& c, RandomProblem& p) {
  const Index d = std::max(p.shape().d, p.shape().dv), bytes = bytes_per_element(p.inputs.dtype);
  p.config.machine.sram_bytes = 4 * d * bytes * 16;
  p.config.machine.threads = 1;
  const auto by_hand = [&](Index br, Index bc) { p.options.br = br, p.options.bc = bc; };
  switch (c.tiling) {
    case Tiling::paper: break;
    case Tiling::strict:
      p.config.machine.budget = sim::Budget::strict;
      p.config.machine.sram_bytes = 16 * (20 * d + 3 * 16) * 4;
      break;
    case Tiling::flat: by_hand(5, 12); break;
    case Tiling::wide: by_hand(16, 48); break;
    case Tiling::tall: by_hand(64, 16); break;
    case Tiling::oversized: by_hand(300, 400); break;
  }
}

inline void hide(RandomProblem& p, Random& random, Index mask_batch, Index mask_heads) {
  const Shape& s = p.shape();
  p.inputs.mask_batch = mask_batch;
  p.inputs.mask_heads = mask_heads;
  for (Index n = 0; n < mask_batch * mask_heads * s.Nq * s.Nk; ++n) {
    const Index j = n % s.Nk, i = n / s.Nk % s.Nq, head = n / s.Nk / s.Nq;
    const bool no_key = i % 5 == head % 5, no_query = j % 7 == 3;  // whole rows and columns hidden
    p.inputs.mask.push_back(!no_key && !no_query && random(0, 2) > 0);
  }
}

/// Tiles must be given by hand.
inline void skip_blocks(RandomProblem& p, Random& random) {
  const Index Tr = sim::ceil_div(p.shape().Nq, p.options.br), Tc = sim::ceil_div(p.shape().Nk, p.options.bc);
  for (Index t = 0; t < Tr * Tc; ++t) {
    const bool no_key = t / Tc % 4 == 1, no_query = t % Tc % 5 == 2;
    p.inputs.block_mask.push_back(!no_key && !no_query && random(0, 2) > 0);
  }
}

inline void slopes(RandomProblem& p) {
  for (Index h = 0; h < p.shape().heads; ++h) p.inputs.slopes.push_back(0.5f / static_cast<float>(1 << (h % 4)));
}

inline void window(RandomProblem& p, std::int64_t left, std::int64_t right) { p.options.window = {left, right}; }

inline void drop(RandomProblem& p, double probability) {
  p.options.dropout = probability;
  p.options.dropout_seed = 0x9876543210;
}

inline bool uses_blocks(std::string_view option) { return option.find("block") != option.npos; }

}  // namespace crossing

inline const std::vector<Asked>& asked_options() {
  using namespace crossing;
  using P = RandomProblem;
  using R = Random;
  static const std::vector<Asked> all = {
      {"none", [](P&, R&) {}},
      {"causal", [](P& p, R&) { p.options.causal = true; }},
      {"window 16,0", [](P& p, R&) { window(p, 16, 0); }},
      {"window 0,0", [](P& p, R&) { window(p, 0, 0); }},
      {"window -1,3", [](P& p, R&) { window(p, -1, 3); }},
      {"window 5,-1", [](P& p, R&) { window(p, 5, -1); }},
      {"window 3,9", [](P& p, R&) { window(p, 3, 9); }},
      {"window of 64 bits", [](P& p, R&) { window(p, INT64_MAX, INT64_MAX); }},
      {"softcap", [](P& p, R&) { p.options.softcap = 0.75; }},
      {"alibi", [](P& p, R&) { slopes(p); }},
      {"mask [1,1]", [](P& p, R& r) { hide(p, r, 1, 1); }},
      {"mask [1,H]", [](P& p, R& r) { hide(p, r, 1, p.shape().heads); }},
      {"mask [B,H]", [](P& p, R& r) { hide(p, r, p.shape().batch, p.shape().heads); }},
      {"block mask", [](P& p, R& r) { skip_blocks(p, r); }},
      {"dropout", [](P& p, R&) { drop(p, 0.3); }},
      {"scale 0", [](P& p, R&) { p.options.scale = 0; }},
      {"scale -0.4", [](P& p, R&) { p.options.scale = -0.4; }},
      {"first touch", [](P& p, R&) { p.options.first_touch = true; }},
      {"causal, alibi", [](P& p, R&) { p.options.causal = true, slopes(p); }},
      {"window, softcap, alibi", [](P& p, R&) { window(p, 9, 20), p.options.softcap = 1.5, slopes(p); }},
      {"causal, block mask, dropout", [](P& p, R& r) { p.options.causal = true, skip_blocks(p, r), drop(p, 0.5); }},
      {"first touch, window, block mask",
       [](P& p, R& r) { p.options.first_touch = true, window(p, 12, 30), skip_blocks(p, r); }},
      {"2 splits", [](P& p, R&) { p.options.splits = 2; }},
      {"3 splits, causal, alibi", [](P& p, R&) { p.options.splits = 3, p.options.causal = true, slopes(p); }},
      {"7 splits, window, block mask, dropout",
       [](P& p, R& r) { p.options.splits = 7, window(p, 12, 30), skip_blocks(p, r), drop(p, 0.3); }},
      {"1000 splits, mask [B,H], softcap",
       [](P& p, R& r) {
         p.options.splits = 1000, hide(p, r, p.shape().batch, p.shape().heads), p.options.softcap = 1;
       }},
      {"deterministic", [](P& p, R&) { p.options.deterministic = true; }},
      {"deterministic, window, mask [1,H], dropout",
       [](P& p, R& r) {
         p.options.deterministic = true, window(p, 9, 20), hide(p, r, 1, p.shape().heads), drop(p, 0.2);
       }},
      {"split-K", [](P& p, R&) { p.options.warps = Warps::split_k; }},
      {"split-K, causal, block mask, alibi",
       [](P& p, R& r) { p.options.warps = Warps::split_k, p.options.causal = true, skip_blocks(p, r), slopes(p); }},
      {"split-Q, window, softcap, dropout",
       [](P& p, R&) { p.options.warps = Warps::split_q, window(p, 5, 9), p.options.softcap = 1, drop(p, 0.3); }},
      {"everything without tiles",
       [](P& p, R& r) {
         p.options.causal = true, window(p, 40, 3), p.options.softcap = 2, slopes(p), drop(p, 0.2);
         p.options.scale = 0.3, hide(p, r, p.shape().batch, p.shape().heads);
       }},
  };
  return all;
}

inline std::vector<Crossing> crossing_design(int replica, Index most_work) {
  std::vector<Crossing> design;
  const auto r = static_cast<std::size_t>(replica);
  for (std::size_t option = 0; option < asked_options().size(); ++option)
    for (std::size_t size = 0; size < std::size(kSizes); ++size) {
      Crossing c{option, size, (option + size + 3 * r) % 10, (option + size / 2 + size + r) % 4};
      c.keys = static_cast<Keys>((option + size + r) % 3);
      c.width = static_cast<Keys>((option + size / 3 + r) % 3);
      c.heads = static_cast<Heads>((option / 2 + size + r) % 4);
      c.tiling = static_cast<Tiling>((option / 3 + size + 2 * r) % 6);
      if (crossing::uses_blocks(asked_options()[option].name) && c.tiling < Tiling::flat)
        c.tiling = c.tiling == Tiling::paper ? Tiling::flat : Tiling::wide;
      const Shape s = crossing::shape(c);
      if (s.batch * s.heads * s.Nq * s.Nk * std::max(s.d, s.dv) > most_work) c.heads = Heads::one;
      design.push_back(c);
    }
  return design;
}

inline RandomProblem crossed_problem(const Crossing& c) {
  const auto seed = 1 + c.option + 100 * (c.size + 100 * (c.head_dim + 100 * c.format));
  RandomProblem p;
  p.inputs = draw_inputs(crossing::shape(c), kFormats[c.format], seed);
  draw_dout(p.inputs, seed);
  crossing::ask_for_tiles(c, p);
  Random random(seed);
  asked_options()[c.option].of(p, random);
  return p;
}

}  // namespace flash

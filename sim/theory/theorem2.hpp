// Theorem 2 of FA1 (HBM accesses are Θ(N²d²/M) for d ≤ M ≤ Nd), tested on counts. A schedule comes as a walker that
// runs its loops and counts; no formula produces the numbers that are fitted here.
//
// With the paper's blocks the outer loop runs T = ⌈N/⌈M/4d⌉⌉ times and every schedule moves
//     T·N(αd + β) + γNd + εN   elements,     which is   a·N²d²/M + b·N²d/M + c·Nd + e·N   where 4d | M and Bc | N
// (a = 4α, b = 4β, c = γ, e = ε). From the ceilings alone, for any N, d, M:
//     4M(α+β/d)/(M+4d) ≤ count·M/(N²d²) ≤ (4+M/Nd)(α+β/d) + (γ+ε/d)M/Nd.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "sim/memory/eigen.hpp"

namespace flash::theory {

/// HBM elements (reads + writes) that one head moves with N = Nq = Nk, d = dv and M [elements], blocks by the paper.
/// Called from several threads at once.
using Walker = std::function<Index(Index N, Index d, Index M)>;

/// Tile visits of a walk, to choose points by: ⌈N/Br⌉·⌈N/Bc⌉.
Index paper_visits(Index N, Index d, Index M);

using Coefficients = std::array<double, 4>;  ///< of N²d²/M, N²d/M, Nd, N

struct Schedule {
  std::string name;
  Walker walk;
  Coefficients law;  ///< what the theory expects
  std::function<Index(Index N, Index d, Index M)> visits = paper_visits;
};

/// Algorithm 4 as printed: no stage runs it.
Schedule algorithm_4_schedule();

/// The side that stays gets all of M, in blocks of B = M/2d, and the other side passes one row at a time: tile visits.
Index one_sided_visits(Index N, Index d, Index M);

/// A law, found again from counts.
struct Recovered {
  std::string name;
  Coefficients law{};           ///< expected
  Coefficients coefficients{};  ///< recovered by least squares; the nearest integers where `exact`
  bool exact = false;           ///< with the nearest integers every count is met as an integer
  double residual = 0;          ///< largest relative error of the fit
  bool met() const { return exact && coefficients == law; }
};

struct ScheduleResult : Recovered {
  double exponent_N = 0, exponent_d = 0, exponent_M = 0;
  double ratio_min = 0, ratio_max = 0;    ///< of count·M/(N²d²) over any N, d, M with 4d ≤ M ≤ Nd
  double proved_min = 0, proved_max = 0;  ///< the sandwich's outermost values over the same points
  Index outside_sandwich = 0;             ///< points, each held to its own two bounds
  Index points = 0;                       ///< walks in all
  bool exponents_ok() const;              ///< each within 0.03 of 2, 2, −1
  bool ok() const { return met() && outside_sandwich == 0 && exponents_ok(); }
};

/// Where one schedule begins to move less than another.
struct Crossover {
  Index N = 0, d = 0, M = 0;    ///< M: the smallest from 4d on where `first` moves fewer elements; 0: nowhere up to Nd
  Index first = 0, second = 0;  ///< elements at M
};

/// Where does `first` start to move less than `second`? Bisection over M in [4d, Nd]: the difference must change sign
/// once.
Crossover crossover(const Walker& first, const Walker& second, Index N, Index d);

/// Schedules whose counts FA1 forward is compared with.
struct Compared {
  Walker algorithm_1, materialized, tiled;
};

/// What is put to the test.
struct Tested {
  std::vector<Schedule> schedules;
  std::vector<Schedule> one_sided;  ///< walked where 2d | M and M/2d | N: their law is all that is asked
  Schedule control;                 ///< block sizes that break Theorem 2, held to the law that they break: it must fail
  Compared compared;
};

struct Theorem2Options {
  bool full = false;     ///< walk every point of the exponents' window, and more points for the sandwich
  unsigned threads = 0;  ///< 0: as many as the machine has
  std::uint64_t seed = 2022;
};

struct Theorem2 {
  std::vector<ScheduleResult> schedules;
  std::vector<Recovered> one_sided;
  ScheduleResult negative_control;
  std::vector<Crossover> against_materialized;  ///< near M = 3d²
  Crossover against_tiled;                      ///< at M = 4d already
  Index tiled_from_N = 0;                       ///< smallest N where that is so, at M = 4d: 2d + 3
  double seconds = 0;
  bool failed_as_it_must() const { return negative_control.outside_sandwich > 0 && !negative_control.exponents_ok(); }
  bool ok() const;
};

/// Walks every schedule at random points with exact divisibility (coefficients), at any random points (sandwich) and
/// over N = 2¹¹…2¹⁶, d = 32…256, M = 2¹³…2¹⁷ with 16d ≤ M ≤ Nd/16 (exponents; at most 250,000 tile visits a point
/// unless `full`). Rethrows what a walker throws.
Theorem2 theorem2(const Tested& tested, const Theorem2Options& options = {});

nlohmann::ordered_json to_json(const Theorem2& result);

}  // namespace flash::theory

#include "sim/theory/theorem2.hpp"

#include <Eigen/QR>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>

#include "sim/theory/blocks.hpp"
#include "sim/theory/jobs.hpp"
#include "sim/theory/nests.hpp"

namespace flash::theory {

Index paper_visits(Index N, Index d, Index M) {
  const auto [Br, Bc] = paper_blocks(M, d);
  return ceil_div(N, Br) * ceil_div(N, Bc);
}

Schedule algorithm_4_schedule() { return {"algorithm_4_backward", walk_algorithm_4, {20, 8, 7, 0}}; }

Index one_sided_visits(Index N, Index d, Index M) { return N * ceil_div(N, ceil_div(M, 2 * d)); }

bool ScheduleResult::exponents_ok() const {
  const double tolerance = 0.03;
  return std::abs(exponent_N - 2) <= tolerance && std::abs(exponent_d - 2) <= tolerance &&
         std::abs(exponent_M + 1) <= tolerance;
}

bool Theorem2::ok() const {
  return failed_as_it_must() && std::all_of(schedules.begin(), schedules.end(), [](const auto& s) { return s.ok(); }) &&
         std::all_of(one_sided.begin(), one_sided.end(), [](const auto& s) { return s.met(); });
}

namespace {

// ---- points

struct Point {
  Index N, d, M;
  Index elements = 0;  ///< filled by the walk
};

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : engine_(seed) {}

  Index uniform(Index low, Index high) {
    return low + static_cast<Index>(engine_() % static_cast<std::uint64_t>(high - low + 1));
  }
  /// Small and large numbers alike: the logarithm is uniform.
  Index spread(Index low, Index high) {
    const double u = std::generate_canonical<double, 53>(engine_);
    const double x = static_cast<double>(low) * std::pow(static_cast<double>(high) / static_cast<double>(low), u);
    return std::clamp(static_cast<Index>(x), low, high);
  }

 private:
  std::mt19937_64 engine_;
};

/// `share`·d | M and B | N, where B = M/(`share`·d) are the rows of the block that stays: no ceiling rounds anything.
std::vector<Point> divisible_points(Draw& draw, std::size_t count, Index share) {
  std::vector<Point> points;
  while (points.size() < count) {
    const Index d = draw.spread(4, 256), B = draw.spread(1, 64), T = draw.uniform(1, 24);
    points.push_back({T * B, d, share * d * B});
  }
  return points;
}

/// 4d ≤ M ≤ Nd and nothing else.
std::vector<Point> any_points(Draw& draw, std::size_t count, Index most_visits, const Schedule& schedule) {
  std::vector<Point> points;
  while (points.size() < count) {
    const Index N = draw.spread(4, 8192), d = draw.spread(4, 256), M = draw.spread(4 * d, N * d);
    if (schedule.visits(N, d, M) <= most_visits) points.push_back({N, d, M});
  }
  return points;
}

/// The window where the law's fixed terms and ceilings stay small enough for a slope to mean something.
std::vector<Point> window_points(Index most_visits, const Schedule& schedule) {
  std::vector<Point> points;
  for (Index N = Index{1} << 11; N <= Index{1} << 16; N *= 2) {
    for (Index d = 32; d <= 256; d *= 2) {
      for (Index M = Index{1} << 13; M <= Index{1} << 17; M *= 2) {
        if (16 * d > M || M > N * d / 16 || schedule.visits(N, d, M) > most_visits) continue;
        points.push_back({N, d, M});
      }
    }
  }
  return points;
}

// ---- walks

/// One schedule's three sets of points; of a one-sided one only the first.
struct Walks {
  const Schedule* schedule;
  std::vector<Point> divisible, any, window;

  Walks(const Schedule& s, const Theorem2Options& options, bool one_sided = false) : schedule(&s) {
    Draw draw(options.seed);
    divisible = divisible_points(draw, 100, one_sided ? 2 : 4);
    if (one_sided) return;
    any = any_points(draw, options.full ? 5000 : 600, options.full ? 20'000 : 4000, s);
    window = window_points(options.full ? std::numeric_limits<Index>::max() : 250'000, s);
  }

  void append_jobs(std::vector<Job>& jobs) {
    for (std::vector<Point>* points : {&divisible, &any, &window}) {
      for (Point& p : *points) {
        jobs.push_back({schedule->visits(p.N, p.d, p.M), [&p, this] { p.elements = schedule->walk(p.N, p.d, p.M); }});
      }
    }
  }
};

// ---- fits

/// N²d²/M, N²d/M, Nd, N. Where 4d | M and Bc | N the first two are multiples of 1/4: exact in a double.
Eigen::RowVector4d basis(const Point& p) {
  const auto N = static_cast<double>(p.N), d = static_cast<double>(p.d), M = static_cast<double>(p.M);
  return {N * N * d * d / M, N * N * d / M, N * d, N};
}

void recover_coefficients(const std::vector<Point>& points, const Schedule& schedule, Recovered& result) {
  result.name = schedule.name;
  result.law = schedule.law;
  const auto n = static_cast<Index>(points.size());
  Eigen::MatrixXd A(n, 4);
  for (Index i = 0; i < n; ++i) {
    const Point& p = points[static_cast<std::size_t>(i)];
    A.row(i) = basis(p) / static_cast<double>(p.elements);  // relative errors weigh the same at all sizes
  }
  const Eigen::Vector4d fit = A.colPivHouseholderQr().solve(Eigen::VectorXd::Ones(n));
  result.residual = (A * fit - Eigen::VectorXd::Ones(n)).cwiseAbs().maxCoeff();
  const Eigen::Vector4d nearest = fit.array().round();
  result.exact = std::all_of(points.begin(), points.end(),
                             [&](const Point& p) { return basis(p).dot(nearest) == static_cast<double>(p.elements); });
  const Eigen::Vector4d& found = result.exact ? nearest : fit;
  std::copy(found.begin(), found.end(), result.coefficients.begin());
}

void check_sandwich(const std::vector<Point>& points, ScheduleResult& result) {
  result.ratio_min = result.proved_min = std::numeric_limits<double>::infinity();
  for (const Point& p : points) {
    const auto N = static_cast<double>(p.N), d = static_cast<double>(p.d), M = static_cast<double>(p.M);
    const double per_turn = (result.law[0] + result.law[1] / d) / 4;  // α + β/d
    const double fixed = result.law[2] + result.law[3] / d;           // γ + ε/d
    const double low = 4 * M * per_turn / (M + 4 * d);
    const double high = (4 + M / (N * d)) * per_turn + fixed * M / (N * d);
    const double ratio = static_cast<double>(p.elements) * M / (N * N * d * d);
    if (!(low <= ratio && ratio <= high)) ++result.outside_sandwich;
    result.ratio_min = std::min(result.ratio_min, ratio);
    result.ratio_max = std::max(result.ratio_max, ratio);
    result.proved_min = std::min(result.proved_min, low);
    result.proved_max = std::max(result.proved_max, high);
  }
}

void fit_exponents(const std::vector<Point>& points, ScheduleResult& result) {
  const auto n = static_cast<Index>(points.size());
  Eigen::MatrixXd A(n, 4);
  Eigen::VectorXd y(n);
  for (Index i = 0; i < n; ++i) {
    const Point& p = points[static_cast<std::size_t>(i)];
    A.row(i) << 1, std::log(p.N), std::log(p.d), std::log(p.M);
    y(i) = std::log(p.elements);
  }
  const Eigen::Vector4d fit = A.colPivHouseholderQr().solve(y);
  result.exponent_N = fit(1);
  result.exponent_d = fit(2);
  result.exponent_M = fit(3);
}

ScheduleResult judge(const Walks& walks) {
  ScheduleResult result;
  result.points = static_cast<Index>(walks.divisible.size() + walks.any.size() + walks.window.size());
  recover_coefficients(walks.divisible, *walks.schedule, result);
  check_sandwich(walks.any, result);
  fit_exponents(walks.window, result);
  return result;
}

/// The smallest N where Algorithm 1 moves less than the tiled passes at the smallest M, 4d; up to 4d.
Index smallest_N(const Compared& compared, Index d) {
  Index low = 0, high = 4 * d;
  while (high - low > 1) {
    const Index mid = (low + high) / 2;
    (compared.algorithm_1(mid, d, 4 * d) < compared.tiled(mid, d, 4 * d) ? high : low) = mid;
  }
  return high;
}

}  // namespace

Crossover crossover(const Walker& first, const Walker& second, Index N, Index d) {
  Crossover found{N, d, 0, 0, 0};
  Index low = 4 * d - 1, high = N * d + 1;  // `first` moves no less at low, less at high: both unasked
  while (high - low > 1) {
    // by halves of the logarithm first: a walk with small M is long
    const Index mid = std::clamp(static_cast<Index>(std::sqrt(static_cast<double>(low) * static_cast<double>(high))),
                                 low + 1, high - 1);
    const Index a = first(N, d, mid), b = second(N, d, mid);
    if (a < b) {
      high = mid;
      found = {N, d, mid, a, b};
    } else {
      low = mid;
    }
  }
  return found;
}

Theorem2 theorem2(const Tested& tested, const Theorem2Options& options) {
  const auto start = std::chrono::steady_clock::now();
  Theorem2 result;
  const Compared& compared = tested.compared;
  std::vector<Walks> walks, one_sided;
  for (const Schedule& s : tested.schedules) walks.emplace_back(s, options);
  walks.emplace_back(tested.control, options);
  for (const Schedule& s : tested.one_sided) one_sided.emplace_back(s, options, true);

  const std::array<Index, 3> head_dims{32, 64, 128};
  result.against_materialized.resize(head_dims.size());
  std::vector<Job> jobs;
  for (std::size_t i = 0; i < head_dims.size(); ++i) {
    jobs.push_back({100'000, [&, i] {
                      result.against_materialized[i] =
                          crossover(compared.algorithm_1, compared.materialized, 4096, head_dims[i]);
                    }});
  }
  jobs.push_back({3'000'000, [&] { result.against_tiled = crossover(compared.algorithm_1, compared.tiled, 512, 64); }});
  jobs.push_back({500'000, [&] { result.tiled_from_N = smallest_N(compared, 64); }});
  for (Walks& w : walks) w.append_jobs(jobs);
  for (Walks& w : one_sided) w.append_jobs(jobs);
  run_all(std::move(jobs), options.threads);

  for (const Walks& w : walks) result.schedules.push_back(judge(w));
  result.negative_control = std::move(result.schedules.back());
  result.schedules.pop_back();
  for (const Walks& w : one_sided) recover_coefficients(w.divisible, *w.schedule, result.one_sided.emplace_back());
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

// ---- JSON

namespace {

using Json = nlohmann::ordered_json;

Json recovered_json(const Recovered& r) {
  Json coefficients = Json::array(), expected = Json::array();
  for (const double c : r.coefficients) coefficients.push_back(r.exact ? Json(std::llround(c)) : Json(c));
  for (const double c : r.law) expected.push_back(std::llround(c));
  return {{"name", r.name},
          {"basis", {"N²d²/M", "N²d/M", "Nd", "N"}},
          {"coefficients", coefficients},
          {"expected", expected},
          {"exact", r.exact},
          {"residual", std::isfinite(r.residual) ? Json(r.residual) : Json("nan")}};
}

Json schedule_json(const ScheduleResult& s) {
  Json json = recovered_json(s);
  json["exponents"] = {{"N", s.exponent_N}, {"d", s.exponent_d}, {"M", s.exponent_M}};
  json["ratio"] = {{"min", s.ratio_min}, {"max", s.ratio_max}, {"proved", {s.proved_min, s.proved_max}}};
  json["outside_sandwich"] = s.outside_sandwich;
  json["points"] = s.points;
  json["ok"] = s.ok();
  return json;
}

Json crossover_json(const Crossover& c) {
  const Index floor = 4 * c.N * c.d;  // Q, K, V read once and O written once
  const double over_d2 = static_cast<double>(c.M) / static_cast<double>(c.d * c.d);
  Json json{{"N", c.N}, {"d", c.d}, {"M", nullptr}, {"M_over_d²", nullptr}};
  if (c.M != 0) json["M"] = c.M, json["M_over_d²"] = over_d2;
  json["elements"] = {{"03", c.first}, {"other", c.second}, {"floor_4Nd", floor}};
  return json;
}

}  // namespace

nlohmann::ordered_json to_json(const Theorem2& result) {
  Json schedules = Json::array(), one_sided = Json::array(), materialized = Json::array();
  for (const ScheduleResult& s : result.schedules) schedules.push_back(schedule_json(s));
  for (const Recovered& r : result.one_sided) one_sided.push_back(recovered_json(r));
  for (const Crossover& c : result.against_materialized) materialized.push_back(crossover_json(c));
  Json control = schedule_json(result.negative_control);
  control.erase("ok");
  control["failed_as_it_must"] = result.failed_as_it_must();
  Json tiled = crossover_json(result.against_tiled);
  tiled["at_M_4d_from_N"] = result.tiled_from_N;
  return {{"schedules", schedules},
          {"one_sided", one_sided},
          {"negative_control", control},
          {"crossover", {{"against_01", materialized}, {"against_02", tiled}}},
          {"seconds", result.seconds}};
}

}  // namespace flash::theory

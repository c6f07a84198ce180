// The figure of Theorem 2: HBM traffic of one head against M.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/theory/theorem2.hpp"

namespace flash::theory {

struct Curve {
  std::string title;
  std::vector<std::pair<Index, Index>> points;  ///< (M, HBM elements), walked
};

struct TrafficFigure {
  Index N = 0, d = 0;
  std::vector<Curve> curves;
  Crossover against_materialized, against_tiled;  ///< of Algorithm 1, stage 03
};

/// Walks each of `walked` (title, walker) from M = 4d to 8Nd, two points per doubling, and finds both crossovers.
TrafficFigure traffic_figure(const std::vector<std::pair<std::string, Walker>>& walked, const Compared& compared,
                             Index N = 1024, Index d = 64);

/// A complete gnuplot script, data included, that writes the SVG file `svg_path`.
std::string gnuplot_script(const TrafficFigure& figure, const std::string& svg_path);

}  // namespace flash::theory

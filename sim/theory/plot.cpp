#include "sim/theory/plot.hpp"

#include <fmt/format.h>

#include "sim/theory/jobs.hpp"

namespace flash::theory {

TrafficFigure traffic_figure(const std::vector<std::pair<std::string, Walker>>& walked, const Compared& compared,
                             Index N, Index d) {
  TrafficFigure figure{N, d, {}, {}, {}};
  std::vector<Index> sizes{4 * d};
  for (Index M = 8 * d; M <= 8 * N * d; M *= 2) sizes.insert(sizes.end(), {M, M + M / 2});
  for (const auto& [title, walk] : walked) {
    figure.curves.push_back({title, {}});
    for (const Index M : sizes) figure.curves.back().points.emplace_back(M, 0);
  }

  std::vector<Job> jobs;
  for (std::size_t i = 0; i < walked.size(); ++i)
    for (auto& [M, elements] : figure.curves[i].points)
      jobs.push_back({paper_visits(N, d, M), [&, i, at = M, to = &elements] { *to = walked[i].second(N, d, at); }});
  const auto find = [&](Crossover& to, const Walker& other) {
    jobs.push_back({2 * paper_visits(N, d, 4 * d), [&, N, d] { to = crossover(compared.algorithm_1, other, N, d); }});
  };
  find(figure.against_materialized, compared.materialized);
  find(figure.against_tiled, compared.tiled);
  run_all(std::move(jobs));
  return figure;
}

namespace {

/// gnuplot's single-quoted string: a quote inside is doubled.
std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? "''" : std::string(1, c);
  return out + "'";
}

std::string with_thousands(Index n) {
  std::string digits = std::to_string(n);
  for (Index at = static_cast<Index>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<std::size_t>(at), ",");
  return digits;
}

std::string vertical_line(Index M) {
  return fmt::format(
      "set arrow from first {0}, graph 0 to first {0}, graph 1 nohead dashtype 3 linewidth 1 linecolor 'gray40'\n", M);
}

/// A dotted vertical line at M with words at its foot.
std::string vertical_mark(Index M, const std::string& words, const std::string& side) {
  return vertical_line(M) + fmt::format("set label {1} at first {0}, graph 0.03 {2} offset character {3}, 0\n", M,
                                        quoted(words), side, side == "left" ? 0.6 : -0.6);
}

std::string axes(const TrafficFigure& f, const std::string& svg_path) {
  return fmt::format(
      "set terminal svg size 1000,680 font 'Helvetica,15' background 'white'\n"
      "set encoding utf8\n"
      "set output {}\n"
      "set title 'HBM traffic of one head: N = {}, d = {}'\n"
      "set xlabel 'M, size of the SRAM [elements]'\n"
      "set ylabel 'HBM reads + writes [elements]'\n"
      "set logscale x 2\n"
      "set logscale y 10\n"
      "set format x '2^{{%L}}'\n"
      "set format y '10^{{%L}}'\n"
      "set xrange [{}:{}]\n"
      "set yrange [{}:]\n"
      "set mxtics 1\n"
      "set key top right spacing 1.2\n",
      quoted(svg_path), with_thousands(f.N), f.d, 3 * f.d, 10 * f.N * f.d, 2 * f.N * f.d);
}

/// A circle where the curves cross, with words beside it.
std::string crossover_mark(const Crossover& c, const std::string& other) {
  if (c.M == 0) return {};
  const double over_d2 = static_cast<double>(c.M) / static_cast<double>(c.d * c.d);
  const std::string meaning = c.M == 4 * c.d ? "4d" : fmt::format("{:.2f} d²", over_d2);
  const std::string words = fmt::format("03 below {} from M = {} = {}", other, with_thousands(c.M), meaning);
  return vertical_line(c.M) +
         fmt::format(
             "set object circle at first {0}, {1} size graph 0.015 front fillstyle empty border linecolor 'black' "
             "linewidth 2\n"
             "set label {2} at first {0}, {1} left offset character 2.2, 0.9\n",
             c.M, c.first, quoted(words));
}

std::string marks(const TrafficFigure& f) {
  return vertical_mark(4 * f.d, "M = 4d", "left") + vertical_mark(f.N * f.d, "M = Nd", "right") +
         crossover_mark(f.against_materialized, "01") + crossover_mark(f.against_tiled, "02");
}

}  // namespace

std::string gnuplot_script(const TrafficFigure& f, const std::string& svg_path) {
  std::string script = axes(f, svg_path) + marks(f);
  std::string data, plots;
  for (std::size_t i = 0; i < f.curves.size(); ++i) {
    data += fmt::format("$curve{} << EOD\n", i);
    for (const auto& [M, elements] : f.curves[i].points) data += fmt::format("{} {}\n", M, elements);
    data += "EOD\n";
    plots += fmt::format("$curve{} using 1:2 with linespoints linecolor 'black' dashtype {} pointtype {} title {}, ", i,
                         i + 1, 4 + 2 * i, quoted(f.curves[i].title));
  }
  plots +=
      fmt::format("{0}*{1}**2*{2}**2/x with lines dashtype 2 linecolor 'gray50' title 'Theorem 2: (12 + 16/d)N²d²/M', ",
                  12 + 16 / static_cast<double>(f.d), static_cast<double>(f.N), static_cast<double>(f.d));
  const Index materialized = 4 * f.N * f.N + 4 * f.N * f.d, floor = 4 * f.N * f.d;
  plots += fmt::format("{} with lines linewidth 3 linecolor 'gray50' title '01 materialized, ideal: 4N² + 4Nd', ",
                       materialized);
  plots += fmt::format("{} with lines linewidth 3 linecolor 'black' title 'floor of a forward pass: 4Nd'", floor);
  return script + data + "plot " + plots + "\n";
}

}  // namespace flash::theory

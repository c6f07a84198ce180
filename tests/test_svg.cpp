// Drawings are well-formed XML and show what is not an ordinary number as what it is.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sim/trace/svg.hpp"
#include "tests/catch.hpp"

using namespace flash;
using namespace flash::trace;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity(),
                 not_a_number = std::numeric_limits<double>::quiet_NaN();

/// Every & begins an entity, no < or > stands for itself.
bool is_plain(std::string_view text) {
  static const std::regex entity("&(amp|lt|gt|#39|quot);.*");
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '<' || text[at] == '>') return false;
    if (text[at] == '&' && !std::regex_match(std::string(text.substr(at, 6)), entity)) return false;
  }
  return true;
}

/// Name and attributes of a tag's inside, `rect x='1' y='2'`: well-formed?
bool is_tag(std::string_view tag) {
  std::set<std::string, std::less<>> names;
  std::size_t at = tag.find(' ');
  while (at < tag.size()) {
    const std::size_t first = tag.find_first_not_of(' ', at), equals = tag.find("='", first);
    if (first == std::string_view::npos) return true;
    if (equals == std::string_view::npos) return false;
    const std::size_t end = tag.find('\'', equals + 2);
    if (end == std::string_view::npos || !is_plain(tag.substr(equals + 2, end - equals - 2))) return false;
    if (!names.emplace(tag.substr(first, equals - first)).second) return false;
    at = end + 1;
  }
  return true;
}

/// What is wrong with `text` as one XML element; empty: nothing.
std::string wrong_xml(std::string_view text) {
  std::vector<std::string> open;
  bool closed = false;
  std::size_t at = 0;
  for (std::size_t begin; (begin = text.find('<', at)) != std::string_view::npos;) {
    const std::string_view between = text.substr(at, begin - at);
    const std::size_t end = text.find('>', begin);
    if (end == std::string_view::npos) return "no end: " + std::string(text.substr(begin, 80));
    std::string tag(text.substr(begin + 1, end - begin - 1));
    at = end + 1;
    if (!is_plain(between)) return "no text: " + std::string(between);
    if (open.empty() && between.find_first_not_of(" \n") != std::string_view::npos)
      return "outside: " + std::string(between);
    if (closed) return "a second root: " + tag;
    if (tag.starts_with('/')) {
      if (open.empty() || open.back() != tag.substr(1)) return "not open: " + tag;
      open.pop_back();
    } else {
      const bool empty = tag.ends_with('/');
      if (empty) tag.pop_back();
      if (!is_tag(tag)) return "no tag: " + tag;
      if (!empty) open.push_back(tag.substr(0, tag.find(' ')));
    }
    closed = open.empty();
  }
  if (!open.empty()) return "never closed: " + open.back();
  return text.find_first_not_of(" \n", at) == std::string_view::npos
             ? ""
             : "behind the end: " + std::string(text.substr(at));
}

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t n = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

/// The cells of the path that has these attributes.
std::size_t cells(const std::string& svg, const std::string& attributes) {
  const std::size_t at = svg.find("<path " + attributes);
  return at == std::string::npos ? 0 : count(svg.substr(at, svg.find("/>", at) - at), "z");
}

const std::string hatch = "class='masked'", crosses = "class='nan";

Matrix scores() {
  return {.title = "S < \"scale\"·Q&Kᵀ's",
          .rows = 2,
          .cols = 4,
          .values = {1, -2, -infinity, 0.5, not_a_number, infinity, 0, -1e-7}};
}

}  // namespace

TEST_CASE("the checker of these tests sees broken XML") {
  CHECK(wrong_xml("<a b='1'><c/>x &lt; y</a>\n").empty());
  for (const char* broken : {"<a>", "<a></b>", "<a>x < y</a>", "<a>x & y</a>", "<a b='x&y'/>", "<a b='1' b='2'/>",
                             "<a/>x", "<a/><a/>", "<a b=1/>"})
    CHECK_FALSE(wrong_xml(broken).empty());
}

TEST_CASE("numbers in cells") {
  CHECK(number_text(-infinity) == "−∞");
  CHECK(number_text(infinity) == "∞");
  CHECK(number_text(not_a_number) == "NaN");
  CHECK(number_text(std::numeric_limits<float>::lowest()) == "lowest");
  CHECK(number_text(std::numeric_limits<double>::lowest()) == "lowest");
  CHECK(number_text(-1.2849) == "−1.28");
  CHECK(number_text(-0.0) == "0");
  CHECK(number_text(1.5e-7) == "1.5e−7");
  CHECK(number_text(-2.5e9) == "−2.5e9");
}

TEST_CASE("a matrix with everything that is not an ordinary number") {
  const std::string svg = matrix_svg(scores());
  CHECK(wrong_xml(svg) == "");
  for (const char* text : {">1<", ">−2<", ">−∞<", ">0.5<", ">NaN<", ">∞<", ">0<", ">−1e−7<"})
    CHECK(count(svg, text) >= 1);
  CHECK(cells(svg, hatch) == 1);                              // −∞
  CHECK(cells(svg, crosses) == 1);                            // NaN
  CHECK(cells(svg, "class='plus' fill-opacity='0.7'") == 1);  // ∞ alone, at full strength
  CHECK(svg.find("S &lt; &quot;scale&quot;·Q&amp;Kᵀ&#39;s") != std::string::npos);
}

TEST_CASE("masked cells are hatched whatever they hold, and unknown ones are no zeros") {
  Matrix m = scores();
  m.masked = {true, false, true, false, true, false, false, false};
  m.unknown = {false, false, false, false, false, false, true, false};
  const std::string svg = matrix_svg(m);
  CHECK(wrong_xml(svg) == "");
  CHECK(cells(svg, hatch) == 3);
  CHECK(cells(svg, crosses) == 0);  // it is masked
  CHECK(count(svg, ">·<") == 1);
}

TEST_CASE("colours are by size, and the same in two matrices that name the same largest value") {
  const auto strength = [](double value, double largest) {
    const std::string svg = matrix_svg({.title = "", .rows = 1, .cols = 1, .values = {value}, .largest = largest});
    const std::size_t at = svg.find("fill-opacity='");
    return at == std::string::npos ? "none" : svg.substr(svg.rfind("class='", at) + 7, 5) + svg.substr(at + 14, 3);
  };
  CHECK(strength(2, 2) == "plus'0.7");
  CHECK(strength(-2, 2) == "minus0.7");
  CHECK(strength(1, 4) == "plus'0.2");
  CHECK(strength(8, 2) == "plus'0.7");
  CHECK(strength(0, 2) == "none");
  CHECK(strength(std::numeric_limits<float>::lowest(), 0) == "none");
}

TEST_CASE("large matrices are colours alone, with few elements") {
  Matrix m{.title = "P", .rows = 64, .cols = 64, .tile_rows = 16, .tile_cols = 16};
  for (Index n = 0; n < 64 * 64; ++n) m.values.push_back(n % 64 > n / 64 ? -infinity : 1.0 / (1 + n / 64));
  const std::string svg = matrix_svg(m);
  CHECK(wrong_xml(svg) == "");
  CHECK(cells(svg, hatch) == 64 * 63 / 2);
  CHECK(count(svg, "−∞") == 0);
  CHECK(count(svg, "<path") < 20);
  CHECK(svg.size() < 120'000);
}

TEST_CASE("outlines: tiles read and written, each explained once") {
  Matrix m = scores();
  m.outlines = {{{0, 1}, {0, 2}, "read", Outline::Tone::read},
                {{1, 2}, {0, 2}, "read", Outline::Tone::read},
                {{0, 2}, {2, 4}, "written", Outline::Tone::written}};
  const std::string svg = matrix_svg(m);
  CHECK(wrong_xml(svg) == "");
  CHECK(count(svg, "<rect class='read'") == 3);  // two and the legend's
  CHECK(count(svg, "<rect class='written'") == 2);
  CHECK(count(svg, ">read<") == 1);
}

TEST_CASE("matrices without rows or columns") {
  CHECK(wrong_xml(matrices_svg({})) == "");
  CHECK(wrong_xml(matrix_svg({.title = "no keys", .rows = 3, .cols = 0})) == "");
  CHECK(wrong_xml(matrix_svg({.title = "no rows", .rows = 0, .cols = 3})) == "");
}

TEST_CASE("plots") {
  Plot plot{"HBM & M",
            "M [elements]",
            "HBM [elements]",
            {{"counted", {{256, 1e6}, {512, 5e5}, {1024, 2.5e5}}, true}, {"law < Θ", {{256, 1e6}, {1024, 2.5e5}}}}};
  const std::string svg = plot_svg(plot);
  CHECK(wrong_xml(svg) == "");
  // By logarithm a power law is a straight line: equal ratios are equal distances.
  std::smatch m;
  const std::regex circles(R"(d='M([0-9.]+) ([0-9.]+)m-4[^M]*M([0-9.]+) ([0-9.]+)m-4[^M]*M([0-9.]+) ([0-9.]+)m)");
  REQUIRE(std::regex_search(svg, m, circles));
  const auto at = [&](int n) { return std::stod(m.str(n)); };
  CHECK(std::abs((at(3) - at(1)) - (at(5) - at(3))) < 0.2);
  CHECK(std::abs((at(4) - at(2)) - (at(6) - at(4))) < 0.2);
  CHECK(at(1) < at(3));
  CHECK(at(2) < at(4));  // less is lower

  plot.curves[0].points.emplace_back(2048, 0);  // can't be shown by logarithm
  plot.curves[0].points.emplace_back(2048, not_a_number);
  CHECK(plot_svg(plot) == svg);
  CHECK_THROWS_AS(plot_svg(Plot{}), std::invalid_argument);
  CHECK_THROWS_AS(plot_svg(Plot{"", "", "", {{"none", {{-1, 1}}}}}), std::invalid_argument);
  CHECK(wrong_xml(plot_svg({"one point", "x", "y", {{"p", {{0, 0}}}}, false, false})) == "");
  CHECK(wrong_xml(plot_svg({"one point", "x", "y", {{"p", {{1, 1}}}}})) == "");
}

TEST_CASE("bars are as long as what they stand for") {
  const std::string svg = bars_svg({"HBM & M", {{"01 < 02", "68 elements", 68}, {"05", "17 elements", 17, 1}}});
  CHECK(wrong_xml(svg) == "");
  std::smatch m;
  const std::regex bars(R"(<rect fill='[^']+' x='([0-9.]+)' y='[0-9.]+' width='([0-9.]+)')");
  REQUIRE(std::regex_search(svg, m, bars));
  const double x = std::stod(m.str(1)), width = std::stod(m.str(2));
  const std::string rest = m.suffix();
  REQUIRE(std::regex_search(rest, m, bars));
  CHECK(std::stod(m.str(1)) == x);
  CHECK(std::abs(4 * std::stod(m.str(2)) - width) < 0.3);
  CHECK(svg.find("68 elements") != std::string::npos);
  CHECK_THROWS_AS(bars_svg({"none", {{"", "", 0}}}), std::invalid_argument);
}

TEST_CASE("timelines") {
  Timeline t{"a tile",
             "nominal cycles",
             {{"warp 0", {{"mma", 0, 8, "line <77>"}, {"mma", 8, 16, ""}, {"bar.sync", 16, 100, ""}}}, {"warp 1", {}}}};
  const std::string svg = timeline_svg(t);
  CHECK(wrong_xml(svg) == "");
  CHECK(count(svg, "<rect class='kind'") == 2);  // the two mma touch
  CHECK(svg.find("mma, 2 in a row, line &lt;77&gt;: 0 to 16") != std::string::npos);
  t.lanes[0].spans[1].begin = 12;
  CHECK(count(timeline_svg(t), "<rect class='kind'") == 3);
  CHECK(wrong_xml(timeline_svg({})) == "");
}

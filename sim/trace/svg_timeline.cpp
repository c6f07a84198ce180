#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/trace/svg.hpp"
#include "sim/trace/svg_canvas.hpp"

namespace flash::trace {

namespace {

using Anchor = Canvas::Anchor;

constexpr double top = 32, lane_height = 26, bar_height = 18, drawn_width = 700, legend_height = 18;

/// Lines of paper's colour over a kind's colour, so that kinds differ without colours, too.
constexpr const char* patterns[] = {
    "", "M0 8L8 0", "M0 4H8", "M4 0V8", "M0 0L8 8M8 0L0 8", "M2 2h2v2h-2zM6 6h2v2h-2z", "M0 0L8 8", "M0 2H8M0 6H8"};

class TimelineDrawing {
 public:
  explicit TimelineDrawing(const Timeline& t) : t_(t) {
    for (const Lane& lane : t.lanes) {
      gutter_ = std::max(gutter_, 18 + text_width(lane.name));
      for (const Span& span : lane.spans) {
        begin_ = std::min(begin_, span.begin), end_ = std::max(end_, span.end);
        if (std::ranges::find(kinds_, span.kind) == kinds_.end()) kinds_.push_back(span.kind);
      }
    }
    if (!(begin_ < end_)) begin_ = 0, end_ = 1;
  }

  std::string svg() {
    c_.text(8, 18, Anchor::start, t_.title, "title");
    add_patterns();
    double y = top;
    for (const Lane& lane : t_.lanes) draw(lane, y), y += lane_height;
    axis(y);
    const double bottom = legend(y + 50);
    return c_.svg(std::max(gutter_ + drawn_width + 40, 16 + text_width(t_.title)), bottom, t_.title);
  }

 private:
  double at(double time) const { return gutter_ + (time - begin_) / (end_ - begin_) * drawn_width; }
  std::size_t number_of(const std::string& kind) const { return std::ranges::find(kinds_, kind) - kinds_.begin(); }

  static std::string fill(std::size_t kind) { return fmt::format("url(#flash-kind-{})", kind % colours); }

  void add_patterns() {
    for (std::size_t n = 0; n < std::min(kinds_.size(), colours); ++n)
      c_.add(
          "<pattern id='flash-kind-{}' width='8' height='8' patternUnits='userSpaceOnUse'><rect width='8' height='8' "
          "fill='{}'/><path d='{}' fill='none' stroke='#fff' stroke-width='1.4' opacity='.8'/></pattern>",
          n, colour(n), patterns[n]);
  }

  /// Neighbours of one kind that are less than half a pixel apart are one bar.
  void draw(const Lane& lane, double y) {
    c_.text(gutter_ - 8, y + 14, Anchor::end, lane.name);
    c_.add("<path class='grid' d='M{:g} {:g}h{:g}'/>", gutter_, y + bar_height + 3, drawn_width);
    for (std::size_t n = 0; n < lane.spans.size();) {
      const Span& first = lane.spans[n];
      double end = first.end;
      std::size_t next = n + 1;
      for (; next < lane.spans.size() && lane.spans[next].kind == first.kind &&
             at(lane.spans[next].begin) - at(end) < 0.5;
           ++next)
        end = std::max(end, lane.spans[next].end);
      const std::string times = next - n > 1 ? fmt::format(", {} in a row", next - n) : "";
      c_.add("<rect class='kind' x='{:.1f}' y='{:g}' width='{:.1f}' height='{:g}' fill='{}'><title>{}</title></rect>",
             at(first.begin), y, std::max(at(end) - at(first.begin), 0.8), bar_height, fill(number_of(first.kind)),
             escaped(fmt::format("{}{}{}: {:g} to {:g}", first.kind, times,
                                 first.words.empty() ? "" : ", " + first.words, first.begin, end)));
      n = next;
    }
  }

  void axis(double y) {
    c_.add("<path class='thin' d='M{:g} {:g}h{:g}'/>", gutter_, y, drawn_width);
    for (int n = 0; n <= 4; ++n) {
      const double time = begin_ + (end_ - begin_) * n / 4, x = at(time);
      c_.add("<path class='thin' d='M{:g} {:g}v5'/>", x, y);
      c_.text(x, y + 19, Anchor::middle, fmt::format("{:.0f}", time));
    }
    c_.text(gutter_ + drawn_width / 2, y + 36, Anchor::middle, t_.unit, "faint");
  }

  double legend(double y) {
    double x = gutter_;
    for (std::size_t n = 0; n < kinds_.size(); ++n) {
      const double width = 40 + text_width(kinds_[n]);
      if (x + width > gutter_ + drawn_width + 30 && x > gutter_) x = gutter_, y += legend_height;
      c_.add("<rect x='{:g}' y='{:g}' width='16' height='12' fill='{}'/>", x, y - 2, fill(n));
      c_.text(x + 22, y + 8, Anchor::start, kinds_[n]);
      x += width;
    }
    return y + legend_height + 4;
  }

  const Timeline& t_;
  Canvas c_;
  std::vector<std::string> kinds_;
  double gutter_ = 40, begin_ = std::numeric_limits<double>::infinity(), end_ = -begin_;
};

}  // namespace

std::string timeline_svg(const Timeline& timeline) { return TimelineDrawing(timeline).svg(); }

}  // namespace flash::trace

#include "sim/trace/svg_canvas.hpp"

#include <array>
#include <cmath>

namespace flash::trace {

namespace {

// Ids and classes are the same in every drawing of a page, and mean the same.
constexpr std::string_view style = R"(<style>
.flash-svg{--ink:var(--flash-ink,#1f2328);--paper:var(--flash-paper,#ffffff);font:12px system-ui,'DejaVu Sans',sans-serif}
@media(prefers-color-scheme:dark){.flash-svg{--ink:var(--flash-ink,#e8eaed);--paper:var(--flash-paper,#1b1e23)}}
@media print{.flash-svg{--ink:#000;--paper:#fff}}
.flash-svg .paper{fill:var(--paper)}
.flash-svg text{fill:var(--ink)}
.flash-svg .title{font-weight:600}
.flash-svg .faint{opacity:.7}
.flash-svg .thin,.flash-svg .grid,.flash-svg .thick{stroke:var(--ink);fill:none}
.flash-svg .grid{opacity:.22}
.flash-svg .thick{stroke-width:2}
.flash-svg .fine{stroke:var(--ink);fill:none;stroke-width:.8;opacity:.55}
.flash-svg .masked{fill:url(#flash-masked)}
.flash-svg .nan{fill:url(#flash-nan)}
.flash-svg .small{fill:var(--ink)}
.flash-svg .minus{fill:#2f7ed8}
.flash-svg .plus{fill:#e66100}
.flash-svg .read{stroke:#2f7ed8;fill:none;stroke-width:3}
.flash-svg .written{stroke:#e66100;fill:none;stroke-width:3;stroke-dasharray:6 3}
.flash-svg .kind{stroke:var(--paper);stroke-width:.5}
</style>
<defs>
<pattern id='flash-masked' width='6' height='6' patternUnits='userSpaceOnUse' patternTransform='rotate(45)'><path class='fine' d='M0 0V6'/></pattern>
<pattern id='flash-nan' width='6' height='6' patternUnits='userSpaceOnUse'><path class='fine' d='M0 0L6 6M6 0L0 6'/></pattern>
</defs>)";

constexpr std::string_view anchors[] = {"start", "middle", "end"};

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '\'': out += "&#39;"; break;
      case '"': out += "&quot;"; break;
      default: out += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
    }
  }
  return out;
}

double text_width(std::string_view text) {
  double width = 0;
  for (const char c : text)
    if ((static_cast<unsigned char>(c) & 0xC0) != 0x80) width += 7;  // characters, not bytes
  return width;
}

std::string_view colour(std::size_t n) {
  constexpr std::array all = {"#2f7ed8", "#e66100", "#1b9e77", "#9b6fd0", "#8a8f98", "#c2487f", "#a48a00", "#0097a7"};
  static_assert(all.size() == colours);
  return all[n % colours];
}

void Canvas::text(double x, double y, Anchor anchor, std::string_view words, std::string_view classes) {
  add("<text x='{:g}' y='{:g}' text-anchor='{}'{}>{}</text>", x, y, anchors[static_cast<int>(anchor)],
      classes.empty() ? "" : fmt::format(" class='{}'", classes), escaped(words));
}

std::string Canvas::svg(double width, double height, std::string_view label) const {
  return fmt::format(
      "<svg xmlns='http://www.w3.org/2000/svg' class='flash-svg' width='{0:g}' height='{1:g}' viewBox='0 0 {0:g} "
      "{1:g}' "
      "role='img' aria-label='{2}'>\n{3}\n<rect class='paper' fill='#fff' width='{0:g}' height='{1:g}'/>\n{4}</svg>\n",
      std::ceil(width), std::ceil(height), escaped(label), style, body_);
}

}  // namespace flash::trace

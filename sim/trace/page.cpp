#include "sim/trace/page.hpp"

#include <fmt/format.h>

#include <fstream>
#include <sstream>
#include <stdexcept>

namespace flash::trace {
namespace {

std::string source(const std::string& name) {
  const std::string path = fmt::format("{}/sim/trace/page/{}", FLASH_SOURCE_DIR, name);
  std::ifstream in(path);
  std::ostringstream text;
  if (!(text << in.rdbuf()))
    throw std::runtime_error(
        fmt::format("a stepper page was asked for, but {} is not there; take the whole project", path));
  return text.str();
}

void replace(std::string& text, std::string_view place, const std::string& with) {
  text.replace(text.find(place), place.size(), with);
}

/// page.html says which scripts it has, in their order: "<!-- scripts: a.js b.js -->".
std::string scripts(const std::string& html) {
  constexpr std::string_view mark = "<!-- scripts:";
  const std::size_t begin = html.find(mark) + mark.size();
  std::istringstream names(html.substr(begin, html.find("-->", begin) - begin));
  std::string all;
  for (std::string name; names >> name;) all += source(name);
  return all;
}

/// Without "<", so that no text in a trace can end its script element.
std::string embedded(const std::vector<Json>& traces) {
  std::string text;
  for (const char c : Json(traces).dump()) c == '<' ? text += "\\u003c" : text += c;
  return text;
}

}  // namespace

std::string page(const std::vector<Json>& traces) {
  std::string html = source("page.html");
  const std::string script = scripts(html);
  replace(html, "/*STYLE*/", source("style.css"));
  replace(html, "/*SCRIPT*/", script);
  replace(html, "TRACES", embedded(traces));
  return html;
}

}  // namespace flash::trace

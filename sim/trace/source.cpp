#include "sim/trace/source.hpp"

#include <algorithm>
#include <fstream>

namespace flash::trace {
namespace {

constexpr std::string_view banner_mark = "// ---- ";

/// The indentation of a line; of an empty one as deep as can be.
std::size_t indentation(const std::string& line) { return std::min(line.find_first_not_of(' '), line.size()); }

}  // namespace

SourceFiles::File& SourceFiles::file(const std::string& path) {
  const auto known = std::ranges::find(files_, path, &File::path);
  if (known != files_.end()) return *known;
  File& f = files_.emplace_back(File{path, {}, {}});
  std::ifstream in(std::string(FLASH_SOURCE_DIR) + "/" + path);
  std::string banner;
  std::size_t depth = 0;  // a banner ends where its block does
  for (std::string line; std::getline(in, line);) {
    if (const std::size_t at = line.find(banner_mark); at != line.npos) {
      banner = line.substr(at + banner_mark.size());
      depth = at;
    } else if (!line.empty() && indentation(line) < depth) {
      banner.clear();
    }
    f.lines.push_back(line);
    f.banners.push_back(banner);
  }
  return f;
}

Json SourceFiles::at(const std::string& path, unsigned line) {
  const File& f = file(path);
  return {&f - files_.data(), line};
}

std::string SourceFiles::banner(const std::string& path, unsigned line) {
  const File& f = file(path);
  return line >= 1 && line <= f.banners.size() ? f.banners[line - 1] : "";
}

Json SourceFiles::json() const {
  Json all = Json::array();
  for (const File& f : files_) all.push_back({{"path", f.path}, {"lines", f.lines}});
  return all;
}

}  // namespace flash::trace

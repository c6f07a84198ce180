// The source files of a trace: their lines, and the lesson's banners in them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace flash::trace {

using Json = nlohmann::ordered_json;

class SourceFiles {
 public:
  /// [file, line] of the trace. `path` is seen from the project's root.
  Json at(const std::string& path, unsigned line);
  /// The banner above the line, "scores" of "// ---- scores"; nothing outside of all.
  std::string banner(const std::string& path, unsigned line);
  /// All files so far: path and lines.
  Json json() const;

 private:
  struct File {
    std::string path;
    std::vector<std::string> lines, banners;
  };
  File& file(const std::string& path);
  std::vector<File> files_;
};

}  // namespace flash::trace

#include "app/ledger_json.hpp"

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

namespace flash::app {
namespace {

using Json = nlohmann::ordered_json;

/// The lines of a file of this project, without indentation.
std::vector<std::string> text_of(const std::string& file) {
  std::vector<std::string> lines;
  std::ifstream stream(FLASH_SOURCE_DIR "/" + file);
  for (std::string line; std::getline(stream, line);) {
    line.erase(0, line.find_first_not_of(' '));
    lines.push_back(line);
  }
  return lines;
}

Json by_tensor_json(const std::map<std::string, Index>& sums) {
  Json json = Json::object();
  for (const auto& [tensor, n] : sums) json[tensor] = n;
  return json;
}

}  // namespace

std::vector<SourceLine> source_lines(const sim::Ledger& ledger) {
  std::map<std::string, std::vector<std::string>> texts;
  std::vector<SourceLine> lines;
  for (const sim::LedgerLine& l : ledger.lines()) {  // in the order of file and line
    if (lines.empty() || lines.back().file != l.file || lines.back().line != l.line) {
      if (!texts.contains(l.file)) texts[l.file] = text_of(l.file);
      const auto& text = texts[l.file];
      lines.push_back({l.file, l.line, l.line <= text.size() ? text[l.line - 1] : "", 0, 0});
    }
    if (l.access != sim::Access::write) lines.back().read += l.elements;
    if (l.access != sim::Access::read) lines.back().write += l.elements;
  }
  return lines;
}

std::string source_text(const std::string& file, Index line) {
  const std::vector<std::string> text = text_of(file);
  return line >= 1 && line <= static_cast<Index>(text.size()) ? text[static_cast<std::size_t>(line - 1)] : "";
}

Json hbm_json(const sim::Ledger& ledger) {
  return {{"read", by_tensor_json(ledger.by_tensor(sim::Access::read))},
          {"write", by_tensor_json(ledger.by_tensor(sim::Access::write))},
          {"rmw", by_tensor_json(ledger.by_tensor(sim::Access::rmw))},
          {"elements", ledger.elements()},
          {"bytes", ledger.bytes()},
          {"bytes_by_tensor", by_tensor_json(ledger.bytes_by_tensor())}};
}

Json extra_hbm_json(const sim::Ledger& ledger) {
  return {{"elements", ledger.extra_elements()}, {"bytes", ledger.extra_bytes()}};
}

Json ledger_json(const sim::Ledger& ledger, Index sram_bytes) {
  Json lines = Json::array();
  for (const SourceLine& l : source_lines(ledger))
    lines.push_back({{"file", l.file}, {"line", l.line}, {"text", l.text}, {"read", l.read}, {"write", l.write}});
  return {
      {"hbm", hbm_json(ledger)},
      {"sram",
       {{"capacity_bytes", sram_bytes},
        {"peak_bytes", ledger.sram_peak().bytes},
        {"read", ledger.sram().read},
        {"write", ledger.sram().write}}},
      {"extra_hbm", extra_hbm_json(ledger)},
      {"flops", {{"matmul", ledger.flops().matmul}, {"exp", ledger.flops().exp}, {"other", ledger.flops().other}}},
      {"lines", lines},
  };
}

}  // namespace flash::app

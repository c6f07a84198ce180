#include "notebooks-cling/library/ledgers.hpp"

#include <fmt/format.h>

#include <map>
#include <set>

#include "app/closed_form_json.hpp"
#include "app/ledger_json.hpp"
#include "app/output.hpp"
#include "app/stage_name.hpp"
#include "app/table.hpp"

namespace flash::notebook {

namespace {

using app::grouped;
using app::Table;
using sim::Access;

/// Of a project's file as compilers name it: from the root.
std::string from_root(const std::string& file) {
  const std::string root = FLASH_SOURCE_DIR "/";
  return file.starts_with(root) ? file.substr(root.size()) : file;
}

/// A source line without indentation and without the comment at its end.
std::string statement(const std::string& line) {
  const std::string code = line.substr(0, line.find("//"));
  const std::size_t first = code.find_first_not_of(' ');
  return first == std::string::npos ? "" : code.substr(first, code.find_last_not_of(' ') - first + 1);
}

Index at(const std::map<std::string, Index>& sums, const std::string& tensor) {
  const auto found = sums.find(tensor);
  return found == sums.end() ? 0 : found->second;
}

const char* verb(sim::EventKind kind) {
  return kind == sim::EventKind::load ? "load" : kind == sim::EventKind::store ? "store" : "add to";
}

}  // namespace

std::string by_tensor(const sim::Ledger& ledger) {
  const auto read = ledger.by_tensor(Access::read), write = ledger.by_tensor(Access::write),
             rmw = ledger.by_tensor(Access::rmw);
  Table table;
  table.column("HBM", "", Table::Align::left).column("read", "elements").column("written", "elements");
  if (!rmw.empty()) table.column("added to", "elements");
  table.column("moved", "bytes");
  for (const auto& [tensor, bytes] : ledger.bytes_by_tensor()) {
    std::vector<std::string> cells{tensor, grouped(at(read, tensor)), grouped(at(write, tensor))};
    if (!rmw.empty()) cells.push_back(grouped(at(rmw, tensor)));
    cells.push_back(grouped(bytes));
    table.row(cells);
  }
  return table.text() + fmt::format("together {} elements, {} bytes; SRAM at its fullest {} bytes; {} exps\n",
                                    grouped(ledger.elements()), grouped(ledger.bytes()),
                                    grouped(ledger.sram_peak().bytes), grouped(ledger.flops().exp));
}

std::string by_line(const sim::Ledger& ledger, const LineOf& line_of) {
  Table table;
  table.column("read", "elements").column("written", "elements").column("line").column("", "", Table::Align::left);
  std::string file;
  for (const app::SourceLine& l : app::source_lines(ledger)) {
    if (from_root(l.file) != file) table.row({"", "", "", from_root(l.file)});
    file = from_root(l.file);
    const std::string text = line_of(l.file, l.line);
    table.row({grouped(l.read), grouped(l.write), std::to_string(l.line),
               statement(text.empty() ? app::source_text(file, l.line) : text)});
  }
  return table.text();
}

std::string against_law(const sim::Ledger& ledger, const std::string& program, const Inputs& inputs,
                        const Options& options) {
  const std::size_t blank = program.find(' ');
  const Stage& stage = app::stage_named(program.substr(0, blank));
  const bool backward = blank != std::string::npos && program.substr(blank + 1) == "backward";
  Pass pass{ledger, {}};
  if (options.br > 0) pass.blocks = Blocks{options.br, options.bc};
  const app::Law law = app::law_of(pass, (backward ? stage.backward_facts : stage.forward_facts).law, inputs, options);
  if (!law.form) return law.why + "\n";
  const Index formula = law.form->traffic.elements();
  return fmt::format("counted  {} elements\nformula  {} = {} elements\n{}\n", grouped(ledger.elements()),
                     law.form->text, grouped(formula), law.equal ? "equal, tensor by tensor" : "NOT equal");
}

void Moves::add(const sim::Event& e) {
  using enum sim::EventKind;
  if (e.kind != load && e.kind != store && e.kind != accumulate) return;
  const Index elements = e.rows.size() * e.cols.size() * (e.kind == accumulate ? 2 : 1);
  moves_.push_back({e.kind, e.name, e.where.file_name(), e.rows, static_cast<Index>(e.where.line()), elements,
                    elements * bytes_per_element(e.format)});
}

std::string Moves::text(const LineOf& line_of) {
  Table table;
  table.column("HBM", "", Table::Align::left).column("rows", "", Table::Align::left).column("moved", "elements");
  table.column("so far", "elements").column("so far", "bytes").column("by", "", Table::Align::left);
  for (; told_ < moves_.size(); ++told_) {
    const Move& m = moves_[told_];
    elements_ += m.elements, bytes_ += m.bytes;
    const std::string text = line_of(m.file, m.line);
    table.row({fmt::format("{} {}", verb(m.kind), m.tensor), fmt::format("{}–{}", m.rows.begin, m.rows.end - 1),
               grouped(m.elements), grouped(elements_), grouped(bytes_),
               statement(text.empty() ? app::source_text(from_root(m.file), m.line) : text)});
  }
  return table.text();
}

}  // namespace flash::notebook

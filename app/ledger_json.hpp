// The ledger of one pass for people and programs: JSON as docs/schema/run.schema.json has it, and the view by source
// line.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "sim/memory/ledger.hpp"

namespace flash::app {

/// What one source line moved [elements]; a read-modify-write is in both numbers.
struct SourceLine {
  std::string file;  ///< from the project's root
  Index line = 0;
  std::string text;  ///< the line itself, without indentation; empty where the file is gone
  Index read = 0, write = 0;
};

/// By file and line. The sum of all reads and writes is the ledger's elements().
std::vector<SourceLine> source_lines(const sim::Ledger& ledger);

/// read, write, rmw, elements, bytes, bytes_by_tensor.
nlohmann::ordered_json hbm_json(const sim::Ledger& ledger);
/// elements, bytes.
nlohmann::ordered_json extra_hbm_json(const sim::Ledger& ledger);

/// One line of a file of this project, without indentation; empty where there is none.
std::string source_text(const std::string& file, Index line);

/// hbm, sram, extra_hbm, flops, lines. Elements unless the key says bytes; `sram_bytes`: capacity of a worker's SRAM.
nlohmann::ordered_json ledger_json(const sim::Ledger& ledger, Index sram_bytes);

}  // namespace flash::app

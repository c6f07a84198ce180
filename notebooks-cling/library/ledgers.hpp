// The ledger as text: by tensor, by source line, against its closed form, and move by move.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/memory/event.hpp"
#include "stages/common/inputs.hpp"

namespace flash::notebook {

/// The text of a source line; empty where there is none. Files are named as compilers do: a path, or a cell.
using LineOf = std::function<std::string(const std::string& file, Index line)>;

/// Elements and bytes by tensor, their sum, and the SRAM's peak.
std::string by_tensor(const sim::Ledger& ledger);

/// What each source line moved, in front of the line itself.
std::string by_line(const sim::Ledger& ledger, const LineOf& line_of);

/// The closed form of a stage's traffic, "03" or "04 backward", beside the count: equal tensor by tensor or not. The
/// blocks are those of `options`; @throws Refused for a stage that there isn't.
std::string against_law(const sim::Ledger& ledger, const std::string& program, const Inputs& inputs,
                        const Options& options);

/// Every move between HBM and SRAM of a run: who, how many elements, how many bytes, which line.
class Moves {
 public:
  void add(const sim::Event& event);

  /// Those since the last call, with the running sum of all.
  std::string text(const LineOf& line_of);

 private:
  struct Move {
    sim::EventKind kind;
    std::string tensor, file;
    sim::Range rows;
    Index line, elements, bytes;
  };
  std::vector<Move> moves_;
  std::size_t told_ = 0;
  Index elements_ = 0, bytes_ = 0;
};

}  // namespace flash::notebook

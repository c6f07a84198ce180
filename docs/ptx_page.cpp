// Prints docs/ptx.md: the instructions of cuda/ptx with their operands' layouts, drawn from the map that the virtual
// GPU executes (cuda/ptx/layout.hpp). What is said about a wrapper is its own comment.
#include <fmt/format.h>

#include <fstream>
#include <functional>
#include <iostream>
#include <optional>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "cuda/ptx/layout.hpp"

namespace layout = flash::ptx::layout;

namespace {

constexpr const char* isa = "https://docs.nvidia.com/cuda/parallel-thread-execution/#";

// ---- drawings

using Map = std::function<layout::Element(int lane, int i)>;

/// A matrix operand of a warp: where element i of a lane is, of `elements` of them, `halves` of them in a register.
struct Operand {
  int rows, columns, elements, halves;
  const char* registers;  ///< "a": its registers are a0, a1, …
  Map at;
};

/// Who holds an element.
struct Holder {
  int lane, i;
};

Holder holder_of(const Operand& o, int row, int column) {
  std::optional<Holder> found;
  for (int lane = 0; lane < 32; ++lane)
    for (int i = 0; i < o.elements; ++i) {
      const layout::Element e = o.at(lane, i);
      if (e.row != row || e.col != column) continue;
      if (found) throw std::logic_error("two lanes hold one element");
      found = Holder{lane, i};
    }
  if (!found) throw std::logic_error("nobody holds an element");
  return *found;
}

std::string register_text(const Operand& o, Holder h) {
  return fmt::format("T{} {}{}", h.lane, o.registers, h.i / o.halves);
}

/// Two neighbours of which `first` is in the lower half of a register and `second` in the upper one.
bool share_register(Holder first, Holder second) {
  return first.lane == second.lane && first.i % 2 == 0 && second.i == first.i + 1;
}

/// The grid of the operand: each cell names the lane and the register. Neighbours in one register share a cell.
std::string drawing(const Operand& o) {
  const bool pairs_in_row = o.halves == 2 && share_register(holder_of(o, 0, 0), holder_of(o, 0, 1));
  const bool pairs_in_column = o.halves == 2 && !pairs_in_row;
  const int down = pairs_in_column ? 2 : 1, across = pairs_in_row ? 2 : 1;
  const auto numbers = [](int first, int step) {
    return step == 1 ? std::to_string(first) : fmt::format("{},{}", first, first + 1);
  };
  std::string text = "```text\n" + std::string(8, ' ');
  const auto end_line = [&] {
    while (text.back() == ' ') text.pop_back();
    text += '\n';
  };
  for (int column = 0; column < o.columns; column += across) text += fmt::format("{:<8}", numbers(column, across));
  end_line();
  for (int row = 0; row < o.rows; row += down) {
    text += fmt::format("{:>5}   ", numbers(row, down));
    for (int column = 0; column < o.columns; column += across) {
      const Holder first = holder_of(o, row, column);
      if (o.halves == 2 && !share_register(first, holder_of(o, row + down - 1, column + across - 1)))
        throw std::logic_error("a register holds no neighbours");
      text += fmt::format("{:<8}", register_text(o, first));
    }
    end_line();
  }
  return text + "```\n";
}

/// What the page says about layouts that are alike holds, or there is no page.
void require_alike() {
  for (int lane = 0; lane < 32; ++lane)
    for (int i = 0; i < 2; ++i) {
      const layout::Element plain = layout::ldmatrix(lane, i), transposed = layout::ldmatrix_trans(lane, i);
      for (int r = 0; r < 4; ++r) {
        const layout::Element a = layout::mma_a(lane, 2 * r + i);
        if (a.row != plain.row + 8 * (r % 2) || a.col != plain.col + 8 * (r / 2))
          throw std::logic_error("A's quarters do not look like matrices of ldmatrix");
      }
      for (int r = 0; r < 2; ++r) {
        const layout::Element b = layout::mma_b(lane, 2 * r + i);
        if (b.row != transposed.row + 8 * r || b.col != transposed.col)
          throw std::logic_error("B's halves do not look like transposed matrices of ldmatrix");
        if (b.row != plain.col + 8 * r || b.col != plain.row)
          throw std::logic_error("B's transposed halves do not look like matrices of ldmatrix");
      }
    }
}

std::string mma_drawings() {
  std::string text;
  for (const int k : {8, 16}) {
    text += fmt::format(
        "\n### A [16, {0}] of m16n8k{0}\n\nTwo neighbours of a row are in one register, the left one in its lower "
        "half.\n\n",
        k);
    text += drawing({16, k, k / 2, 2, "a", layout::mma_a});
    text += fmt::format(
        "\n### B [{0}, 8] of m16n8k{0}\n\nTwo neighbours of a column are in one register, the upper one in its lower "
        "half.\n\n",
        k);
    text += drawing({k, 8, k / 4, 2, "b", layout::mma_b});
  }
  text += "\n### C and D [16, 8] of both, fp32\n\n";
  return text + drawing({16, 8, 4, 1, "c", layout::mma_c});
}

std::string ldmatrix_drawings() {
  require_alike();
  std::string text = "\n### Who gives the addresses\n\n```text\n";
  for (int m = 0; m < 4; ++m)
    text += fmt::format("matrix {0}: its row i at the address of lane {1}; it arrives in r{0}\n", m,
                        m == 0 ? "     i" : fmt::format("{:>2} + i", 8 * m));
  text +=
      "```\n\nx2 brings matrices 0 and 1, x1 matrix 0.\n\n### Where a matrix arrives\n\nHere matrix 0, in r0; the "
      "others arrive in the same way in their registers.\n\n";
  text += drawing({8, 8, 2, 2, "r", layout::ldmatrix});
  text +=
      "\nSo are A's quarters laid out for mma: top left, bottom left, top right and bottom right as matrices 0 to 3 "
      "make r0 to r3\na0 to a3. And B's halves, when B is stored by columns, as K is for Q·Kᵀ.\n\n"
      "### Where it arrives with .trans\n\n";
  text += drawing({8, 8, 2, 2, "r", layout::ldmatrix_trans});
  return text + "\nSo are B's halves laid out for mma, when B is stored by rows, as V is for P·V.\n";
}

// ---- wrappers, as their headers tell of them

struct Family {
  const char* file;
  std::vector<std::string> sections;  ///< of the PTX ISA, as its links name them
  std::function<std::string()> drawings;
};

struct Wrapper {
  std::string name, comment, signature, instruction, arch;
};

std::string contents(const std::string& file) {
  std::ifstream in(file);
  if (!in) throw std::runtime_error(file + " can't be read");
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

/// The last "sm_75" of a text, or nothing.
std::string arch_in(const std::string& text) {
  const std::regex pattern("sm_[0-9]+a?");
  std::string found;
  for (std::sregex_iterator i(text.begin(), text.end(), pattern), end; i != end; ++i) found = i->str();
  return found;
}

/// "ldmatrix.sync.aligned.m8n8.x4.shared.b16" of an asm statement.
std::string instruction_in(const std::string& body) {
  std::smatch found;
  return std::regex_search(body, found, std::regex("asm[^\"]*\"([a-z0-9_.:]+)")) ? found[1].str() : "";
}

std::string head_comment(const std::string& text) {
  std::istringstream lines(text);
  std::string head;
  for (std::string line; std::getline(lines, line) && line.starts_with("// ");) head += line.substr(3) + "\n";
  return head;
}

std::vector<Wrapper> wrappers(const std::string& text) {
  const std::regex pattern(
      "((?:/// [^\n]*\n)+)((?:template[^\n]*\n)?FLASH_PTX ([^\n]*?(\\w+)\\([^{]*)) \\{\n([^]*?)\n\\}\n");
  const std::string arch = arch_in(head_comment(text));
  std::vector<Wrapper> all;
  for (std::sregex_iterator i(text.begin(), text.end(), pattern), end; i != end; ++i) {
    Wrapper w;
    w.comment = std::regex_replace((*i)[1].str(), std::regex("(^|\n)/// "), "$1");
    w.signature = std::regex_replace((*i)[2].str(), std::regex("FLASH_PTX |\\[\\[maybe_unused\\]\\] "), "");
    w.name = (*i)[4];
    w.instruction = instruction_in((*i)[5]);
    const std::string own = arch_in(w.comment);
    w.arch = own.empty() ? arch : own;
    w.comment = std::regex_replace(w.comment, std::regex(" sm_[0-9]+a?\\."), "");
    all.push_back(w);
  }
  return all;
}

/// Text in which Markdown finds nothing to do.
std::string plain(const std::string& text) { return std::regex_replace(text, std::regex("\\*|__"), "\\$&"); }

std::string since(const std::string& arch) { return arch.empty() ? "any" : arch + " and newer"; }

std::string section(const Family& family) {
  const std::string text = contents(std::string(FLASH_SOURCE_DIR "/cuda/ptx/") + family.file);
  std::string head = head_comment(text);
  std::string page = fmt::format("\n## [{0}](../cuda/ptx/{0})\n\n{1}", family.file, plain(head)), links;
  for (const std::string& section : family.sections)
    links += fmt::format("{}[{}]({}{})", links.empty() ? "\nPTX ISA: " : " · ",
                         std::regex_replace(section, std::regex("^.*-(instructions|matrix)-"), ""), isa, section);
  page += links.empty() ? "" : links + "\n";
  for (const Wrapper& w : wrappers(text)) {
    page += fmt::format("\n**`{}`**", w.name);
    if (!w.instruction.empty()) page += fmt::format(" · `{}`", w.instruction);
    page += fmt::format(" · {}\n\n```cpp\n{}\n```\n\n{}", since(w.arch), w.signature, plain(w.comment));
  }
  if (family.drawings) page += family.drawings();
  return page;
}

}  // namespace

int main() {
  const std::string moving = "data-movement-and-conversion-instructions-",
                    communicating = "parallel-synchronization-and-communication-instructions-";
  const std::vector<Family> families = {
      {"ldmatrix.hpp", {"warp-level-matrix-instructions-ldmatrix"}, ldmatrix_drawings},
      {"mma.hpp",
       {"warp-level-matrix-instructions-mma", "warp-level-matrix-fragment-mma-1688",
        "warp-level-matrix-fragment-mma-16816-float"},
       mma_drawings},
      {"cp_async.hpp", {moving + "cp-async", moving + "cp-async-commit-group", moving + "cp-async-wait-group"}, {}},
      {"barrier.hpp", {communicating + "bar"}, {}},
      {"reduce.hpp", {communicating + "red"}, {}},
      {"math.hpp", {"floating-point-instructions-ex2", moving + "cvt"}, {}},
      {"shared_memory.hpp", {}, {}},
      {"debug.hpp", {}, {}},
  };
  std::cout
      << "<!-- Made by docs/ptx_page.cpp; `bash tests/test_ptx_page.sh --update` makes it again. -->\n"
         "# The instructions of `flash::ptx`\n\n"
         "One function for each PTX instruction that a kernel may use: on a GPU it is that instruction, for the host's "
         "compiler a\ncall into the virtual GPU. In the drawings `T5 a1` is register a1 of lane 5: each cell says who "
         "holds the element. They\nare drawn from [layout.hpp](../cuda/ptx/layout.hpp), the map that the virtual GPU "
         "executes and that is compared with\nsilicon (tests/test_vgpu_conformance.cpp).\n";
  for (const Family& family : families) std::cout << section(family);
}

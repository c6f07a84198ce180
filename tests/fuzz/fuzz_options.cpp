// The option parser takes any words, one a line: they name a problem or are refused in a sentence. Files are not read.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "app/run_options.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::vector<std::string> words;
  std::istringstream lines(std::string(reinterpret_cast<const char*>(data), size));
  for (std::string word; std::getline(lines, word);) words.push_back(word);
  std::vector<std::string> reversed(words.rbegin(), words.rend());  // as CLI11 wants them

  CLI::App command("run");
  flash::app::RunOptions typed;
  flash::app::add_run_options(command, typed);
  try {
    command.parse(reversed);
    for (std::string* file : {&typed.q, &typed.k, &typed.v, &typed.dout, &typed.alibi, &typed.mask, &typed.block_mask})
      file->clear();
    typed.count_only = true;
    const flash::app::Asked asked = flash::app::asked(typed);
    const flash::Shape& s = asked.inputs.shape;
    if (!asked.stage || s.heads < 1 || s.kv_heads < 1 || s.heads % s.kv_heads != 0 || s.d < 1) std::abort();
  } catch (const CLI::Error&) {
  } catch (const flash::Refused& refused) {
    if (refused.what()[0] == '\0') std::abort();
  }
  return 0;
}

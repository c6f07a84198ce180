// Prints the folder it runs in and its arguments; `exit N` ends with status N.
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string_view>

int main(int argc, char** argv) {
  std::cout << std::filesystem::current_path().string() << '\n';
  for (int i = 1; i < argc; ++i) std::cout << '<' << argv[i] << ">\n";
  return argc == 3 && std::string_view(argv[1]) == "exit" ? std::atoi(argv[2]) : 0;
}

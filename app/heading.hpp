// Options under one heading of a command's help. Numbers come as text: the whole of it must be one, and it must fit.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "sim/memory/eigen.hpp"

namespace flash::app {

/// All of `text` as a whole number or a finite one. Throws Refused naming `option`.
Index parse_index(std::string_view option, std::string_view text);
std::uint64_t parse_seed(std::string_view option, std::string_view text);
double parse_real(std::string_view option, std::string_view text);

class Heading {
 public:
  Heading(CLI::App& command, const char* title) : command_(command), title_(title) {}

  template <class Whole>  // Index, or an optional of it
  void whole(const std::string& name, Whole& to, const char* help) const {
    option(name, "INT", help, [&to, name](const std::string& s) { to = parse_index(name, s); });
  }
  template <class Seed>  // std::uint64_t, or an optional of it
  void seed(const std::string& name, Seed& to, const char* help) const {
    option(name, "INT", help, [&to, name](const std::string& s) { to = parse_seed(name, s); });
  }
  template <class Real>  // double, or an optional of it
  void real(const std::string& name, Real& to, const char* help) const {
    option(name, "X", help, [&to, name](const std::string& s) { to = parse_real(name, s); });
  }
  /// An empty text is refused.
  void text(const std::string& name, std::string& to, const char* type, const char* help) const;
  void flag(const std::string& name, bool& to, const char* help) const {
    command_.add_flag(name, to, help)->group(title_);
  }
  void option(const std::string& name, const char* type, const char* help,
              const std::function<void(const std::string&)>& take) const {
    command_.add_option_function<std::string>(name, take, help)->type_name(type)->group(title_);
  }

 private:
  CLI::App& command_;
  const char* title_;
};

}  // namespace flash::app

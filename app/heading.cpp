#include "app/heading.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "stages/common/options.hpp"

namespace flash::app {
namespace {

template <class Whole>
Whole parse_whole(std::string_view option, std::string_view text) {
  Whole value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range)
    throw Refused(
        fmt::format("{} was given \"{}\", which does not fit in 64 bits; give a smaller number", option, text));
  if (error != std::errc() || end != text.data() + text.size())
    throw Refused(fmt::format("{} was given \"{}\", which is not a {}; give a number in digits", option, text,
                              std::is_signed_v<Whole> ? "whole number" : "whole number from 0 on"));
  return value;
}

}  // namespace

Index parse_index(std::string_view option, std::string_view text) { return parse_whole<Index>(option, text); }

std::uint64_t parse_seed(std::string_view option, std::string_view text) {
  return parse_whole<std::uint64_t>(option, text);
}

double parse_real(std::string_view option, std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
    throw Refused(
        fmt::format("{} was given \"{}\", which is not a finite number; give one such as 0.125", option, text));
  return value;
}

void Heading::text(const std::string& name, std::string& to, const char* type, const char* help) const {
  option(name, type, help, [&to, name](const std::string& s) {
    if (s.empty()) throw Refused(fmt::format("{} was given nothing; give a value or leave the option out", name));
    to = s;
  });
}

}  // namespace flash::app

// .npy files, read and written: stages/common/npy.hpp.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "stages/common/npy.hpp"
#include "tests/catch.hpp"
#include "tests/support/drawn.hpp"

namespace fs = std::filesystem;
using namespace flash;
using Values = std::vector<double>;

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

Bytes bytes_of(const std::string& text) {
  Bytes bytes;
  for (const char c : text) bytes.push_back(static_cast<std::byte>(c));
  return bytes;
}

/// A file of version `major` with this header and data.
Bytes file(int major, const std::string& header, const std::string& data) {
  std::string text = "\x93NUMPY";
  text += static_cast<char>(major);
  text += '\0';
  for (int byte = 0; byte < (major == 1 ? 2 : 4); ++byte) text += static_cast<char>(header.size() >> (8 * byte) & 0xFF);
  return bytes_of(text + header + data);
}

std::string header(const std::string& descr, const std::string& shape, const std::string& fortran = "False") {
  return "{'descr': '" + descr + "', 'fortran_order': " + fortran + ", 'shape': " + shape + ", }\n";
}

const std::string kOneAndMinusTwo("\0\0\x80\x3f\0\0\0\xc0", 8);  // 1 and −2 as <f4

fs::path fresh_folder(const std::string& name) {
  const fs::path folder = fs::temp_directory_path() / ("flash_test_common_" + name);
  fs::remove_all(folder);
  fs::create_directories(folder);
  return folder;
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

TEST_CASE("what is written is read again") {
  const Values data{0, 1, -2.5, 0.333251953125, 6, -7};
  for (const char* descr : {"<f2", "<f4", "<f8"}) {
    const Array array = parse_npy(npy_bytes({2, 3}, data, descr), "a.npy");
    CHECK(array.shape == std::vector<Index>{2, 3});
    CHECK(array.descr == descr);
    CHECK(array.data == data);  // all six fit in fp16
  }
  CHECK(parse_npy(npy_bytes({3}, Values{0, 1, 255}, "|u1"), "").data == Values{0, 1, 255});
  CHECK(parse_npy(npy_bytes({3}, Values{0, 1, 7}, "|b1"), "").data == Values{0, 1, 1});
  CHECK(parse_npy(npy_bytes({2}, Values{-3, 2147483647}, "<i4"), "").data == Values{-3, 2147483647});
  CHECK(parse_npy(npy_bytes({2, 0, 3}, {}, "<f4"), "").shape == std::vector<Index>{2, 0, 3});
  CHECK(std::isnan(parse_npy(npy_bytes({1}, Values{kNaN}, "<f4"), "").data[0]));
  CHECK(npy_bytes({2, 3}, data, "<f4").size() % 64 == 6 * 4);  // data starts at a multiple of 64

  CHECK_THROWS_AS(npy_bytes({2, 2}, data, "<f4"), Refused);
  CHECK_THROWS_AS(npy_bytes({6}, data, "<c8"), Refused);
  CHECK_THROWS_AS(npy_bytes({6}, data, "|u1"), Refused);  // −2.5
  CHECK_THROWS_AS(npy_bytes({}, Values{1}, "<f4"), Refused);
}

TEST_CASE("files of other writers") {
  for (const int version : {1, 2, 3}) {
    const Array array = parse_npy(file(version, header("<f4", "(2,)"), kOneAndMinusTwo), "a.npy");
    CHECK(array.shape == std::vector<Index>{2});
    CHECK(array.data == Values{1, -2});
  }
  const std::string other_order = "{\"shape\":(1,2),\"descr\":\"<f4\",\"fortran_order\":False}";
  CHECK(parse_npy(file(1, other_order, kOneAndMinusTwo), "a.npy").shape == std::vector<Index>{1, 2});
  const std::string minus_two("\xfe\xff\xff\xff\xff\xff\xff\xff", 8);
  CHECK(parse_npy(file(1, header("<i8", "(1,)"), minus_two), "a.npy").data == Values{-2});
}

TEST_CASE("bad files are refused in a sentence that names the file") {
  struct Bad {
    Bytes bytes;
    const char* word;
  };
  const std::string data = kOneAndMinusTwo;
  const std::vector<Bad> files{
      {bytes_of(""), "not a .npy file"},
      {bytes_of("PK\x03\x04 an archive"), "not a .npy file"},
      {file(4, header("<f4", "(2,)"), data), "version 4.0"},
      {bytes_of(std::string("\x93NUMPY\x02\0\xff\xff\xff\xff{", 13)), "within its header"},
      {file(1, header("<f4", "(2,)", "True"), data), "Fortran order"},
      {file(1, header(">f4", "(2,)"), data), "big-endian"},
      {file(1, header("|O", "(2,)"), data), "\"|O\" is not read"},
      {file(1, header("<c8", "(1,)"), data), "\"<c8\" is not read"},
      {file(1, header("<f4", "()"), kOneAndMinusTwo.substr(4)), "0-dimensional"},
      {file(1, header("<f4", "(3,)"), data), "needs more bytes"},
      {file(1, header("<f4", "(1,)"), data), "4 bytes follow"},
      {file(1, header("<f4", "(4294967296,4294967296,4)"), data), "needs more bytes"},
      {file(1, header("<f4", "(9223372036854775807,3)"), data), "needs more bytes"},
      {file(1, header("<f4", "(99999999999999999999,)"), data), "not a .npy header"},
      {file(1, header("<f4", "(-2,)"), data), "not a .npy header"},
      {file(1, header("<f4", "(nan,)"), data), "not a .npy header"},
      {file(1, "{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (2,), }", data), "several fields"},
      {file(1, "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", data), "not a .npy header"},
      {file(1, "{'descr': '<f4', 'shape': (2,), }", data), "not a .npy header"},
      {file(1, header("<f4", "(2,)") + "x", data), "not a .npy header"},
      {file(1, "", data), "not a .npy header"},
      {file(1, header("<i8", "(1,)"), std::string("\0\0\0\0\0\0\0\x7f", 8)), "beyond 2^53"},
  };
  for (const Bad& bad : files) {
    const std::string sentence = refusal([&] { parse_npy(bad.bytes, "some.npy"); });
    INFO(bad.word << " in: " << sentence);
    CHECK(sentence.starts_with("some.npy: "));
    CHECK(sentence.find(bad.word) != std::string::npos);
    CHECK(sentence.find('\n') == std::string::npos);
    CHECK(sentence.find("; ") != std::string::npos);  // and what would do
  }
}

TEST_CASE("no prefix, extension or damage of a file does more than be refused") {
  const Bytes whole = npy_bytes({2, 2}, Values{1, 2, 3, 4}, "<f8");
  for (std::size_t length = 0; length < whole.size(); ++length) {
    CHECK_THROWS_AS(parse_npy(std::span(whole).first(length), "a.npy"), Refused);
  }
  std::mt19937_64 random(1);
  int accepted = 0;
  for (int trial = 0; trial < 20000; ++trial) {
    Bytes damaged = whole;
    for (int n = 0; n < 2; ++n) damaged[random() % 80] = static_cast<std::byte>(random());
    if (refusal([&] { parse_npy(damaged, "a.npy"); }).empty()) ++accepted;
  }
  CHECK(accepted < 10000);  // most damage is in what counts; padding may change unseen
}

TEST_CASE("files of a folder are replaced as one step") {
  const fs::path folder = fresh_folder("replace"), deep = folder / "new" / "deep";
  CHECK_THROWS_AS(read_npy(folder / "none.npy"), Refused);
  CHECK_THROWS_AS(read_npy(folder), Refused);

  write_npy(deep / "a.npy", {2}, Values{1, 2}, "<f4");
  CHECK(read_npy(deep / "a.npy").data == Values{1, 2});
  CHECK(names_in(deep) == std::vector<std::string>{"a.npy"});
  write_files(deep, {{"a.npy", npy_bytes({1}, Values{5}, "<f4")}, {"b.npy", npy_bytes({1}, Values{6}, "<f4")}});
  CHECK(read_npy(deep / "a.npy").data == Values{5});
  CHECK(names_in(deep) == std::vector<std::string>{"a.npy", "b.npy"});

  fs::create_directory(deep / "z.npy");  // can't be replaced: a comes before it and must stay as it was
  const Bytes content = npy_bytes({1}, Values{9}, "<f4");
  CHECK_THROWS_AS(write_files(deep, {{"a.npy", content}, {"c.npy", content}, {"z.npy", content}}), Refused);
  CHECK(read_npy(deep / "a.npy").data == Values{5});
  CHECK(names_in(deep) == std::vector<std::string>{"a.npy", "b.npy", "z.npy"});

  CHECK_THROWS_AS(write_files(deep / "a.npy" / "sub", {{"x", content}}), Refused);  // below a file
  CHECK_THROWS_AS(write_files(folder / "q", {{"no_such/x", content}}), Refused);    // and the new folder goes again
  CHECK(names_in(folder) == std::vector<std::string>{"new"});
  fs::remove_all(folder);
}

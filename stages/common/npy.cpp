#include "stages/common/npy.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <limits>
#include <optional>
#include <system_error>

static_assert(std::endian::native == std::endian::little, "elements are copied as they lie in the file");

namespace flash {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::string_view kReadable = "<f4, <f2, <f8, |b1, |u1, <i4 or <i8";

[[noreturn]] void refuse(std::string_view file, std::string_view why, std::string_view cure) {
  throw Refused(fmt::format("{}: {}; {}", file, why, cure));
}

/// Text from a file, fit for a terminal: short, printable ASCII.
std::string printable(std::string_view text) {
  constexpr std::size_t kLongest = 40;
  std::string result;
  for (const char c : text.substr(0, kLongest)) result += c >= ' ' && c <= '~' ? c : '?';
  return text.size() > kLongest ? result + "..." : result;
}

Index element_bytes(std::string_view descr) {
  if (descr == "|b1" || descr == "|u1") return 1;
  if (descr == "<f2") return 2;
  if (descr == "<f4" || descr == "<i4") return 4;
  if (descr == "<f8" || descr == "<i8") return 8;
  return 0;
}

struct Header {
  std::string descr;
  bool fortran_order = false;
  std::vector<Index> shape;
};

/// Parser of the header, a Python dictionary such as {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, std::string_view file) : rest_(text), file_(file) {}

  Header parse() {
    std::optional<std::string> descr;
    std::optional<bool> fortran_order;
    std::optional<std::vector<Index>> shape;
    expect('{');
    while (!take('}')) {
      const std::string key = quoted();
      expect(':');
      if (key == "descr" && !descr) {
        descr = type();
      } else if (key == "fortran_order" && !fortran_order) {
        fortran_order = boolean();
      } else if (key == "shape" && !shape) {
        shape = tuple();
      } else {
        malformed();
      }
      if (!take(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (!rest_.empty() || !descr || !fortran_order || !shape) malformed();
    return {*descr, *fortran_order, *shape};
  }

 private:
  [[noreturn]] void malformed() const {
    refuse(file_, fmt::format("its header is not a .npy header near \"{}\"", printable(rest_)),
           "write it again with numpy.save");
  }

  void skip_space() {
    while (!rest_.empty() && (rest_.front() == ' ' || rest_.front() == '\n' || rest_.front() == '\t')) {
      rest_.remove_prefix(1);
    }
  }

  bool take(char c) {
    skip_space();
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }

  void expect(char c) {
    if (!take(c)) malformed();
  }

  bool take_word(std::string_view word) {
    skip_space();
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }

  std::string quoted() {
    const char quote = take('\'') ? '\'' : '"';
    if (quote == '"') expect('"');
    const std::size_t end = rest_.find(quote);
    if (end == std::string_view::npos) malformed();
    std::string text(rest_.substr(0, end));
    rest_.remove_prefix(end + 1);
    return text;
  }

  std::string type() {
    if (take('[')) refuse(file_, "it holds records of several fields", "save each field as an array of its own");
    return quoted();
  }

  bool boolean() {
    if (take_word("True")) return true;
    if (!take_word("False")) malformed();
    return false;
  }

  std::vector<Index> tuple() {
    std::vector<Index> values;
    expect('(');
    while (!take(')')) {
      skip_space();
      Index value = 0;
      const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
      if (error != std::errc() || value < 0) malformed();
      rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
      values.push_back(value);
      if (!take(',')) {
        expect(')');
        break;
      }
    }
    return values;
  }

  std::string_view rest_;
  std::string_view file_;
};

/// The header's text and what follows it, by the length that versions 1 (two bytes) and 2, 3 (four bytes) give.
std::pair<std::string_view, std::span<const std::byte>> split(std::span<const std::byte> bytes, std::string_view file) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const std::size_t version_at = kMagic.size();
  if (!text.starts_with(kMagic) || text.size() < version_at + 2) {
    refuse(file, "it is not a .npy file", "write it with numpy.save");
  }
  const int major = std::to_integer<int>(bytes[version_at]), minor = std::to_integer<int>(bytes[version_at + 1]);
  if (major < 1 || major > 3 || minor != 0) {
    refuse(file, fmt::format(".npy version {}.{} is unknown", major, minor), "write version 1.0, 2.0 or 3.0");
  }
  const std::size_t length_at = version_at + 2, length_bytes = major == 1 ? 2 : 4;
  std::size_t length = 0;
  for (std::size_t n = 0; n < length_bytes && length_at + n < bytes.size(); ++n) {
    length |= std::to_integer<std::size_t>(bytes[length_at + n]) << (8 * n);
  }
  const std::size_t header_at = length_at + length_bytes;
  if (header_at > bytes.size() || length > bytes.size() - header_at) {
    refuse(file, "it ends within its header", "the file is cut short, so copy or write it again");
  }
  return {text.substr(header_at, length), bytes.subspan(header_at + length)};
}

/// Number of elements of `shape`; nothing where it is too large to count.
std::optional<Index> elements(const std::vector<Index>& shape) {
  Index count = 1;
  bool overflow = false;
  for (const Index length : shape) {
    if (length == 0) return 0;
    overflow |= length > std::numeric_limits<Index>::max() / count;
    if (!overflow) count *= length;
  }
  return overflow ? std::nullopt : std::optional(count);
}

void require_readable(const Header& header, std::string_view file) {
  if (element_bytes(header.descr) == 0) {
    refuse(file,
           header.descr.starts_with('>') ? fmt::format("its type {} is big-endian", printable(header.descr))
                                         : fmt::format("its type \"{}\" is not read", printable(header.descr)),
           fmt::format("convert it to {}", kReadable));
  }
  if (header.fortran_order) refuse(file, "it is in Fortran order", "save numpy.ascontiguousarray(a)");
  if (header.shape.empty()) refuse(file, "it is 0-dimensional, a single number", "save an array with axes");
}

template <class T>
void copy_elements(std::span<const std::byte> bytes, std::vector<double>& data) {
  for (std::size_t n = 0; n < data.size(); ++n) {
    T value;
    std::memcpy(&value, bytes.data() + n * sizeof(T), sizeof(T));
    data[n] = static_cast<double>(value);
  }
}

void copy_int64(std::span<const std::byte> bytes, std::vector<double>& data, std::string_view file) {
  constexpr std::int64_t kExact = std::int64_t{1} << 53;
  for (std::size_t n = 0; n < data.size(); ++n) {
    std::int64_t value;
    std::memcpy(&value, bytes.data() + n * sizeof(value), sizeof(value));
    if (value > kExact || value < -kExact) {
      refuse(file, fmt::format("element {} is {}, beyond 2^53", n, value), "lengths and indices must be smaller");
    }
    data[n] = static_cast<double>(value);
  }
}

template <class T>
void append(Bytes& bytes, const T& value) {
  const auto* first = reinterpret_cast<const std::byte*>(&value);
  bytes.insert(bytes.end(), first, first + sizeof(value));
}

void append_text(Bytes& bytes, std::string_view text) {
  for (const char c : text) bytes.push_back(static_cast<std::byte>(c));
}

/// Does an integer type hold `value`? Floating-point types round instead.
bool holds(std::string_view descr, double value) {
  if (descr == "<i4") return value >= -0x1p31 && value < 0x1p31 && value == std::trunc(value);
  if (descr == "|u1") return value >= 0 && value < 256 && value == std::trunc(value);
  return true;
}

void append_element(Bytes& bytes, double value, std::string_view descr) {
  if (descr == "<f8") append(bytes, value);
  if (descr == "<f4") append(bytes, static_cast<float>(value));
  if (descr == "<f2") append(bytes, Eigen::half(static_cast<float>(value)).x);
  if (descr == "<i4") append(bytes, static_cast<std::int32_t>(value));
  if (descr == "|u1") append(bytes, static_cast<std::uint8_t>(value));
  if (descr == "|b1") append(bytes, static_cast<std::uint8_t>(value != 0));
}

/// Files on their way into a directory. Until `commit` has ended well, the destructor takes everything back.
class Replacement {
 public:
  explicit Replacement(const fs::path& directory)
      : directory_(fs::absolute(directory).lexically_normal()), as_given_(directory) {}
  Replacement(const Replacement&) = delete;
  Replacement& operator=(const Replacement&) = delete;

  void make_directory() {
    for (fs::path p = directory_; !fs::exists(p) && p.has_relative_path(); p = p.parent_path()) created_.push_back(p);
    fs::create_directories(directory_);
  }

  void add(const std::string& name, const Bytes& content) {
    File file{directory_ / name, temporary(name, "new"), temporary(name, "old")};
    if (fs::exists(file.target) && !fs::is_regular_file(file.target)) {
      throw Refused(fmt::format("{}: it is not a regular file; choose another directory", (as_given_ / name).string()));
    }
    files_.push_back(file);
    std::ofstream stream(file.fresh, std::ios::binary | std::ios::trunc);
    stream.write(reinterpret_cast<const char*>(content.data()), static_cast<std::streamsize>(content.size()));
    stream.close();
    if (!stream) {
      throw Refused(fmt::format("{}: it can't be written; free space or choose a directory that is writable",
                                (as_given_ / name).string()));
    }
  }

  void commit() {
    for (File& file : files_) {
      if (fs::exists(file.target)) {
        fs::copy_file(file.target, file.previous, fs::copy_options::overwrite_existing);
        file.replaces = true;
      }
    }
    for (File& file : files_) {
      fs::rename(file.fresh, file.target);
      file.renamed = true;
    }
    committed_ = true;
  }

  ~Replacement() {
    std::error_code ignored;
    for (const File& file : files_) {
      if (!committed_ && file.renamed) {
        if (file.replaces) {
          fs::rename(file.previous, file.target, ignored);
        } else {
          fs::remove(file.target, ignored);
        }
      }
      fs::remove(file.fresh, ignored);
      fs::remove(file.previous, ignored);
    }
    if (!committed_) {
      for (const fs::path& path : created_) fs::remove(path, ignored);
    }
  }

 private:
  struct File {
    fs::path target, fresh, previous;
    bool replaces = false, renamed = false;
  };

  fs::path temporary(const std::string& name, std::string_view kind) const {
    return directory_ / fmt::format(".{}.{}.{}", name, ::getpid(), kind);
  }

  fs::path directory_;
  fs::path as_given_;              // for messages
  std::vector<fs::path> created_;  // innermost first
  std::vector<File> files_;
  bool committed_ = false;
};

}  // namespace

Array parse_npy(std::span<const std::byte> bytes, std::string_view file) {
  const auto [text, data] = split(bytes, file);
  const Header header = HeaderParser(text, file).parse();
  require_readable(header, file);
  const std::optional<Index> count = elements(header.shape);
  const Index width = element_bytes(header.descr), available = static_cast<Index>(data.size());
  if (!count || *count > available / width) {
    refuse(file,
           fmt::format("its shape ({}) needs more bytes than the {} it has", fmt::join(header.shape, ","), available),
           "the file is cut short, so copy or write it again");
  }
  if (*count * width != available) {
    refuse(file, fmt::format("{} bytes follow its last element", available - *count * width),
           "write one array to a file of its own");
  }
  Array array{header.shape, header.descr, std::vector<double>(static_cast<std::size_t>(*count))};
  if (header.descr == "<f8") copy_elements<double>(data, array.data);
  if (header.descr == "<f4") copy_elements<float>(data, array.data);
  if (header.descr == "<f2") copy_elements<Eigen::half>(data, array.data);
  if (header.descr == "<i4") copy_elements<std::int32_t>(data, array.data);
  if (header.descr == "<i8") copy_int64(data, array.data, file);
  if (header.descr == "|u1" || header.descr == "|b1") copy_elements<std::uint8_t>(data, array.data);
  return array;
}

Array read_npy(const fs::path& path) {
  std::error_code error;
  const auto size = fs::is_regular_file(path, error) ? fs::file_size(path, error) : 0;
  std::ifstream stream(path, std::ios::binary);
  if (error || !stream || !fs::is_regular_file(path, error)) {
    refuse(path.string(), "there is no such file that can be read", "give the path of a .npy file");
  }
  Bytes bytes(size);
  stream.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(size));
  if (!stream) refuse(path.string(), "reading it failed", "check the disk and copy the file again");
  return parse_npy(bytes, path.string());
}

Bytes npy_bytes(const std::vector<Index>& shape, std::span<const double> data, std::string_view descr) {
  if (element_bytes(descr) == 0 || descr == "<i8") {
    throw Refused(fmt::format("arrays of type \"{}\" are not written; use <f4, <f8, <f2, <i4, |u1 or |b1", descr));
  }
  if (elements(shape) != static_cast<Index>(data.size()) || shape.empty()) {
    throw Refused(fmt::format("{} elements do not fill the shape ({}); give as many as it says", data.size(),
                              fmt::join(shape, ",")));
  }
  if (const auto bad = std::find_if_not(data.begin(), data.end(), [&](double x) { return holds(descr, x); });
      bad != data.end()) {
    throw Refused(fmt::format("{} does not fit the type {}; write it as <f8", *bad, descr));
  }
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({},), }}", descr, fmt::join(shape, ","));
  constexpr std::size_t kPreamble = 10,
                        kAlignment = 64;  // magic, version and length; elements start at a multiple of 64
  header.append((kAlignment - (kPreamble + header.size() + 1) % kAlignment) % kAlignment, ' ');
  header += '\n';

  Bytes bytes;
  bytes.reserve(kPreamble + header.size() + data.size() * static_cast<std::size_t>(element_bytes(descr)));
  append_text(bytes, kMagic);
  append(bytes, std::uint8_t{1});
  append(bytes, std::uint8_t{0});
  append(bytes, static_cast<std::uint16_t>(header.size()));
  append_text(bytes, header);
  for (const double value : data) append_element(bytes, value, descr);
  return bytes;
}

void write_npy(const fs::path& path, const std::vector<Index>& shape, std::span<const double> data,
               std::string_view descr) {
  const fs::path directory = path.has_parent_path() ? path.parent_path() : fs::path(".");
  write_files(directory, {{path.filename().string(), npy_bytes(shape, data, descr)}});
}

void write_files(const fs::path& directory, const std::map<std::string, Bytes>& files) {
  try {
    Replacement replacement(directory);
    replacement.make_directory();
    for (const auto& [name, content] : files) replacement.add(name, content);
    replacement.commit();
  } catch (const fs::filesystem_error& error) {
    throw Refused(fmt::format("{}: the output can't be written ({}); choose a directory that is writable",
                              directory.string(), error.code().message()));
  }
}

}  // namespace flash

// NumPy's .npy files: what the command line reads and writes.
// Format: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html (versions 1 to 3).
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/memory/eigen.hpp"
#include "stages/common/options.hpp"

namespace flash {

/// An array of a file, widened to double: exact for every type that is read.
struct Array {
  std::vector<Index> shape;  ///< at least one axis; an axis may be 0 long
  std::string descr;         ///< element type in the file: <f2 <f4 <f8 |b1 |u1 <i4 <i8
  std::vector<double> data;  ///< row-major
};

using Bytes = std::vector<std::byte>;

/// The array in `bytes`, the whole of a .npy file; `file` names it in messages.
/// Throws Refused for anything but a complete little-endian C-order array of the types above with at least one axis,
/// and for <i8 values beyond ±2^53, which a double does not hold.
Array parse_npy(std::span<const std::byte> bytes, std::string_view file);

/// The array in the file at `path`. Throws Refused as parse_npy does, and when the file can't be read.
Array read_npy(const std::filesystem::path& path);

/// A complete .npy file, version 1, holding `data` [shape, row-major] rounded to `descr`: <f2 <f4 <f8 |b1 |u1 <i4.
/// Throws Refused for another `descr` or where `data` has not as many elements as `shape` says.
Bytes npy_bytes(const std::vector<Index>& shape, std::span<const double> data, std::string_view descr);

/// npy_bytes written to `path`, which is replaced whole or not touched.
void write_npy(const std::filesystem::path& path, const std::vector<Index>& shape, std::span<const double> data,
               std::string_view descr);

/// Writes `files` (name → content) into `directory`, made where it is missing, as one step: all are written to
/// temporary files beside their targets and then renamed. On failure the directory is as it was before, no temporary
/// remains, and Refused is thrown.
void write_files(const std::filesystem::path& directory, const std::map<std::string, Bytes>& files);

}  // namespace flash

/// @file
/// Reads files that are compressed with zstd.
#pragma once

#include <iosfwd>
#include <string>

namespace examples {

/// Whether a file begins as zstd files do. The place in the file stays the same.
bool is_zstd(std::istream& file);

/// The whole text of a compressed file; `name` is for errors. @throws TraceError if it is damaged or cut short.
std::string zstd_text(std::istream& file, const std::string& name);

}  // namespace examples

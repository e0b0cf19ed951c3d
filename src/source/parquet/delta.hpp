// source/parquet/delta: integers as differences, and lengths of strings as such integers.
//
// Source  github.com/apache/parquet-format, Encodings.md, Delta Encoding.
#pragma once

#include <cstdint>
#include <span>

#include "src/source/parquet/origin.hpp"

namespace penstock::source {

/// Decodes DELTA_BINARY_PACKED, which must have as many integers as `out`; each of 64 bits, of which smaller types are the
/// lower ones. Returns how many bytes it took.
///
/// Errors  DataError  the bytes are damaged, or hold another number of integers
[[nodiscard]] std::size_t decode_delta_binary(std::span<const std::byte> bytes,
                                              std::span<std::uint64_t> out,
                                              const ParquetOrigin& origin);

}  // namespace penstock::source

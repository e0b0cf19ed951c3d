// source/parquet/origin: where bytes of a Parquet file are, and the error that says it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include <penstock/core/error.hpp>

#include "src/source/little_endian.hpp"

namespace penstock::source {

/// The place of some bytes: a file, and the offset of the first. `unpacked` bytes are what a page became when it was
/// decompressed; `offset` is then the page's.
struct ParquetOrigin {
  std::string file;
  std::uint64_t offset = 0;
  bool unpacked = false;
};

/// Limits of what is decoded at once, whatever a file says. More is a fault.
struct ParquetLimits {
  std::uint64_t page_bytes = std::uint64_t{1}
                             << 30;  ///< of a page when decompressed, and of decoded values
  std::uint64_t page_values = std::uint64_t{1} << 26;  ///< of a page, nulls included
};

/// Throws a DataError whose fault names the file and the byte, `at` bytes behind the origin.
[[noreturn]] void throw_parquet_damage(const ParquetOrigin& origin, std::uint64_t at,
                                       std::string reason);
/// The same for what may be valid, and is more than ParquetLimits allow.
[[noreturn]] void throw_parquet_limit(const ParquetOrigin& origin, const std::string& reason);
/// The same for what is valid, and not read here: the sentence says that pyarrow reads it.
[[noreturn]] void throw_parquet_unread(const ParquetOrigin& origin, const std::string& what);

/// What `make` returns, or the fault that it threw.
template <class Make>
[[nodiscard]] auto parquet_result(const Make& make) -> Result<decltype(make())> {
  try {
    return make();
  } catch (const DataError& error) {
    return error.fault();
  }
}

}  // namespace penstock::source

// source/parquet/file_values: a page in a file, and where its values are, found without reading them.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "src/source/parquet/footer.hpp"
#include "src/source/parquet/page.hpp"

namespace penstock::source {

/// Reads exactly so many bytes of a file at an offset; they are valid until the next call.
using ParquetRead =
    std::function<Result<std::span<const std::byte>>(std::uint64_t offset, std::uint64_t bytes)>;

/// A page of a chunk.
struct ParquetPage {
  std::uint64_t offset = 0;  ///< of its header
  ParquetPageHeader header;
  std::uint64_t first_slot = 0;  ///< in its chunk: all values before it, with nulls
  std::uint64_t first_row = 0;   ///< the first that begins in it, counted in its row group
  std::uint64_t rows = 0;        ///< that begin in it
  bool is_damaged = false;       ///< it cannot be read: it has an offset and a first_row alone
  [[nodiscard]] std::uint64_t begin() const noexcept { return offset + header.header_bytes; }
  [[nodiscard]] std::uint64_t end() const noexcept { return begin() + header.packed_bytes; }
};

/// Calls `read`, and checks that it read what it was asked for.
///
/// Errors  DataError  it did not
[[nodiscard]] std::span<const std::byte> read_parquet_range(const ParquetRead& read,
                                                            std::uint64_t offset,
                                                            std::uint64_t bytes,
                                                            const std::string& file);

/// The levels of an uncompressed data page, or of any DATA_PAGE_V2, without reading its values.
///
/// Errors  DataError  they are damaged
[[nodiscard]] ParquetLevels read_parquet_front_levels(const ParquetLeaf& leaf,
                                                      const ParquetPage& page,
                                                      const ParquetRead& read,
                                                      const std::string& file,
                                                      const ParquetLimits& limits);

/// Where the values of a page are in the file.
struct ParquetFileValues {
  ParquetLevels levels;
  std::vector<ParquetRange> values;  ///< of the slots that have one
};

/// Finds the values of a data page of uncompressed PLAIN BYTE_ARRAYs, of which it reads the levels and each value's length.
///
/// Errors  a fault  the page is of another kind, or damaged
[[nodiscard]] Result<ParquetFileValues> find_parquet_values(
    const ParquetLeaf& leaf, ParquetCodec codec, const ParquetPage& page, const ParquetRead& read,
    const std::string& file, const ParquetLimits& limits = {});

}  // namespace penstock::source

// source/parquet/chunk_scan: where the pages of a column chunk are, and which rows each has.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/source/parquet/file_values.hpp"
#include "src/source/parquet/footer.hpp"

namespace penstock::source {

struct ParquetPages {
  std::optional<ParquetPage> dictionary;
  std::vector<ParquetPage> data;
  std::optional<Fault> fault;  ///< the first that was met
};

/// A page's place in an OffsetIndex.
struct ParquetPagePlace {
  std::uint64_t offset = 0;
  std::uint32_t bytes = 0;  ///< with the header
  std::uint64_t first_row = 0;
};

/// Finds the pages of a leaf's chunk in a row group of `rows`, header by header. Bodies are read only of DATA_PAGEs of
/// leaves in lists, if no OffsetIndex agrees with the pages.
///
/// Errors  a fault  a header is damaged, or the pages have not the values and rows that the footer says
[[nodiscard]] Result<ParquetPages> scan_parquet_chunk(const ParquetLeaf& leaf,
                                                      const ParquetChunk& chunk, std::uint64_t rows,
                                                      const ParquetRead& read,
                                                      const std::string& file,
                                                      const ParquetLimits& limits = {});

/// The same as far as the chunk is good: up to its first fault, and behind that what the OffsetIndex leads to. Where pages
/// are missing is one that is_damaged.
[[nodiscard]] ParquetPages find_parquet_pages(const ParquetLeaf& leaf, const ParquetChunk& chunk,
                                              std::uint64_t rows, const ParquetRead& read,
                                              const std::string& file,
                                              const ParquetLimits& limits = {});

/// The OffsetIndex of a chunk that has one; its places lie within the chunk, and their rows ascend.
///
/// Errors  a fault  it is damaged
[[nodiscard]] Result<std::vector<ParquetPagePlace>> read_parquet_offset_index(
    const ParquetChunk& chunk, std::uint64_t rows, const ParquetRead& read,
    const std::string& file);

}  // namespace penstock::source

// source/parquet/levels: definition and repetition levels of a page: which values are null, and where lists begin.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "src/source/parquet/origin.hpp"
#include "src/source/parquet/page_header.hpp"
#include "src/source/parquet/schema.hpp"

namespace penstock::source {

/// A slot has a level of each kind, and a value if its definition level is the leaf's highest.
struct ParquetLevels {
  std::uint64_t slots = 0;
  std::uint64_t present = 0;             ///< slots that have a value
  std::vector<std::uint8_t> definition;  ///< empty where the leaf's highest is 0; so the next
  std::vector<std::uint8_t> repetition;
  std::uint64_t bytes = 0;  ///< that the levels take, in front of the values

  /// The slots at which rows begin. The first may be behind 0: the slots before it continue the row of the page before.
  [[nodiscard]] std::vector<std::uint32_t> rows() const;
  [[nodiscard]] std::uint64_t row_count() const noexcept;
};

/// How many bytes the levels of a DATA_PAGE take, in front of its values, with the lengths in front of each kind.
///
/// Errors  DataError  the page ends before
[[nodiscard]] std::uint64_t parquet_levels_bytes(const ParquetLeaf& leaf,
                                                 std::span<const std::byte> bytes,
                                                 const ParquetOrigin& origin);

/// Reads the levels that `bytes` begin with; of a DATA_PAGE they are decompressed.
///
/// Errors  DataError  they are damaged, of an encoding that is not read, or more than the limit
[[nodiscard]] ParquetLevels read_parquet_levels(const ParquetLeaf& leaf,
                                                const ParquetPageHeader& header,
                                                std::span<const std::byte> bytes,
                                                const ParquetLimits& limits,
                                                const ParquetOrigin& origin);

}  // namespace penstock::source

// source/parquet/page_rows: the values of one page, row by row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "src/source/parquet/page.hpp"
#include "src/source/parquet/parquet_fields.hpp"

namespace penstock::source {

/// What a row has in one page: values, which are those without nulls, and slots, which nulls have, too.
struct ParquetPiece {
  std::uint32_t first_value = 0;
  std::uint32_t last_value = 0;  ///< one behind, as the next
  std::uint32_t first_slot = 0;
  std::uint32_t last_slot = 0;
};

/// A decoded page. A list may go on in the pages behind it: what a page begins with is then `leading`.
///
/// Threads  const, any number at once.
class ParquetPageRows {
 public:
  /// `bytes` are what the page was decoded from, which the values may refer to.
  ParquetPageRows(ParquetDecodedPage page, const ParquetLeaf& leaf,
                  std::shared_ptr<const std::byte[]> bytes);

  [[nodiscard]] std::uint64_t rows() const noexcept { return rows_; }
  [[nodiscard]] ParquetPiece row(std::size_t number) const noexcept;
  [[nodiscard]] ParquetPiece leading() const noexcept;
  [[nodiscard]] const ParquetValues& values() const noexcept { return values_; }
  /// False: each slot has a value.
  [[nodiscard]] bool has_levels() const noexcept { return !definition_.empty(); }
  /// The level of a slot; `most` where the page keeps none, since all are.
  [[nodiscard]] std::uint8_t definition(std::uint32_t slot, std::uint8_t most) const noexcept {
    return definition_.empty() ? most : definition_[slot];
  }
  /// The repetition level of a slot, of a leaf in lists of lists.
  [[nodiscard]] std::uint8_t repetition(std::uint32_t slot) const { return repetition_.at(slot); }
  /// What a piece takes in a record.
  [[nodiscard]] std::uint64_t bytes_of(const ParquetPiece& piece,
                                       const ParquetField& field) const noexcept;
  /// Memory that it takes, and that of what it refers to.
  [[nodiscard]] std::uint64_t memory_bytes() const noexcept { return memory_bytes_; }

 private:
  ParquetValues values_;
  std::shared_ptr<const std::byte[]> bytes_;
  std::vector<std::uint8_t> definition_;     // empty: each slot has a value
  std::vector<std::uint8_t> repetition_;     // of lists of lists
  std::vector<std::uint32_t> slot_begins_;   // of rows; empty: a row has one slot
  std::vector<std::uint32_t> value_begins_;  // of rows; empty: as their slots
  std::uint32_t slots_ = 0;
  std::uint64_t rows_ = 0;
  std::uint64_t memory_bytes_ = 0;
};

}  // namespace penstock::source

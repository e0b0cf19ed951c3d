// source/parquet/table_cell: what a row has in one column, and its values as a field has them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/source/parquet/page_rows.hpp"
#include "src/source/parquet/parquet_fields.hpp"
#include "src/source/tables/table_row.hpp"

namespace penstock::source {

/// A row's values in a column: a number, a text, or the elements of a list, which may lie in several pages.
struct ParquetCell {
  struct Part {
    std::shared_ptr<const ParquetPageRows> page;
    ParquetPiece piece;
  };
  struct Count {
    std::uint64_t elements = 0;
    bool has_null = false;
  };
  std::vector<Part> parts;
  std::uint64_t offset = 0;  ///< of the page that it begins in

  [[nodiscard]] bool is_null(const ParquetField& field) const noexcept;
  /// Of lists of lists: why they do not have the shape, if an inner one has another size, or is null.
  [[nodiscard]] std::optional<std::string> find_other_list(const ParquetField& field) const;
  /// Of a list, nulls included; 1 for a number.
  [[nodiscard]] Count count_elements(const ParquetField& field) const;
  /// Copies all numbers, with default_value for those that are null. False if one is out of the range of the type. All pages
  /// have values of field.file_width.
  [[nodiscard]] bool copy_numbers(const ParquetField& field, std::span<std::byte> out) const;
  /// Calls use(value, true) for each value, and use({}, false) for each element of a list that is null.
  template <class Use>
  void for_each(const ParquetField& field, const Use& use) const {
    for (const Part& part : parts) {
      std::uint32_t value = part.piece.first_value;
      for (std::uint32_t slot = part.piece.first_slot; slot < part.piece.last_slot; ++slot) {
        const std::uint8_t level = part.page->definition(slot, field.max_definition);
        if (level == field.max_definition)
          use(part.page->values()[value++], true);
        else if (field.values.is_list && level >= field.element_definition)
          use(std::span<const std::byte>(), false);
      }
    }
  }
};

/// Whether a row's list is null, or a struct that it is in.
[[nodiscard]] bool is_null_parquet_list(const ParquetPageRows& page, const ParquetPiece& piece,
                                        std::uint8_t max_definition,
                                        std::uint8_t list_definition) noexcept;

}  // namespace penstock::source

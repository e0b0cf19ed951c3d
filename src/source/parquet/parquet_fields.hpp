// source/parquet/parquet_fields: what the columns that were asked for are in a file, and how their values are stored there.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <penstock/core/tensor.hpp>
#include <penstock/source/tables.hpp>

#include "src/source/parquet/footer.hpp"
#include "src/source/tables/table_fields.hpp"

namespace penstock::source {

/// A field, and the leaf that it is made of.
struct ParquetField : TableField {
  std::string path;  ///< of the leaf in each file's schema
  ParquetType type{};
  std::uint32_t file_width = 0;
  std::uint8_t max_definition = 0;
  std::uint8_t list_definition =
      0;  ///< of a list: the definition level from which on a slot is in an element
  std::uint8_t element_definition = 0;  ///< the same of the lists inside it; of others the same
};

/// All columns, by the names that people give them.
[[nodiscard]] TableLeaves list_parquet_columns(const ParquetFooter& footer);

/// The fields of `columns`, or of all columns if there are none.
///
/// Errors  std::invalid_argument  a name is missing or used twice, or a shape does not fit its column
///         Error                  no such column, or one that is not read; the message names the file
[[nodiscard]] std::vector<ParquetField> resolve_parquet_columns(
    const ParquetFooter& footer, std::span<const TableColumn> columns, const std::string& file);

/// The same fields of another file, whose levels may differ.
///
/// Errors  Error  the file has not the same columns with the same types
[[nodiscard]] std::vector<ParquetField> find_parquet_fields(const ParquetFooter& footer,
                                                            std::span<const ParquetField> fields,
                                                            const std::string& file,
                                                            const std::string& first_file);

/// Of a leaf in lists: the definition level from which on a slot is in an element of the outermost.
[[nodiscard]] std::uint8_t parquet_list_definition(const ParquetSchema& schema,
                                                   const ParquetLeaf& leaf);

/// The names of the classes of a column of integers, from Hugging Face's metadata; none where they have none.
[[nodiscard]] std::vector<std::string> parquet_class_names(const ParquetFooter& footer,
                                                           const std::string& column);

}  // namespace penstock::source

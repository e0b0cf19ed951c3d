// source/parquet/table_fields: from the columns that were asked for to leaves of a file's schema, and the fields they become.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <penstock/core/tensor.hpp>
#include <penstock/source/tables.hpp>

#include "src/source/parquet/footer.hpp"

namespace penstock::source {

/// How a leaf's values become a field.
struct ParquetField {
  ParquetColumn column;  ///< as it was asked for; `column.column` is never empty
  std::string leaf;      ///< path of the leaf in each file's schema
  ParquetType type{};
  std::uint32_t file_width = 0;
  std::uint8_t max_definition = 0;
  DType dtype = DType::u8;  ///< u8 for texts and bytes
  bool is_bytes = false;    ///< a value is any number of bytes
  bool is_list = false;
  std::uint8_t list_definition =
      0;  ///< of a list: the definition level from which on a slot is an element
  FieldSpec spec;
  std::size_t at = 0;  ///< among the fields of a record; its lengths are the next

  /// Whether each value is so many bytes, and no number.
  [[nodiscard]] bool is_fixed_bytes() const noexcept {
    return dtype == DType::u8 && type == ParquetType::fixed_len_byte_array;
  }
  /// Bytes of a value in the record, if it has no other number of them.
  [[nodiscard]] std::size_t element_bytes() const noexcept {
    return is_fixed_bytes() ? file_width : size_of(dtype);
  }
};

/// A column by the name that people give it, without the groups that lists consist of.
struct ParquetColumnName {
  std::string name;
  bool is_media = false;  ///< a struct of bytes and path that stands for its bytes
};
[[nodiscard]] std::vector<ParquetColumnName> list_parquet_columns(const ParquetSchema& schema);

/// The fields of `columns`, or of all columns if there are none.
///
/// Errors  std::invalid_argument  a name is missing or used twice, or a shape does not fit its column
///         Error                  no such column, or one that is not read; the message names the file
[[nodiscard]] std::vector<ParquetField> resolve_parquet_columns(
    const ParquetSchema& schema, std::span<const ParquetColumn> columns, const std::string& file);

/// The same fields of another file, whose levels may differ.
///
/// Errors  Error  the file has not the same columns with the same types
[[nodiscard]] std::vector<ParquetField> find_parquet_fields(const ParquetSchema& schema,
                                                            std::span<const ParquetField> fields,
                                                            const std::string& file,
                                                            const std::string& first_file);

/// Of a leaf in lists: the definition level from which on a slot is an element.
[[nodiscard]] std::uint8_t parquet_list_definition(const ParquetSchema& schema,
                                                   const ParquetLeaf& leaf);

/// The names of the classes of a column of integers, from Hugging Face's metadata; none where they have none.
[[nodiscard]] std::vector<std::string> parquet_class_names(const ParquetFooter& footer,
                                                           const std::string& column);

}  // namespace penstock::source

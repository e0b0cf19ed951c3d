// source/arrow/arrow_fields: what the columns that were asked for are in Arrow data, and where their values lie in it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "src/source/arrow/column.hpp"
#include "src/source/arrow/schema.hpp"
#include "src/source/tables/table_fields.hpp"

namespace penstock::source {

/// A field, and the way to its values.
struct ArrowTableField : TableField {
  std::uint32_t top = 0;  ///< node of the table's column that it is in
  /// From that column to the leaf: of a struct the number of a child, of a list 0.
  std::vector<std::uint32_t> steps;
};

/// Whether values of a kind are lists.
[[nodiscard]] bool is_arrow_list(ArrowKind kind) noexcept;

/// All columns, by the names that people give them.
[[nodiscard]] TableLeaves list_arrow_columns(const ArrowFields& schema);

/// The fields of `columns`, or of all columns if there are none.
///
/// Errors  std::invalid_argument  a name is missing or used twice, or a shape does not fit its column
///         Error                  no such column, or one that is not read; the message names the file
[[nodiscard]] std::vector<ArrowTableField> resolve_arrow_columns(
    const ArrowFields& schema, std::span<const TableColumn> columns, const std::string& file);

/// The same fields of another file.
///
/// Errors  Error  the file has not the same columns with the same types
[[nodiscard]] std::vector<ArrowTableField> find_arrow_fields(
    const ArrowFields& schema, std::span<const ArrowTableField> fields, const std::string& file,
    const std::string& first_file);

/// What is read of the columns that fields lie in: the nodes on the ways to their values.
[[nodiscard]] ArrowWanted wanted_arrow_nodes(const ArrowFields& schema,
                                             std::span<const ArrowTableField> fields);

/// The names of the classes of a column of integers, from Hugging Face's metadata; none where they have none.
[[nodiscard]] std::vector<std::string> arrow_class_names(const ArrowFields& schema,
                                                         const std::string& column);

}  // namespace penstock::source

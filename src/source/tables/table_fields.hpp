// source/tables/table_fields: from the columns that were asked for to leaves of a table's schema, and the fields they become.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <penstock/core/error.hpp>
#include <penstock/core/tensor.hpp>
#include <penstock/source/tables.hpp>

namespace penstock::source {

/// A column by the name that people give it: "box.left", without the groups that lists consist of.
struct TableLeaf {
  std::string name;
  std::uint32_t number = 0;  ///< of the leaf in its schema
  bool is_media = false;     ///< the bytes of a struct of bytes and path, under the struct's name
};

/// All columns of a schema.
struct TableLeaves {
  std::vector<TableLeaf> fields;  ///< those that a record has where none are named
  std::vector<TableLeaf> parts;   ///< of media structs, which are read where they are named
  std::string_view reader;        ///< the line that reads the table with pyarrow
  const std::string* huggingface = nullptr;  ///< the metadata of Hugging Face, if there are some
};

/// What the values of a leaf are.
struct TableValues {
  DType dtype = DType::u8;  ///< u8 for texts and bytes
  bool is_bytes = false;    ///< a value is any number of bytes
  bool is_list = false;
  std::uint32_t fixed_bytes = 0;  ///< each value is so many bytes, and no number; 0: it is not
  std::uint32_t list_size = 0;    ///< of lists that all have so many values; 0: they may differ
  std::vector<std::uint32_t>
      inner_sizes{};   ///< of lists of lists: the same of those inside, the outer ones first
  std::string unit{};  ///< of dates and times what their integers count: "a timestamp in us"
};

/// How a leaf's values become a field.
struct TableField {
  TableColumn column;      ///< as it was asked for; `column.column` is never empty
  std::uint32_t leaf = 0;  ///< in the schema that it was resolved with
  bool is_media = false;
  TableValues values;
  FieldSpec spec;
  std::size_t at = 0;  ///< among the fields of a record; its lengths are the next

  /// Bytes of a value in the record, where all have the same.
  [[nodiscard]] std::size_t element_bytes() const noexcept {
    return values.fixed_bytes != 0 ? values.fixed_bytes : size_of(spec.dtype);
  }
  /// Whether it is the integer by which a table's rows are labelled.
  [[nodiscard]] bool is_label() const noexcept;
};

/// Refuses a column: "file: the column 'x' is a decimal; ...".
[[noreturn]] void refuse_table_column(const std::string& file, const std::string& column,
                                      const std::string& why, std::string_view reader);

/// Throws an Error for what a table as a whole suffers from: "file: reason (byte 17)".
[[noreturn]] void throw_table_error(const Fault& fault);

/// Errors  Error  lists are in more lists than a shape has extents, or lists of texts or bytes are in lists
void require_list_depth(std::uint32_t lists, bool is_bytes, const std::string& file,
                        const std::string& column, std::string_view reader);

/// The fields of `columns`, or of all columns if there are none. `values_of` says what a leaf's values are, or refuses it.
///
/// Errors  std::invalid_argument  a name is missing or used twice, or a shape does not fit its column
///         Error                  no such column, or one that is not read; the message names the file
[[nodiscard]] std::vector<TableField> resolve_table_columns(
    const TableLeaves& leaves, std::span<const TableColumn> columns, const std::string& file,
    const std::function<TableValues(std::uint32_t leaf, const std::string& column)>& values_of);

/// Errors  Error  the same field of another file has another type
void require_same_field(const TableField& own, const TableField& field, const std::string& file,
                        const std::string& first_file);

/// Adds what a record has of a field: the field itself, and its lengths where `lengths` names them.
void add_specs(const FieldSpec& field, const std::string& lengths, std::vector<FieldSpec>& specs);
inline void add_specs(const TableField& field, std::vector<FieldSpec>& specs) {
  add_specs(field.spec, field.column.lengths, specs);
}

/// What a fingerprint has of a field.
[[nodiscard]] std::string fingerprint_of(const TableField& field);

/// The field whose lengths are those of the rows, for pack() and the like: the first list of numbers, else the only field
/// of shape [?]. None: no such field.
template <class Field>
[[nodiscard]] std::optional<std::size_t> length_field(std::span<const Field> fields) {
  std::optional<std::size_t> only;
  std::size_t dynamic = 0;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const TableField& field = fields[i];
    if (!field.spec.shape.is_dynamic()) continue;
    ++dynamic;
    if (field.spec.shape.rank() != 1 || !field.column.lengths.empty()) continue;
    if (field.values.is_list) return i;
    only = i;
  }
  return dynamic == 1 ? only : std::nullopt;
}

/// The names of the classes of a column of integers, by Hugging Face's metadata; none where they have none. `text` is
/// the value of the key "huggingface", or null.
[[nodiscard]] std::vector<std::string> huggingface_class_names(const std::string* text,
                                                               const std::string& column);

/// Errors  Error  two files of one data set have not the same classes
void require_same_classes(std::span<const std::string> own, std::span<const std::string> classes,
                          const std::string& column, const std::string& file,
                          const std::string& first_file);

}  // namespace penstock::source

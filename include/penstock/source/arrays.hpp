// source/arrays: records that are rows of arrays: mapped files, arrays in memory, or generated
// numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <penstock/core/export.hpp>
#include <penstock/source/source.hpp>

namespace PENSTOCK_EXPORT penstock {

/// One array file whose rows are one field of the records.
struct ArrayField {
  std::string name;            ///< the field's name
  std::filesystem::path path;  ///< a .npy file, or a raw one
  /// the type of a raw file, one that is not .npy; that of a .npy file is compared with it
  std::optional<DType> dtype{};
  /// the shape of one row of a raw file, where () makes each element a row; that of a .npy file is compared with it, unless
  /// it is ()
  Shape shape{};
  std::uint64_t offset = 0;  ///< position of the first row in a raw file, in bytes
};

template <class Visitor>
void visit_fields(Visitor& visit, ArrayField& field) {
  visit.required("name", field.name, {.is_key = true});
  visit.required("path", field.path);
  visit("dtype", field.dtype);
  visit("shape", field.shape);
  visit("offset", field.offset);
}

/// One array in memory whose rows are one field of the records. `owner` keeps `bytes` alive; where it is empty, the caller
/// does.
struct Column {
  FieldSpec spec;  ///< of one row
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner{};
  /// Bytes from the start of one row to that of the next, where rows overlap (windows that slide over tokens) or have gaps
  /// between them; without it rows are contiguous. `bytes` ends with the last row.
  std::optional<std::size_t> stride{};
};

namespace source {

/// Rows of array files, one row a sample. The files are mapped, not read: a record's fields are views into the mapping, and
/// all processes share the system's page cache. (Rows of a raw file that are not aligned for their type are copied.) .npy
/// files, versions 1 to 3, are recognised by their first bytes.
///
/// A file must not become shorter while it is mapped: its size is checked here, but a row that is cut off later ends the
/// process with SIGBUS, as with every mapping. Replace a file by renaming another over it, which leaves the mapped one as
/// it is. The fingerprint covers the types, shapes and values of each field: all values of up to 1 MiB, and 256 pieces of
/// 4 KiB of more.
///
/// Shapes  as in the files, without the first axis.
/// Errors  std::invalid_argument  no fields, a name missing or used twice, a raw row without bytes, an offset into a .npy
///                                file
///         Error                  a file cannot be opened, is cut short, has another type or shape than its field, is
///                                big-endian, Fortran-ordered, has objects or rows without elements, or has another number
///                                of rows than the first
[[nodiscard]] SourcePtr arrays(std::vector<ArrayField> fields);

/// Rows of arrays in memory, one row a sample. Nothing is copied, so do not change the arrays meanwhile. Rows may overlap,
/// as in a window that slides over tokens. The fingerprint is that of `arrays`.
///
/// Shapes  as the arrays, without the first axis.
/// Errors  std::invalid_argument  no columns, a name missing or used twice, a row without a fixed number of bytes, bytes
///                                that are not whole rows, or columns of different lengths
[[nodiscard]] SourcePtr memory(std::vector<Column> columns);

/// A column that takes `values` over; each row has the shape `row`.
///
///   memory({source::column("xy", std::vector<float>{0, 0, 1, 1}, {2}),
///           source::column("label", std::vector<std::int64_t>{0, 1})})
template <class T>
[[nodiscard]] Column column(std::string name, std::vector<T>&& values, const Shape& row = {}) {
  auto owner = std::make_shared<const std::vector<T>>(std::move(values));
  return {{std::move(name), dtype_of<T>(), row}, std::as_bytes(std::span(*owner)), owner};
}

/// A column of `values` that stay the caller's and outlive the source.
template <class T>
[[nodiscard]] Column column(std::string name, std::span<const T> values, const Shape& row = {}) {
  return {{std::move(name), dtype_of<T>(), row}, std::as_bytes(values)};
}

/// `size` records that cost next to nothing: record i holds the number i, repeated. For measuring
/// what everything around a source costs.
///
/// Shapes  number u64 [bytes / 8].
/// Errors  std::invalid_argument  bytes is 0 or not a multiple of 8
[[nodiscard]] SourcePtr numbers(std::uint64_t size, std::size_t bytes = 16);

}  // namespace source
}  // namespace penstock

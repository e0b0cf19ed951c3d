// source/tables/table_row: the values of a table's row as the fields of a record, and what is wrong with them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <penstock/source/source.hpp>

#include "src/source/tables/table_fields.hpp"

namespace penstock::source {

/// Writes a number, which the type can hold.
void fill_number(DType dtype, double value, std::byte* to) noexcept;

/// A number of an integer type; nothing of a u64 that i64 has not.
[[nodiscard]] std::optional<std::int64_t> integer_of(DType dtype, const std::byte* at) noexcept;
/// A column's default_value as a label; nothing of one that i64 has not.
[[nodiscard]] std::optional<std::int64_t> default_label(const TableColumn& column) noexcept;

/// Why a row's lists of lists are refused.
[[nodiscard]] std::string other_list_text(const TableField& field, std::string_view found);

/// Fills a record with one row, field by field. Faults have the offset that a function is given, and neither file nor
/// column.
class TableRow {
 public:
  /// Keeps a reference to `record`.
  TableRow(Record& record, std::uint64_t max_record_bytes) noexcept
      : record_(record), most_(max_record_bytes) {}

  [[nodiscard]] Record& record() noexcept { return record_; }
  [[nodiscard]] bool is_wanted(const TableField& field) const noexcept {
    return record_.is_wanted(field.at) ||
           (!field.column.lengths.empty() && record_.is_wanted(field.at + 1));
  }

  /// Counts bytes that the row takes.
  [[nodiscard]] Result<void> count(std::uint64_t bytes, std::uint64_t offset);
  /// A value of texts or bytes has so many.
  [[nodiscard]] static Result<void> require_bytes(const TableField& field, std::uint64_t bytes,
                                                  std::uint64_t offset);

  /// The value of a row is null.
  [[nodiscard]] Result<void> set_null(const TableField& field, std::uint64_t offset);
  /// A value of texts or bytes; copies it, unless it `stays` as long as the source does.
  [[nodiscard]] Result<void> set_bytes(const TableField& field, std::span<const std::byte> value,
                                       std::uint64_t offset, bool stays = false);

  /// A list of texts or bytes. for_each(use) calls use(value, is_there) for each of its elements, and is called twice.
  template <class ForEach>
  [[nodiscard]] Result<void> set_byte_list(const TableField& field, std::uint64_t offset,
                                           const ForEach& for_each);

  /// Room for `elements` numbers of a field, a list's or one, which the caller fills and sets by set_numbers(), before it
  /// makes more.
  [[nodiscard]] Result<std::span<std::byte>> make_room(const TableField& field,
                                                       std::uint64_t elements, bool has_null,
                                                       std::uint64_t offset);
  void set_numbers(const TableField& field, std::span<const std::byte> room) {
    record_.set(field.at, room.data(), field.spec.dtype, *shape_);
  }
  /// Numbers that stay as long as the source does, aligned for their type.
  [[nodiscard]] Result<void> set_view(const TableField& field, std::uint64_t elements,
                                      const std::byte* numbers, std::uint64_t offset);

  static Fault fault(std::uint64_t offset, std::string reason) {
    return {.reason = std::move(reason), .file = {}, .offset = offset};
  }

 private:
  // The shape of so many numbers becomes *shape_.
  [[nodiscard]] Result<void> find_shape(const TableField& field, std::uint64_t elements,
                                        std::uint64_t offset);
  [[nodiscard]] static Fault null_element(std::uint64_t offset);

  Record& record_;
  std::uint64_t most_;
  std::uint64_t taken_ = 0;
  const Shape* shape_ = nullptr;  // the field's own where it is known, which saves copies
  Shape dynamic_shape_;
};

template <class ForEach>
Result<void> TableRow::set_byte_list(const TableField& field, std::uint64_t offset,
                                     const ForEach& for_each) {
  std::uint64_t bytes = 0;
  std::uint64_t elements = 0;
  bool has_null = false;
  for_each([&](std::span<const std::byte> value, bool is_there) {
    bytes += value.size();
    ++elements;
    has_null |= !is_there;
  });
  if (has_null && field.column.required && !record_.leaves_out_nulls()) return null_element(offset);
  if (auto result = count(bytes + elements * sizeof(std::int64_t), offset); !result) return result;
  auto lengths = record_.allocate(static_cast<std::size_t>(elements) * sizeof(std::int64_t));
  if (!lengths) return fault(offset, std::move(lengths.fault().reason));
  auto out = record_.allocate(static_cast<std::size_t>(bytes));
  if (!out) return fault(offset, std::move(out.fault().reason));
  std::byte* at = out->data();
  std::byte* length_at = lengths->data();
  for_each([&](std::span<const std::byte> value, bool) {
    if (!value.empty()) std::memcpy(at, value.data(), value.size());
    at += value.size();
    const auto length = static_cast<std::int64_t>(value.size());
    std::memcpy(length_at, &length, sizeof length);
    length_at += sizeof length;
  });
  record_.set(field.at, out->data(), DType::u8, Shape{static_cast<std::int64_t>(bytes)});
  record_.set(field.at + 1, lengths->data(), DType::i64,
              Shape{static_cast<std::int64_t>(elements)});
  return {};
}

}  // namespace penstock::source

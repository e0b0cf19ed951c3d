#include "src/source/tables/table_row.hpp"

#include <algorithm>

#include "src/core/can_hold.hpp"

namespace penstock::source {

namespace {

// The shape with another first extent.
Shape with_first(const Shape& shape, std::int64_t rows) {
  return Shape(shape.extents().subspan(1)).with_rows(rows);
}

}  // namespace

void fill_number(DType dtype, double value, std::byte* to) noexcept {
  const auto put = [&](auto number) { std::memcpy(to, &number, sizeof number); };
  switch (dtype) {
    case DType::u8:
    case DType::boolean:
      return put(static_cast<std::uint8_t>(value));
    case DType::i8:
      return put(static_cast<std::int8_t>(value));
    case DType::u16:
      return put(static_cast<std::uint16_t>(value));
    case DType::i16:
      return put(static_cast<std::int16_t>(value));
    case DType::u32:
      return put(static_cast<std::uint32_t>(value));
    case DType::i32:
      return put(static_cast<std::int32_t>(value));
    case DType::u64:
      return put(static_cast<std::uint64_t>(value));
    case DType::i64:
      return put(static_cast<std::int64_t>(value));
    case DType::f32:
      return put(static_cast<float>(value));
    case DType::f64:
      return put(value);
    case DType::f16:
    case DType::bf16:
      return put(std::uint16_t{0});  // other defaults are refused
  }
}

std::optional<std::int64_t> integer_of(DType dtype, const std::byte* at) noexcept {
  const auto as = [&]<class T>(T value) -> std::optional<std::int64_t> {
    std::memcpy(&value, at, sizeof value);
    if (!std::in_range<std::int64_t>(value)) return std::nullopt;
    return static_cast<std::int64_t>(value);
  };
  switch (dtype) {
    case DType::u8:
      return as(std::uint8_t{});
    case DType::i8:
      return as(std::int8_t{});
    case DType::u16:
      return as(std::uint16_t{});
    case DType::i16:
      return as(std::int16_t{});
    case DType::u32:
      return as(std::uint32_t{});
    case DType::i32:
      return as(std::int32_t{});
    case DType::u64:
      return as(std::uint64_t{});
    default:
      return as(std::int64_t{});
  }
}

std::optional<std::int64_t> default_label(const TableColumn& column) noexcept {
  if (!core::can_hold(DType::i64, column.default_value)) return std::nullopt;
  return static_cast<std::int64_t>(column.default_value);
}

std::string other_list_text(const TableField& field, std::string_view found) {
  return fmt::format("expected lists of the shape {}, found an inner one {}",
                     field.spec.shape.to_string(), found);
}

Result<void> TableRow::count(std::uint64_t bytes, std::uint64_t offset) {
  taken_ += bytes;
  if (taken_ <= most_) return {};
  return fault(offset, fmt::format("the row takes {} bytes up to here, more than "
                                   "max_record_bytes = {}",
                                   taken_, most_));
}

Result<void> TableRow::require_bytes(const TableField& field, std::uint64_t bytes,
                                     std::uint64_t offset) {
  if (field.spec.shape.is_dynamic() || bytes == field.spec.bytes()) return {};
  return fault(offset, fmt::format("expected {} bytes, found {}", field.spec.bytes(), bytes));
}

Result<void> TableRow::set_null(const TableField& field, std::uint64_t offset) {
  if (record_.leaves_out_nulls()) return {};
  if (field.column.required) {
    return fault(
        offset, field.is_media
                    ? "the row has no bytes here: it is null, or has a path alone, as datasets "
                      "makes of folders of files until save_to_disk() or to_parquet() puts their "
                      "bytes in; in Python Dataset(data) reads the paths; with required = false it "
                      "would be empty"
                    : "the value is null; with required = false it would be empty, or "
                      "default_value");
  }
  if (field.spec.shape.is_dynamic()) {
    record_.set(field.at, nullptr, field.spec.dtype, with_first(field.spec.shape, 0));
    if (!field.column.lengths.empty()) record_.set(field.at + 1, nullptr, DType::i64, Shape{0});
    return {};
  }
  auto out = record_.allocate_field(field.at, field.spec.bytes());
  if (!out) return fault(offset, std::move(out.fault().reason));
  const std::size_t each = size_of(field.spec.dtype);
  for (std::size_t at = 0; at < out->size(); at += each)
    fill_number(field.spec.dtype, field.column.default_value, out->data() + at);
  record_.set(field.at, out->data(), field.spec.dtype, field.spec.shape);
  return {};
}

Result<void> TableRow::set_bytes(const TableField& field, std::span<const std::byte> value,
                                 std::uint64_t offset, bool stays) {
  if (auto result = count(value.size(), offset); !result) return result;
  if (auto result = require_bytes(field, value.size(), offset); !result) return result;
  if (!stays) {
    auto out = record_.allocate(value.size());
    if (!out) return fault(offset, std::move(out.fault().reason));
    std::ranges::copy(value, out->data());
    value = *out;
  }
  record_.set(field.at, value.data(), DType::u8, Shape{static_cast<std::int64_t>(value.size())});
  return {};
}

Fault TableRow::null_element(std::uint64_t offset) {
  return fault(offset,
               "an element of the list is null; with required = false it would be "
               "default_value, or empty");
}

Result<std::span<std::byte>> TableRow::make_room(const TableField& field, std::uint64_t elements,
                                                 bool has_null, std::uint64_t offset) {
  if (has_null && field.column.required && !record_.leaves_out_nulls()) return null_element(offset);
  const std::uint64_t bytes = elements * field.element_bytes();
  if (auto result = find_shape(field, bytes / size_of(field.spec.dtype), offset); !result)
    return std::move(result.fault());
  if (auto result = count(bytes, offset); !result) return std::move(result.fault());
  auto out = shape_ == &dynamic_shape_
                 ? record_.allocate(static_cast<std::size_t>(bytes))
                 : record_.allocate_field(field.at, static_cast<std::size_t>(bytes));
  if (!out) return fault(offset, std::move(out.fault().reason));
  return *out;
}

Result<void> TableRow::set_view(const TableField& field, std::uint64_t elements,
                                const std::byte* numbers, std::uint64_t offset) {
  const std::uint64_t bytes = elements * field.element_bytes();
  if (auto result = find_shape(field, bytes / size_of(field.spec.dtype), offset); !result)
    return result;
  if (auto result = count(bytes, offset); !result) return result;
  record_.set(field.at, numbers, field.spec.dtype, *shape_);
  return {};
}

Result<void> TableRow::find_shape(const TableField& field, std::uint64_t elements,
                                  std::uint64_t offset) {
  const Shape& shape = field.spec.shape;
  if (!shape.is_dynamic()) {
    shape_ = &shape;
    const auto expected = static_cast<std::uint64_t>(shape.elements());
    if (elements == expected) return {};
    return fault(offset, fmt::format("expected {} values, for the shape {}, found {}", expected,
                                     shape.to_string(), elements));
  }
  const auto row = static_cast<std::uint64_t>(with_first(shape, 1).elements());
  if (elements % row != 0)
    return fault(offset, fmt::format("expected a multiple of {} values, for the shape {}, found {}",
                                     row, shape.to_string(), elements));
  dynamic_shape_ = with_first(shape, static_cast<std::int64_t>(elements / row));
  shape_ = &dynamic_shape_;
  return {};
}

}  // namespace penstock::source

#include "src/source/mds/set_field.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>

#include <fmt/format.h>

#include "src/core/printable.hpp"
#include "src/source/little_endian.hpp"
#include "src/source/mds/values.hpp"

namespace penstock::source {

namespace {

Fault unfit_value(std::string reason) { return {.reason = std::move(reason), .file = {}}; }

Shape with_first_extent(const Shape& shape, std::int64_t rows) {
  return Shape(shape.extents().subspan(1)).with_rows(rows);
}

Fault unlike_number(std::span<const std::byte> value, std::string_view expected) {
  constexpr std::size_t kMost = 40;
  const std::string_view text(reinterpret_cast<const char*>(value.data()),
                              std::min(kMost, value.size()));
  return unfit_value(fmt::format("expected {}, found '{}'", expected, core::printable(text)));
}

Result<void> set_number(const MdsField& field, const MdsColumnType& type,
                        std::span<const std::byte> value, Record& record) {
  auto out = record.allocate_field(field.at, size_of(field.spec.dtype));
  if (!out) return std::move(out.fault());
  const auto put = [&](auto found) { std::memcpy(out->data(), &found, sizeof found); };
  if (field.kind == MdsKind::text_real) {
    const auto real = mds_real(value);
    if (!real) return unlike_number(value, "a number");
    put(*real);
  } else if (field.kind == MdsKind::number && field.spec.dtype == type.dtype) {
    const std::size_t each = size_of(*type.dtype);
    if (value.size() != each)
      return unfit_value(fmt::format("expected {} of {} bytes, found {}", name_of(*type.dtype),
                                     each, value.size()));
    if (type.dtype == DType::boolean && value[0] > std::byte{1})
      return unlike_number(value, "a bool, 0 or 1");
    std::ranges::copy(value, out->data());
  } else {
    const auto integer = mds_integer(type, value);
    if (!integer) return unlike_number(value, "an integer from -2^63 to 2^63-1");
    put(*integer);
  }
  record.set(field.at, out->data(), field.spec.dtype, Shape{});
  return {};
}

// Into memory that is aligned for them.
Result<void> copy_values(const MdsField& field, std::span<const std::byte> values,
                         const Shape& shape, Record& record) {
  auto out = field.spec.shape.is_dynamic() ? record.allocate(values.size())
                                           : record.allocate_field(field.at, values.size());
  if (!out) return std::move(out.fault());
  std::ranges::copy(values, out->data());
  record.set(field.at, out->data(), field.spec.dtype, shape);
  return {};
}

Result<Shape> shape_of_elements(const Shape& expected, std::uint64_t elements) {
  if (!expected.is_dynamic()) {
    if (elements == static_cast<std::uint64_t>(expected.elements())) return expected;
    return unfit_value(fmt::format("expected {} values, for the shape {}, found {}",
                                   expected.elements(), expected.to_string(), elements));
  }
  const auto row = static_cast<std::uint64_t>(with_first_extent(expected, 1).elements());
  if (elements % row == 0)
    return with_first_extent(expected, static_cast<std::int64_t>(elements / row));
  return unfit_value(fmt::format("expected a multiple of {} values, for the shape {}, found {}",
                                 row, expected.to_string(), elements));
}

Result<void> set_bytes(const MdsField& field, std::span<const std::byte> value, Record& record) {
  const std::uint64_t each = size_of(field.spec.dtype);
  if (value.size() % each != 0)
    return unfit_value(fmt::format("expected a multiple of {} bytes, for {}, found {}", each,
                                   name_of(field.spec.dtype), value.size()));
  const Result<Shape> shape = shape_of_elements(field.spec.shape, value.size() / each);
  if (!shape) return shape.fault();
  if (each > 1 || !field.spec.shape.is_dynamic()) return copy_values(field, value, *shape, record);
  record.set(field.at, value.data(), field.spec.dtype, *shape);
  return {};
}

Result<void> set_array(const MdsField& field, const MdsColumnType& type,
                       std::span<const std::byte> value, Record& record) {
  const auto array = read_mds_array(type, value);
  if (!array) return array.fault();
  const Shape& expected = field.spec.shape;
  const Shape& found = array->shape;
  const bool fits =
      found.rank() == expected.rank() &&
      (expected.is_dynamic() ? with_first_extent(expected, found[0]) == found : expected == found);
  if (array->dtype == field.spec.dtype && fits)
    return copy_values(field, array->values, found, record);
  return unfit_value(fmt::format(
      "expected an array {} {}, found {} {}; its shape and dtype can be "
      "named in MdsColumn",
      name_of(field.spec.dtype), expected.to_string(), name_of(array->dtype), found.to_string()));
}

Result<void> set_list(const MdsField& field, const MdsColumnType& type,
                      std::span<const std::byte> value, Record& record) {
  const auto list = read_mds_list(type, value);
  if (!list) return list.fault();
  const std::size_t count = list->lengths.size() / sizeof(std::uint32_t);
  auto lengths = record.allocate(count * sizeof(std::int64_t));
  if (!lengths) return std::move(lengths.fault());
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t length =
        load_little_endian<std::uint32_t>(list->lengths, i * sizeof(std::uint32_t));
    std::memcpy(lengths->data() + i * sizeof length, &length, sizeof length);
  }
  record.set(field.at, list->bytes.data(), DType::u8,
             Shape{static_cast<std::int64_t>(list->bytes.size())});
  record.set(field.at + 1, lengths->data(), DType::i64, Shape{static_cast<std::int64_t>(count)});
  return {};
}

}  // namespace

Result<void> set_mds_field(const MdsField& field, const MdsColumnType& type,
                           std::span<const std::byte> value, Record& record) {
  switch (field.kind) {
    case MdsKind::array:
      return set_array(field, type, value, record);
    case MdsKind::byte_list:
      return set_list(field, type, value, record);
    case MdsKind::bytes:
      return set_bytes(field, value, record);
    default:
      return set_number(field, type, value, record);
  }
}

}  // namespace penstock::source

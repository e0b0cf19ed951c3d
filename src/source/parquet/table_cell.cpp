#include "src/source/parquet/table_cell.hpp"

#include <cstring>

namespace penstock::source {

namespace {

template <class T>
bool narrow(const std::byte* from, std::byte* to) noexcept {
  const auto value = load_little_endian<std::int32_t>({from, sizeof(std::int32_t)});
  const auto narrowed = static_cast<T>(value);
  std::memcpy(to, &narrowed, sizeof narrowed);
  return static_cast<std::int32_t>(narrowed) == value;
}

// One value of a file as the field has it; false if it is out of the type's range.
bool copy_number(const ParquetField& field, const std::byte* from, std::byte* to) noexcept {
  if (field.file_width == field.element_bytes()) {
    std::memcpy(to, from, field.file_width);
    return true;
  }
  switch (field.dtype) {
    case DType::i8:
      return narrow<std::int8_t>(from, to);
    case DType::u8:
      return narrow<std::uint8_t>(from, to);
    case DType::i16:
      return narrow<std::int16_t>(from, to);
    default:
      return narrow<std::uint16_t>(from, to);
  }
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

std::int64_t integer_of(DType dtype, const std::byte* at) noexcept {
  const auto as = [&]<class T>(T value) {
    std::memcpy(&value, at, sizeof value);
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
    default:
      return as(std::int64_t{});
  }
}

bool ParquetCell::is_null(const ParquetField& field) const noexcept {
  const Part& first = parts.front();
  if (first.piece.first_slot == first.piece.last_slot) return true;
  const std::uint8_t level = first.page->definition(first.piece.first_slot, field.max_definition);
  return field.is_list ? level + 1 < field.list_definition : level < field.max_definition;
}

ParquetCell::Count ParquetCell::count_elements(const ParquetField& field) const {
  Count count;
  for_each(field, [&](std::span<const std::byte>, bool is_there) {
    ++count.elements;
    count.has_null |= !is_there;
  });
  return count;
}

bool ParquetCell::copy_numbers(const ParquetField& field, std::span<std::byte> out) const {
  const std::size_t each = field.element_bytes();
  std::byte* at = out.data();
  std::uint64_t values = 0;
  for (const Part& part : parts) values += part.piece.last_value - part.piece.first_value;
  if (values * each == out.size() && field.file_width == each) {
    for (const Part& part : parts) {
      const std::size_t bytes = (part.piece.last_value - part.piece.first_value) * each;
      if (bytes == 0) continue;
      std::memcpy(at, part.page->values().bytes.data() + part.piece.first_value * each, bytes);
      at += bytes;
    }
    return true;
  }
  bool is_good = true;
  for_each(field, [&](std::span<const std::byte> value, bool is_there) {
    if (!is_there) {
      for (std::size_t byte = 0; byte < each; byte += size_of(field.dtype))
        fill_number(field.dtype, field.column.default_value, at + byte);
    } else {
      is_good &= copy_number(field, value.data(), at);
    }
    at += each;
  });
  return is_good;
}

}  // namespace penstock::source

#include "src/source/parquet/table_cell.hpp"

#include <algorithm>
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
  if (field.file_width != sizeof(std::int32_t)) return false;
  switch (field.spec.dtype) {
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

bool is_null_parquet_list(const ParquetPageRows& page, const ParquetPiece& piece,
                          std::uint8_t max_definition, std::uint8_t list_definition) noexcept {
  return piece.first_slot == piece.last_slot ||
         page.definition(piece.first_slot, max_definition) + 1 < list_definition;
}

bool ParquetCell::is_null(const ParquetField& field) const noexcept {
  const Part& first = parts.front();
  if (field.values.is_list)
    return is_null_parquet_list(*first.page, first.piece, field.max_definition,
                                field.list_definition);
  return first.piece.first_slot == first.piece.last_slot ||
         first.page->definition(first.piece.first_slot, field.max_definition) <
             field.max_definition;
}

std::optional<std::string> ParquetCell::find_other_list(const ParquetField& field) const {
  const std::size_t inner = field.values.inner_sizes.size();
  if (inner == 0) return std::nullopt;
  const Shape& shape = field.spec.shape;
  // The level that the next slot has: that of the outermost list in which it begins another element.
  std::uint64_t element = 0;
  const auto expected_level = [&] {
    if (element == 0) return std::size_t{0};
    std::size_t level = inner + 1;
    std::uint64_t elements = 1;
    for (; level > 1; --level) {
      elements *= static_cast<std::uint64_t>(shape[level - 1]);
      if (element % elements != 0) break;
    }
    return level;
  };
  for (const Part& part : parts) {
    for (std::uint32_t slot = part.piece.first_slot; slot < part.piece.last_slot; ++slot) {
      const std::uint8_t level = part.page->definition(slot, field.max_definition);
      if (level < field.list_definition && element == 0) return std::nullopt;  // an empty list
      if (level < field.element_definition) return other_list_text(field, "that is null or empty");
      if (part.page->repetition(slot) != expected_level())
        return other_list_text(field, "of another size");
      ++element;
    }
  }
  if (expected_level() > 1) return other_list_text(field, "of another size");
  return std::nullopt;
}

ParquetCell::Count ParquetCell::count_elements(const ParquetField& field) const {
  Count count;
  const bool has_all = std::ranges::all_of(parts, [](const Part& part) {
    return part.piece.last_value - part.piece.first_value ==
           part.piece.last_slot - part.piece.first_slot;
  });
  if (has_all) {
    for (const Part& part : parts) count.elements += part.piece.last_slot - part.piece.first_slot;
    return count;
  }
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
      for (std::size_t byte = 0; byte < each; byte += size_of(field.spec.dtype))
        fill_number(field.spec.dtype, field.column.default_value, at + byte);
    } else {
      is_good &= copy_number(field, value.data(), at);
    }
    at += each;
  });
  return is_good;
}

}  // namespace penstock::source

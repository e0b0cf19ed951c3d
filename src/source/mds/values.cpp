#include "src/source/mds/values.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include <fmt/format.h>

#include "src/source/little_endian.hpp"

namespace penstock::source {

namespace {

constexpr std::size_t kListNumber = sizeof(std::uint32_t);

std::string_view text_of_value(std::span<const std::byte> value) {
  return {reinterpret_cast<const char*>(value.data()), value.size()};
}

Fault bad_value(std::string reason) { return {.reason = std::move(reason), .file = {}}; }

// As the first byte of an array without a type in its encoding.
std::optional<DType> dtype_of_code(std::uint8_t code) noexcept {
  switch (code) {
    case 8:
      return DType::u8;
    case 9:
      return DType::i8;
    case 16:
      return DType::u16;
    case 17:
      return DType::i16;
    case 18:
      return DType::f16;
    case 32:
      return DType::u32;
    case 33:
      return DType::i32;
    case 34:
      return DType::f32;
    case 64:
      return DType::u64;
    case 65:
      return DType::i64;
    case 66:
      return DType::f64;
    default:
      return std::nullopt;
  }
}

// None for what is no integer, or more than 2^63-1.
std::optional<std::int64_t> load_integer(DType dtype, std::span<const std::byte> bytes) noexcept {
  switch (dtype) {
    case DType::i8:
      return load_little_endian<std::int8_t>(bytes);
    case DType::u8:
      return load_little_endian<std::uint8_t>(bytes);
    case DType::i16:
      return load_little_endian<std::int16_t>(bytes);
    case DType::u16:
      return load_little_endian<std::uint16_t>(bytes);
    case DType::i32:
      return load_little_endian<std::int32_t>(bytes);
    case DType::u32:
      return load_little_endian<std::uint32_t>(bytes);
    case DType::i64:
      return load_little_endian<std::int64_t>(bytes);
    case DType::u64: {
      const auto number = load_little_endian<std::int64_t>(bytes);
      return number >= 0 ? std::optional(number) : std::nullopt;
    }
    default:
      return std::nullopt;
  }
}

std::uint64_t load_extent(std::span<const std::byte> bytes, std::size_t width) noexcept {
  std::uint64_t extent = 0;
  std::memcpy(&extent, bytes.data(), width);
  return extent;
}

std::uint32_t take_number(MdsArrayHead head, std::span<const std::byte>& rest) noexcept {
  const auto number = load_little_endian<std::uint32_t>(rest);
  rest = rest.subspan(sizeof number);
  if (head != MdsArrayHead::litdata_tensor) return number;
  return number >> 24 | (number >> 8 & 0xFF00) | (number << 8 & 0xFF0000) | number << 24;
}

// The type and the extents of an array of LitData's, and the rest of its bytes.
Result<MdsArray> take_litdata_head(MdsArrayHead head, std::span<const std::byte> rest) {
  if (rest.size() < 2 * sizeof(std::uint32_t))
    return bad_value("the array ends before its type and shape");
  const std::uint32_t type = take_number(head, rest);
  const auto dtype = litdata_dtype(head, type);
  if (!dtype) return bad_value(fmt::format("{} is no type of an array that is read here", type));
  const std::uint32_t rank = take_number(head, rest);
  if (rank > Shape::kMaxRank)
    return bad_value(fmt::format("the array has {} dimensions, and {} are the most that are read",
                                 rank, Shape::kMaxRank));
  if (rest.size() < rank * sizeof(std::uint32_t))
    return bad_value("the array ends within its shape");
  std::array<std::int64_t, Shape::kMaxRank> extents{};
  for (std::size_t i = 0; i < rank; ++i) extents[i] = take_number(head, rest);
  return MdsArray{*dtype, Shape(std::span<const std::int64_t>(extents.data(), rank)), rest};
}

// The extents of an array, and the rest of its bytes.
Result<Shape> take_shape(std::span<const std::byte>& rest) {
  if (rest.empty()) return bad_value("the array ends before its shape");
  const auto head = std::to_integer<std::uint8_t>(rest[0]);
  const std::size_t rank = head >> 2;
  const std::size_t width = std::size_t{1} << (head & 3);
  rest = rest.subspan(1);
  if (rank > Shape::kMaxRank)
    return bad_value(fmt::format("the array has {} dimensions, and {} are the most that are read",
                                 rank, Shape::kMaxRank));
  if (rest.size() < rank * width) return bad_value("the array ends within its shape");
  std::array<std::int64_t, Shape::kMaxRank> extents{};
  for (std::size_t i = 0; i < rank; ++i) {
    const std::uint64_t extent = load_extent(rest.subspan(i * width), width);
    // Of more there is not the memory, and products stay within 64 bits where each is compared.
    if (extent > UINT32_MAX)
      return bad_value(
          fmt::format("an extent of the array is {}, more than a shard holds", extent));
    extents[i] = static_cast<std::int64_t>(extent);
  }
  rest = rest.subspan(rank * width);
  return Shape(std::span<const std::int64_t>(extents.data(), rank));
}

}  // namespace

std::optional<std::int64_t> mds_integer(const MdsColumnType& column,
                                        std::span<const std::byte> value) {
  if (column.kind == MdsKind::text_integer) {
    const std::string_view text = text_of_value(value);
    std::int64_t number = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || stop != text.data() + text.size()) return std::nullopt;
    return number;
  }
  if (column.kind != MdsKind::number || value.size() != size_of(*column.dtype)) return std::nullopt;
  return load_integer(*column.dtype, value);
}

std::optional<double> mds_real(std::span<const std::byte> value) {
  const std::string_view text = text_of_value(value);
  double number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || stop != text.data() + text.size()) return std::nullopt;
  return number;
}

Result<MdsArray> read_mds_array(const MdsColumnType& column, std::span<const std::byte> value) {
  MdsArray array;
  std::span<const std::byte> rest = value;
  std::optional<DType> dtype = column.dtype;
  if (column.head != MdsArrayHead::mds) {
    auto found = take_litdata_head(column.head, value);
    if (!found) return std::move(found.fault());
    dtype = found->dtype;
    array.shape = found->shape;
    rest = found->values;
  } else if (!dtype) {
    if (rest.empty()) return bad_value("the array ends before its type");
    const auto code = std::to_integer<std::uint8_t>(rest[0]);
    dtype = dtype_of_code(code);
    if (!dtype) return bad_value(fmt::format("{} is no type of an array", code));
    rest = rest.subspan(1);
  }
  array.dtype = *dtype;
  if (column.shape) {
    array.shape = *column.shape;
  } else if (column.head == MdsArrayHead::mds) {
    Result<Shape> shape = take_shape(rest);
    if (!shape) return std::move(shape.fault());
    array.shape = *shape;
  }
  std::uint64_t left = rest.size() / size_of(*dtype);
  const bool is_whole = rest.size() % size_of(*dtype) == 0;
  for (const std::int64_t extent : array.shape.extents()) {
    const auto parts = static_cast<std::uint64_t>(extent);
    if (!is_whole || parts == 0 || left % parts != 0)
      left = 0;
    else
      left /= parts;
  }
  // LitData writes arrays without elements, and MosaicML's streaming does not.
  const bool is_empty = column.head != MdsArrayHead::mds &&
                        std::ranges::count(array.shape.extents(), std::int64_t{0}) > 0;
  if (is_empty ? !rest.empty() : left != 1)
    return bad_value(fmt::format("the array has the shape {} of {}, and {} bytes",
                                 array.shape.to_string(), name_of(*dtype), rest.size()));
  array.values = rest;
  return array;
}

Result<MdsByteList> read_mds_list(const MdsColumnType& column, std::span<const std::byte> value) {
  const std::size_t head = column.list_head + kListNumber;
  if (value.size() < head) return bad_value("the list ends before the number of its images");
  const auto count = load_little_endian<std::uint32_t>(value, column.list_head);
  const std::span<const std::byte> rest = value.subspan(head);
  if (count > rest.size() / kListNumber)
    return bad_value(
        fmt::format("the list has {} images, and {} bytes for all of them", count, rest.size()));
  const MdsByteList list{.lengths = rest.first(count * kListNumber),
                         .bytes = rest.subspan(count * kListNumber)};
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < count; ++i)
    bytes += load_little_endian<std::uint32_t>(list.lengths, i * kListNumber);
  if (bytes != list.bytes.size())
    return bad_value(fmt::format("the images of the list take {} bytes, and it has {}", bytes,
                                 list.bytes.size()));
  return list;
}

std::optional<std::uint64_t> mds_length(const MdsColumnType& column, std::uint64_t bytes,
                                        DType dtype) {
  const std::uint64_t each = size_of(dtype);
  if (column.kind == MdsKind::bytes)
    return bytes % each == 0 ? std::optional(bytes / each) : std::nullopt;
  if (column.kind != MdsKind::array || column.shape) return std::nullopt;
  if (column.head != MdsArrayHead::mds) {
    // Of one dimension.
    constexpr std::uint64_t kHead = 3 * sizeof(std::uint32_t);
    return bytes >= kHead && (bytes - kHead) % each == 0 ? std::optional((bytes - kHead) / each)
                                                         : std::nullopt;
  }
  // Its extent is written in as few bytes as it fits: of these sizes of a head one gives such an extent.
  const std::uint64_t before = column.dtype ? 1 : 2;
  for (unsigned code = 0; code < 4; ++code) {
    const std::uint64_t head = before + (std::uint64_t{1} << code);
    if (bytes <= head || (bytes - head) % each != 0) continue;
    const std::uint64_t elements = (bytes - head) / each;
    const unsigned fitting = elements <= UINT8_MAX    ? 0
                             : elements <= UINT16_MAX ? 1
                             : elements <= UINT32_MAX ? 2
                                                      : 3;
    if (code == fitting) return elements;
  }
  return std::nullopt;
}

}  // namespace penstock::source

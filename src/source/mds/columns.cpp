#include "src/source/mds/columns.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <penstock/core/random.hpp>

#include "src/core/printable.hpp"
#include "src/source/little_endian.hpp"

namespace penstock::source {

namespace {

constexpr std::size_t kSizeBytes = sizeof(std::uint32_t);  // of a value's size in a row

struct NamedType {
  std::string_view name;
  DType dtype;
};
constexpr std::array<NamedType, 11> kMdsTypes{{
    {"uint8", DType::u8},
    {"int8", DType::i8},
    {"uint16", DType::u16},
    {"int16", DType::i16},
    {"float16", DType::f16},
    {"uint32", DType::u32},
    {"int32", DType::i32},
    {"float32", DType::f32},
    {"uint64", DType::u64},
    {"int64", DType::i64},
    {"float64", DType::f64},
}};

std::optional<DType> mds_dtype_of(std::string_view name) noexcept {
  for (const NamedType& type : kMdsTypes)
    if (type.name == name) return type.dtype;
  return std::nullopt;
}

// "3,4"; none where it is no shape, or one of more extents or elements than are read.
std::optional<Shape> mds_shape_of(std::string_view text, std::size_t element_bytes) {
  constexpr std::uint64_t kMostBytes = UINT32_MAX;
  std::vector<std::int64_t> extents;
  std::uint64_t bytes = element_bytes;
  for (const char* at = text.data(); extents.size() < Shape::kMaxRank;) {
    const char* const end = text.data() + text.size();
    std::int64_t extent = 0;
    const auto [stop, error] = std::from_chars(at, end, extent);
    if (error != std::errc{} || extent < 1 ||
        static_cast<std::uint64_t>(extent) > kMostBytes / bytes)
      return std::nullopt;
    bytes *= static_cast<std::uint64_t>(extent);
    extents.push_back(extent);
    if (stop == end) return Shape(extents);
    if (*stop != ',') return std::nullopt;
    at = stop + 1;
  }
  return std::nullopt;
}

// What follows "ndarray" and a colon.
void read_array_type(std::string_view text, MdsColumnType& column) {
  if (text.empty()) {
    column.kind = MdsKind::array;
    return;
  }
  const std::size_t colon = text.find(':');
  column.dtype = mds_dtype_of(text.substr(0, colon));
  if (!column.dtype) return;
  if (colon != text.npos) {
    column.shape = mds_shape_of(text.substr(colon + 1), size_of(*column.dtype));
    if (!column.shape) return;
    column.size = static_cast<std::uint64_t>(column.shape->elements()) * size_of(*column.dtype);
  }
  column.kind = MdsKind::array;
}

}  // namespace

MdsColumnType mds_column_type(std::string name, std::string encoding) {
  MdsColumnType column{.name = std::move(name), .encoding = std::move(encoding)};
  const std::string_view text = column.encoding;
  constexpr std::string_view kArray = "ndarray";
  if (const auto dtype = text == "int" ? DType::i64 : mds_dtype_of(text)) {
    column.kind = MdsKind::number;
    column.dtype = dtype;
    column.size = size_of(*dtype);
  } else if (text == "bytes" || text == "str" || text == "json" || text == "str_decimal") {
    column.kind = MdsKind::bytes;
  } else if (text == "jpeg" || text == "png") {
    column.kind = MdsKind::bytes;
    column.is_image = true;
  } else if (text == "str_int") {
    column.kind = MdsKind::text_integer;
  } else if (text == "str_float") {
    column.kind = MdsKind::text_real;
  } else if (text == "jpegarray" || text == "jpeg_array") {
    column.kind = MdsKind::byte_list;
  } else if (text == "list[jpeg]" || text == "list[png]") {
    column.kind = MdsKind::byte_list;
    column.list_head = 4;
  } else if (text == kArray) {
    column.kind = MdsKind::array;
  } else if (text.starts_with(kArray) && text[kArray.size()] == ':') {
    read_array_type(text.substr(kArray.size() + 1), column);
  }
  return column;
}

// Numbers of types are those of LitData's constants.py.
std::optional<DType> litdata_dtype(MdsArrayHead head, std::uint64_t number) noexcept {
  constexpr std::array kNumpy{DType::i8,  DType::i16, DType::i32, DType::i64, DType::u8, DType::u16,
                              DType::u32, DType::u64, DType::f16, DType::f32, DType::f64};
  if (head == MdsArrayHead::litdata_numpy)
    return number < kNumpy.size() ? std::optional(kNumpy[static_cast<std::size_t>(number)])
                                  : std::nullopt;
  switch (number) {
    case 0:
    case 1:
      return DType::f32;
    case 2:
    case 3:
      return DType::f64;
    case 8:
    case 9:
      return DType::f16;
    case 10:
      return DType::bf16;
    case 11:
      return DType::u8;
    case 12:
      return DType::i8;
    case 13:
    case 14:
      return DType::i16;
    case 15:
    case 16:
      return DType::i32;
    case 17:
    case 18:
      return DType::i64;
    case 20:
      return DType::u16;
    default:
      return std::nullopt;
  }
}

MdsColumnType litdata_column_type(std::string name, std::string format) {
  MdsColumnType column{.name = std::move(name), .encoding = std::move(format)};
  const std::string_view text = column.encoding;
  const std::string_view kind = text.substr(0, text.find(':'));
  const auto number = [&](DType dtype) {
    column.kind = MdsKind::number;
    column.dtype = dtype;
  };
  if (text == "int") {
    number(DType::i64);
  } else if (text == "float") {
    number(DType::f64);
  } else if (text == "bool") {
    number(DType::boolean);
  } else if (text == "bytes" || text == "str" || text == "text" || text == "json") {
    column.kind = MdsKind::bytes;
  } else if (text == "jpeg" || kind == "image") {
    column.kind = MdsKind::bytes;
    column.is_image = true;
  } else if (text == "numpy" || text == "tensor") {
    column.kind = MdsKind::array;
    column.head = text == "numpy" ? MdsArrayHead::litdata_numpy : MdsArrayHead::litdata_tensor;
  } else if (kind == "no_header_numpy" || kind == "no_header_tensor") {
    const std::string_view digits = text.substr(std::min(kind.size() + 1, text.size()));
    std::uint64_t type = 0;
    const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), type);
    if (error == std::errc{} && stop == digits.data() + digits.size())
      column.dtype = litdata_dtype(
          kind == "no_header_numpy" ? MdsArrayHead::litdata_numpy : MdsArrayHead::litdata_tensor,
          type);
    if (column.dtype) column.kind = MdsKind::bytes;
  }
  return column;
}

bool is_mds_integer(DType dtype) noexcept {
  return dtype != DType::boolean && dtype != DType::f16 && dtype != DType::bf16 &&
         dtype != DType::f32 && dtype != DType::f64;
}

MdsColumns::MdsColumns(std::vector<MdsColumnType> columns) : columns_(std::move(columns)) {
  for (const MdsColumnType& column : columns_) {
    fixed_bytes_ += column.size;
    if (column.size == 0) head_bytes_ += kSizeBytes;
  }
}

std::optional<std::size_t> MdsColumns::find(const std::string& name) const noexcept {
  const auto found = std::ranges::find(columns_, name, &MdsColumnType::name);
  if (found == columns_.end()) return std::nullopt;
  return static_cast<std::size_t>(found - columns_.begin());
}

Result<void> MdsColumns::locate(std::span<const std::byte> row, std::uint64_t bytes,
                                std::vector<MdsPlace>& places) const {
  places.clear();
  std::uint64_t end = head_bytes_;
  std::size_t head = 0;
  for (const MdsColumnType& column : columns_) {
    std::uint64_t size = column.size;
    if (size == 0) {
      size = load_little_endian<std::uint32_t>(row, head);
      head += kSizeBytes;
    }
    places.push_back({.begin = end, .bytes = size});
    end += size;
  }
  if (end == bytes) return {};
  return Fault{.reason = fmt::format("the columns of the row take {} bytes, by the sizes at its "
                                     "beginning, and the row has {}",
                                     end, bytes)};
}

std::optional<MdsPlace> MdsColumns::place_of(std::size_t column,
                                             std::uint64_t bytes) const noexcept {
  if (bytes < least_bytes()) return std::nullopt;
  const auto is_fixed = [](const MdsColumnType& type) { return type.size > 0; };
  const auto bytes_of = [](std::span<const MdsColumnType> some) {
    std::uint64_t sum = 0;
    for (const MdsColumnType& type : some) sum += type.size;
    return sum;
  };
  const std::span<const MdsColumnType> before = all().first(column);
  const std::span<const MdsColumnType> behind = all().subspan(column + 1);
  const bool from_begin = std::ranges::all_of(before, is_fixed);
  const bool to_end = std::ranges::all_of(behind, is_fixed);
  const std::uint64_t size = columns_[column].size;
  if (from_begin && (size > 0 || to_end)) {
    const std::uint64_t begin = head_bytes_ + bytes_of(before);
    return MdsPlace{begin, size > 0 ? size : bytes - begin - bytes_of(behind)};
  }
  if (to_end && size > 0) return MdsPlace{bytes - bytes_of(behind) - size, size};
  return std::nullopt;
}

std::string describe_mds_columns(std::span<const MdsColumnType> columns) {
  constexpr std::size_t kMost = 30;
  std::string text;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (!text.empty()) text += ", ";
    if (i == kMost) return text + "...";
    text += core::printable(fmt::format("{} {}", columns[i].name, columns[i].encoding));
  }
  return text;
}

std::string identify_mds_columns(std::span<const MdsColumnType> columns) {
  std::string all;
  for (const MdsColumnType& column : columns)
    all += fmt::format("{}\n{}\n", column.name, column.encoding);
  return fmt::format("{} {}", describe_mds_columns(columns), hash_text(all));
}

}  // namespace penstock::source

#include "src/source/arrow/type.hpp"

#include <array>
#include <string_view>

#include <fmt/format.h>

namespace penstock::source {

namespace {

std::string_view unit_name(ArrowUnit unit) noexcept {
  static constexpr std::array<std::string_view, 6> kNames{"", "day", "s", "ms", "us", "ns"};
  return kNames[static_cast<std::size_t>(unit)];
}

}  // namespace

std::string name_of(const ArrowType& type) {
  static constexpr std::array<std::string_view, 27> kNames{"",
                                                           "Null",
                                                           "",
                                                           "Float",
                                                           "Binary",
                                                           "Utf8",
                                                           "Bool",
                                                           "",
                                                           "Date",
                                                           "Time",
                                                           "",
                                                           "Interval",
                                                           "List",
                                                           "Struct",
                                                           "Union",
                                                           "",
                                                           "",
                                                           "Map",
                                                           "",
                                                           "LargeBinary",
                                                           "LargeUtf8",
                                                           "LargeList",
                                                           "RunEndEncoded",
                                                           "BinaryView",
                                                           "Utf8View",
                                                           "ListView",
                                                           "LargeListView"};
  const std::uint32_t bits = 8 * type.width;
  switch (type.kind) {
    case ArrowKind::integer:
      return fmt::format("{}{}", type.is_signed ? "Int" : "UInt", bits);
    case ArrowKind::floating:
    case ArrowKind::date:
    case ArrowKind::time:
      return fmt::format("{}{}", kNames[static_cast<std::size_t>(type.kind)], bits);
    case ArrowKind::decimal:
      return fmt::format("Decimal{}({}, {})", bits, type.precision, type.scale);
    case ArrowKind::timestamp:
      return type.time_zone.empty()
                 ? fmt::format("Timestamp({})", unit_name(type.unit))
                 : fmt::format("Timestamp({}, {})", unit_name(type.unit), type.time_zone);
    case ArrowKind::duration:
      return fmt::format("Duration({})", unit_name(type.unit));
    case ArrowKind::fixed_size_binary:
      return fmt::format("FixedSizeBinary({})", type.width);
    case ArrowKind::fixed_size_list:
      return fmt::format("FixedSizeList({})", type.list_size);
    default:
      break;
  }
  const auto number = static_cast<std::size_t>(type.kind);
  if (number < kNames.size() && !kNames[number].empty()) return std::string(kNames[number]);
  return fmt::format("type {}", number);
}

ArrowLayout arrow_layout(ArrowKind kind) noexcept {
  switch (kind) {
    case ArrowKind::null:
      return ArrowLayout::none;
    case ArrowKind::boolean:
      return ArrowLayout::bits;
    case ArrowKind::integer:
    case ArrowKind::floating:
    case ArrowKind::decimal:
    case ArrowKind::date:
    case ArrowKind::time:
    case ArrowKind::timestamp:
    case ArrowKind::interval:
    case ArrowKind::fixed_size_binary:
    case ArrowKind::duration:
      return ArrowLayout::fixed;
    case ArrowKind::binary:
    case ArrowKind::utf8:
    case ArrowKind::large_binary:
    case ArrowKind::large_utf8:
      return ArrowLayout::slices;
    case ArrowKind::binary_view:
    case ArrowKind::utf8_view:
      return ArrowLayout::views;
    case ArrowKind::list:
    case ArrowKind::large_list:
      return ArrowLayout::list;
    case ArrowKind::fixed_size_list:
      return ArrowLayout::fixed_list;
    case ArrowKind::structure:
      return ArrowLayout::structure;
    default:
      return ArrowLayout::other;
  }
}

std::uint32_t arrow_offset_bytes(ArrowKind kind) noexcept {
  const bool is_large = kind == ArrowKind::large_binary || kind == ArrowKind::large_utf8 ||
                        kind == ArrowKind::large_list;
  return is_large ? 8 : 4;
}

std::optional<std::uint32_t> arrow_buffer_count(const ArrowType& type,
                                                std::uint32_t version) noexcept {
  constexpr std::uint32_t kFirstWithoutUnionValidity = 5;
  switch (arrow_layout(type.kind)) {
    case ArrowLayout::none:
      return 0;
    case ArrowLayout::fixed_list:
    case ArrowLayout::structure:
      return 1;
    case ArrowLayout::bits:
    case ArrowLayout::fixed:
    case ArrowLayout::list:
    case ArrowLayout::views:
      return 2;
    case ArrowLayout::slices:
      return 3;
    case ArrowLayout::other:
      break;
  }
  switch (type.kind) {
    case ArrowKind::map:
      return 2;
    case ArrowKind::list_view:
    case ArrowKind::large_list_view:
      return 3;
    case ArrowKind::run_end_encoded:
      return 0;
    case ArrowKind::dense_or_sparse_union:
      return (type.is_dense ? 2 : 1) + (version < kFirstWithoutUnionValidity ? 1 : 0);
    default:
      return std::nullopt;
  }
}

}  // namespace penstock::source

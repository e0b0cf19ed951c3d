// source/arrow/type: Arrow's types: their names, widths and buffers.
//
// Source  github.com/apache/arrow, format/Schema.fbs and docs/source/format/Columnar.rst.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace penstock::source {

/// With the numbers that the union Type of Schema.fbs gives them.
enum class ArrowKind : std::uint8_t {
  unknown = 0,
  null = 1,
  integer = 2,
  floating = 3,
  binary = 4,
  utf8 = 5,
  boolean = 6,
  decimal = 7,
  date = 8,
  time = 9,
  timestamp = 10,
  interval = 11,
  list = 12,
  structure = 13,
  dense_or_sparse_union = 14,
  fixed_size_binary = 15,
  fixed_size_list = 16,
  map = 17,
  duration = 18,
  large_binary = 19,
  large_utf8 = 20,
  large_list = 21,
  run_end_encoded = 22,
  binary_view = 23,
  utf8_view = 24,
  list_view = 25,
  large_list_view = 26,
};

enum class ArrowUnit : std::uint8_t {
  none,
  days,
  seconds,
  milliseconds,
  microseconds,
  nanoseconds
};

struct ArrowType {
  ArrowKind kind = ArrowKind::null;
  std::uint32_t width =
      0;  ///< bytes of a value, where all have the same; 0 for BOOLEANs, which are bits
  bool is_signed = false;            ///< of integers
  bool is_dense = false;             ///< of unions
  ArrowUnit unit = ArrowUnit::none;  ///< of dates, times and durations
  std::int32_t precision = 0;        ///< of decimals; so `scale`
  std::int32_t scale = 0;
  std::uint32_t list_size = 0;  ///< of FixedSizeList
  std::string time_zone;        ///< of timestamps

  friend bool operator==(const ArrowType&, const ArrowType&) = default;
};

/// "Int64", "FixedSizeBinary(5)", "Timestamp(ms, UTC)"; "type 99" for unknown numbers.
[[nodiscard]] std::string name_of(const ArrowType& type);

/// What the columns of a kind consist of.
enum class ArrowLayout : std::uint8_t {
  none,        ///< no buffer
  bits,        ///< validity, a bit a value
  fixed,       ///< validity, values
  slices,      ///< validity, offsets, bytes
  views,       ///< validity, views of 16 bytes, any number of buffers of bytes
  list,        ///< validity, offsets; a child
  fixed_list,  ///< validity; a child
  structure,   ///< validity; children
  other,       ///< one that is not read
};
[[nodiscard]] ArrowLayout arrow_layout(ArrowKind kind) noexcept;
/// Bytes of a view: the length, and the value itself, or its beginning, its buffer and its place in that.
inline constexpr std::uint32_t kArrowViewBytes = 16;
/// Bytes of an offset of lists and slices: 4, or 8 for the large ones.
[[nodiscard]] std::uint32_t arrow_offset_bytes(ArrowKind kind) noexcept;
/// Buffers that a column has in messages of a metadata version (4 or 5), without those of its children and without the
/// variadic ones of views. Nothing for unknown kinds.
[[nodiscard]] std::optional<std::uint32_t> arrow_buffer_count(const ArrowType& type,
                                                              std::uint32_t version) noexcept;

}  // namespace penstock::source

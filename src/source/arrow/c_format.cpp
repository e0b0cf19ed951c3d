#include "src/source/arrow/c_format.hpp"

#include <charconv>
#include <cstring>
#include <optional>

#include <fmt/format.h>

namespace penstock::source {

namespace {

std::optional<ArrowUnit> unit_of(char letter) noexcept {
  switch (letter) {
    case 's':
      return ArrowUnit::seconds;
    case 'm':
      return ArrowUnit::milliseconds;
    case 'u':
      return ArrowUnit::microseconds;
    case 'n':
      return ArrowUnit::nanoseconds;
    default:
      return std::nullopt;
  }
}

ArrowType integer_type(std::uint32_t width, bool is_signed) {
  return {.kind = ArrowKind::integer, .width = width, .is_signed = is_signed};
}

std::optional<ArrowType> one_letter(char letter) {
  switch (letter) {
    case 'n':
      return ArrowType{.kind = ArrowKind::null};
    case 'b':
      return ArrowType{.kind = ArrowKind::boolean};
    case 'c':
      return integer_type(1, true);
    case 'C':
      return integer_type(1, false);
    case 's':
      return integer_type(2, true);
    case 'S':
      return integer_type(2, false);
    case 'i':
      return integer_type(4, true);
    case 'I':
      return integer_type(4, false);
    case 'l':
      return integer_type(8, true);
    case 'L':
      return integer_type(8, false);
    case 'e':
      return ArrowType{.kind = ArrowKind::floating, .width = 2};
    case 'f':
      return ArrowType{.kind = ArrowKind::floating, .width = 4};
    case 'g':
      return ArrowType{.kind = ArrowKind::floating, .width = 8};
    case 'z':
      return ArrowType{.kind = ArrowKind::binary};
    case 'Z':
      return ArrowType{.kind = ArrowKind::large_binary};
    case 'u':
      return ArrowType{.kind = ArrowKind::utf8};
    case 'U':
      return ArrowType{.kind = ArrowKind::large_utf8};
    default:
      return std::nullopt;
  }
}

// "tsu:UTC", "tdD", "ttm", "tDn", "tiM".
std::optional<ArrowType> time_type(std::string_view format) {
  if (format.size() < 3) return std::nullopt;
  const auto unit = unit_of(format[2]);
  const bool is_complete = format.size() == 3;
  switch (format[1]) {
    case 'd':
      if (!is_complete) return std::nullopt;
      if (format[2] == 'D')
        return ArrowType{.kind = ArrowKind::date, .width = 4, .unit = ArrowUnit::days};
      if (format[2] == 'm')
        return ArrowType{.kind = ArrowKind::date, .width = 8, .unit = ArrowUnit::milliseconds};
      return std::nullopt;
    case 't': {
      if (!is_complete || !unit) return std::nullopt;
      const bool is_coarse = *unit == ArrowUnit::seconds || *unit == ArrowUnit::milliseconds;
      return ArrowType{.kind = ArrowKind::time, .width = is_coarse ? 4U : 8U, .unit = *unit};
    }
    case 's':
      if (!unit || format.size() < 4 || format[3] != ':') return std::nullopt;
      return ArrowType{.kind = ArrowKind::timestamp,
                       .width = 8,
                       .unit = *unit,
                       .time_zone = std::string(format.substr(4))};
    case 'D':
      if (!is_complete || !unit) return std::nullopt;
      return ArrowType{.kind = ArrowKind::duration, .width = 8, .unit = *unit};
    case 'i':
      if (!is_complete) return std::nullopt;
      if (format[2] == 'M') return ArrowType{.kind = ArrowKind::interval, .width = 4};
      if (format[2] == 'D') return ArrowType{.kind = ArrowKind::interval, .width = 8};
      if (format[2] == 'n') return ArrowType{.kind = ArrowKind::interval, .width = 16};
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

// Takes a number off the front of a format.
std::optional<std::int32_t> take_number(std::string_view& text) {
  std::int32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

// "19,10" or "19,10,256".
std::optional<ArrowType> decimal_type(std::string_view text) {
  const auto precision = take_number(text);
  if (!precision || !text.starts_with(',')) return std::nullopt;
  text.remove_prefix(1);
  const auto scale = take_number(text);
  std::optional<std::int32_t> bits = 128;
  if (text.starts_with(',')) {
    text.remove_prefix(1);
    bits = take_number(text);
  }
  if (!scale || !bits || !text.empty()) return std::nullopt;
  if (*bits != 32 && *bits != 64 && *bits != 128 && *bits != 256) return std::nullopt;
  return ArrowType{.kind = ArrowKind::decimal,
                   .width = static_cast<std::uint32_t>(*bits) / 8,
                   .precision = *precision,
                   .scale = *scale};
}

std::optional<std::uint32_t> size_after(std::string_view text) {
  const auto size = take_number(text);
  if (!size || *size < 0 || !text.empty()) return std::nullopt;
  return static_cast<std::uint32_t>(*size);
}

std::optional<ArrowType> parse_format(std::string_view format) {
  if (format.size() == 1) return one_letter(format[0]);
  if (format.starts_with("t")) return time_type(format);
  if (format.starts_with("d:")) return decimal_type(format.substr(2));
  if (format.starts_with("w:")) {
    const auto width = size_after(format.substr(2));
    if (!width) return std::nullopt;
    return ArrowType{.kind = ArrowKind::fixed_size_binary, .width = *width};
  }
  if (format.starts_with("+w:")) {
    const auto size = size_after(format.substr(3));
    if (!size) return std::nullopt;
    return ArrowType{.kind = ArrowKind::fixed_size_list, .list_size = *size};
  }
  if (format.starts_with("+ud:"))
    return ArrowType{.kind = ArrowKind::dense_or_sparse_union, .is_dense = true};
  if (format.starts_with("+us:")) return ArrowType{.kind = ArrowKind::dense_or_sparse_union};
  static constexpr std::pair<std::string_view, ArrowKind> kNested[]{
      {"+l", ArrowKind::list},
      {"+L", ArrowKind::large_list},
      {"+s", ArrowKind::structure},
      {"+m", ArrowKind::map},
      {"+r", ArrowKind::run_end_encoded},
      {"+vl", ArrowKind::list_view},
      {"+vL", ArrowKind::large_list_view},
      {"vz", ArrowKind::binary_view},
      {"vu", ArrowKind::utf8_view}};
  for (const auto& [text, kind] : kNested)
    if (format == text) return ArrowType{.kind = kind};
  return std::nullopt;
}

}  // namespace

ArrowType parse_arrow_format(std::string_view format, const std::string& field,
                             const ArrowOrigin& origin) {
  auto type = parse_format(format);
  if (type) return std::move(*type);
  throw DataError(Fault{
      .reason = fmt::format("expected a format of Arrow's C data interface for field '{}', and "
                            "found '{}': convert the column to another type",
                            field, format),
      .file = origin.file});
}

ArrowMetadata read_arrow_c_metadata(const char* metadata, const ArrowOrigin& origin,
                                    const ArrowLimits& limits) {
  ArrowMetadata read;
  if (metadata == nullptr) return read;
  std::uint64_t bytes_read = 0;
  const auto fail = [&](std::int64_t found) {
    throw DataError(
        Fault{.reason = fmt::format("the metadata of a schema says {} entries or bytes, "
                                    "and at most {} are read",
                                    found, limits.metadata_bytes),
              .file = origin.file});
  };
  const auto take = [&] {
    std::int32_t number = 0;
    std::memcpy(&number, metadata, sizeof number);
    metadata += sizeof number;
    bytes_read += sizeof number;
    if (number < 0 || static_cast<std::uint64_t>(number) > limits.metadata_bytes ||
        bytes_read > limits.metadata_bytes)
      fail(number);
    return number;
  };
  const auto take_text = [&] {
    const auto size = static_cast<std::size_t>(take());
    bytes_read += size;
    std::string text(metadata, size);
    metadata += size;
    return text;
  };
  for (std::int32_t left = take(); left > 0; --left) {
    std::string key = take_text();
    read.emplace_back(std::move(key), take_text());
  }
  return read;
}

}  // namespace penstock::source

#include "src/source/parquet/logical.hpp"

#include <array>

namespace penstock::source {

namespace {

ParquetTimeUnit read_time_unit(ThriftReader& reader) {
  ParquetTimeUnit unit = ParquetTimeUnit::none;
  reader.read_struct([&](const ThriftField& field) {
    if (field.id >= 1 && field.id <= 3) unit = static_cast<ParquetTimeUnit>(field.id);
    return false;
  });
  return unit;
}

void read_meaning(ThriftReader& reader, ParquetLogical& logical) {
  const bool is_decimal = logical.meaning == ParquetMeaning::decimal;
  const bool is_integer = logical.meaning == ParquetMeaning::integer;
  const bool is_time =
      logical.meaning == ParquetMeaning::time || logical.meaning == ParquetMeaning::timestamp;
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  reader.read_struct([&](const ThriftField& field) {
    if (is_decimal && field.id <= 2) {
      const auto value = static_cast<std::int32_t>(reader.integer(field, "a decimal", 0, kMost));
      (field.id == 1 ? logical.scale : logical.precision) = value;
    } else if (is_time && field.id == 1) {
      logical.is_utc = reader.boolean(field, "isAdjustedToUTC");
    } else if (is_time && field.id == 2) {
      reader.expect_struct(field, "the unit of a time");
      logical.unit = read_time_unit(reader);
    } else if (is_integer && field.id == 1) {
      logical.bits = static_cast<std::uint8_t>(reader.integer(field, "bitWidth", 1, 64));
    } else if (is_integer && field.id == 2) {
      logical.is_signed = reader.boolean(field, "isSigned");
    } else {
      return false;
    }
    return true;
  });
}

}  // namespace

ParquetLogical read_logical_type(ThriftReader& reader) {
  using enum ParquetMeaning;
  static constexpr std::array kMeanings{none, string, map,       list,   enumeration, decimal,
                                        date, time,   timestamp, other,  integer,     other,
                                        json, bson,   uuid,      float16};
  ParquetLogical logical;
  reader.read_struct([&](const ThriftField& field) {
    const bool known = field.id > 0 && field.id < static_cast<int>(kMeanings.size());
    logical = {.meaning = known ? kMeanings[static_cast<std::size_t>(field.id)] : other};
    if (field.type != ThriftType::structure) return false;
    read_meaning(reader, logical);
    return true;
  });
  return logical;
}

ParquetLogical converted_logical(std::int64_t converted, std::int32_t scale,
                                 std::int32_t precision) {
  using enum ParquetMeaning;
  constexpr auto kMilliseconds = ParquetTimeUnit::milliseconds;
  constexpr auto kMicroseconds = ParquetTimeUnit::microseconds;
  switch (converted) {
    case 0:
      return {.meaning = string};
    case 1:
    case 2:
      return {.meaning = map};
    case 3:
      return {.meaning = list};
    case 4:
      return {.meaning = enumeration};
    case 5:
      return {.meaning = decimal, .scale = scale, .precision = precision};
    case 6:
      return {.meaning = date};
    case 7:
      return {.meaning = time, .unit = kMilliseconds, .is_utc = true};
    case 8:
      return {.meaning = time, .unit = kMicroseconds, .is_utc = true};
    case 9:
      return {.meaning = timestamp, .unit = kMilliseconds, .is_utc = true};
    case 10:
      return {.meaning = timestamp, .unit = kMicroseconds, .is_utc = true};
    case 11:
    case 12:
    case 13:
    case 14:
      return {.meaning = integer,
              .bits = static_cast<std::uint8_t>(8U << (converted - 11)),
              .is_signed = false};
    case 15:
    case 16:
    case 17:
    case 18:
      return {.meaning = integer, .bits = static_cast<std::uint8_t>(8U << (converted - 15))};
    case 19:
      return {.meaning = json};
    case 20:
      return {.meaning = bson};
    case 21:
      return {.meaning = interval};
    default:
      return {.meaning = other};
  }
}

}  // namespace penstock::source

#include "src/source/parquet/thrift.hpp"

#include <fmt/format.h>

namespace penstock::source {

void ThriftReader::fail(std::string reason) const {
  throw_parquet_damage(origin_, at_, std::move(reason));
}

void ThriftReader::expect(const ThriftField& field, std::string_view name, bool holds,
                          std::string_view what) const {
  if (holds) return;
  fail(fmt::format("expected {} in the metadata to be {}, and found Thrift type {}", name, what,
                   static_cast<unsigned>(field.type)));
}

void ThriftReader::enter() {
  constexpr int kDeepest = 32;  // Parquet's own structs are at most 7 deep
  if (++depth_ > kDeepest)
    fail(fmt::format("the metadata's structs are more than {} deep", kDeepest));
}

std::byte ThriftReader::byte() {
  if (at_ >= bytes_.size()) {
    ran_out_ = true;
    fail("the metadata ends within a value");
  }
  return bytes_[at_++];
}

void ThriftReader::advance(std::uint64_t bytes) {
  if (bytes > bytes_.size() - at_) {
    ran_out_ = true;
    fail(fmt::format("a value of the metadata has {} bytes, and {} are left", bytes,
                     bytes_.size() - at_));
  }
  at_ += static_cast<std::size_t>(bytes);
}

std::uint64_t ThriftReader::varint() {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    const auto next = std::to_integer<std::uint64_t>(byte());
    if (shift == 63 && next > 1) break;
    value |= (next & 0x7F) << shift;
    if (next < 0x80) return value;
  }
  fail("an integer of the metadata has more than 64 bits");
}

std::int64_t ThriftReader::zigzag() {
  const std::uint64_t value = varint();
  return static_cast<std::int64_t>((value >> 1) ^ (~(value & 1) + 1));
}

bool ThriftReader::next_field(ThriftField& field) {
  const auto head = std::to_integer<unsigned>(byte());
  if ((head & 0xF) == 0) return false;
  field.type = static_cast<ThriftType>(head & 0xF);
  if (field.type > ThriftType::structure)
    fail(fmt::format("Thrift type {} does not exist", head & 0xF));
  const std::int64_t id =
      (head >> 4) != 0 ? field.id + static_cast<std::int64_t>(head >> 4) : zigzag();
  if (id < std::numeric_limits<std::int16_t>::min() ||
      id > std::numeric_limits<std::int16_t>::max())
    fail(fmt::format("field {} of a Thrift struct is not one of 16 bits", id));
  field.id = static_cast<std::int32_t>(id);
  return true;
}

std::uint64_t ThriftReader::list_head(ThriftType& of) {
  const auto head = std::to_integer<unsigned>(byte());
  of = static_cast<ThriftType>(head & 0xF);
  constexpr unsigned kLong = 15;
  const std::uint64_t size = (head >> 4) == kLong ? varint() : head >> 4;
  if (size > bytes_.size() - at_) {  // each takes a byte, at least
    ran_out_ = true;
    fail(fmt::format("a list of the metadata has {} elements, and {} bytes are left", size,
                     bytes_.size() - at_));
  }
  return size;
}

std::uint64_t ThriftReader::list_size(const ThriftField& field, std::string_view name,
                                      ThriftType of) {
  expect(field, name, field.type == ThriftType::list, "a list");
  ThriftType found{};
  const std::uint64_t size = list_head(found);
  const bool is_integer = found >= ThriftType::i16 && found <= ThriftType::i64;
  if (size > 0 && found != of && !(of == ThriftType::i32 && is_integer))
    fail(fmt::format("expected a list of {}, and found one of Thrift type {}",
                     of == ThriftType::structure ? "structs" : "integers",
                     static_cast<unsigned>(found)));
  return size;
}

void ThriftReader::skip(ThriftType type) {
  constexpr std::uint64_t kDouble = 8;
  switch (type) {
    case ThriftType::yes:
    case ThriftType::no:
      return;
    case ThriftType::i8:
      return advance(1);
    case ThriftType::i16:
    case ThriftType::i32:
    case ThriftType::i64:
      (void)varint();
      return;
    case ThriftType::float64:
      return advance(kDouble);
    case ThriftType::binary:
      return advance(varint());
    case ThriftType::list:
    case ThriftType::set: {
      enter();
      ThriftType of{};
      const std::uint64_t size = list_head(of);
      const bool are_booleans = of == ThriftType::yes || of == ThriftType::no;
      for (std::uint64_t i = 0; i < size; ++i) skip(are_booleans ? ThriftType::i8 : of);
      --depth_;
      return;
    }
    case ThriftType::map: {
      enter();
      const std::uint64_t size = varint();
      if (size > bytes_.size() - at_) {
        ran_out_ = true;
        fail(fmt::format("a map of the metadata has {} entries, and {} bytes are left", size,
                         bytes_.size() - at_));
      }
      const auto types = size > 0 ? std::to_integer<unsigned>(byte()) : 0;
      const auto skip_half = [&](unsigned half) {
        const auto of = static_cast<ThriftType>(half);
        skip(of == ThriftType::yes || of == ThriftType::no ? ThriftType::i8 : of);
      };
      for (std::uint64_t i = 0; i < size; ++i) {
        skip_half(types >> 4);
        skip_half(types & 0xF);
      }
      --depth_;
      return;
    }
    case ThriftType::structure:
      return read_struct([](const ThriftField&) { return false; });
    case ThriftType::stop:
      break;
  }
  fail(fmt::format("Thrift type {} does not exist", static_cast<unsigned>(type)));
}

std::int64_t ThriftReader::integer(const ThriftField& field, std::string_view name) {
  if (field.type == ThriftType::i8) return static_cast<std::int8_t>(byte());
  expect(field, name, field.type >= ThriftType::i16 && field.type <= ThriftType::i64, "an integer");
  return zigzag();
}

std::int64_t ThriftReader::integer(const ThriftField& field, std::string_view name,
                                   std::int64_t least, std::int64_t most) {
  const std::int64_t value = integer(field, name);
  if (value < least || value > most)
    fail(fmt::format("expected {} from {} to {}, and found {}", name, least, most, value));
  return value;
}

bool ThriftReader::boolean(const ThriftField& field, std::string_view name) {
  expect(field, name, field.type == ThriftType::yes || field.type == ThriftType::no, "a boolean");
  return field.type == ThriftType::yes;
}

std::string ThriftReader::text(const ThriftField& field, std::string_view name) {
  expect(field, name, field.type == ThriftType::binary, "a string");
  const std::uint64_t size = varint();
  const std::size_t begin = at_;
  advance(size);
  return {reinterpret_cast<const char*>(bytes_.data()) + begin, static_cast<std::size_t>(size)};
}

}  // namespace penstock::source

#include "src/source/parquet/thrift_writer.hpp"

namespace penstock::source {

void ThriftWriter::varint(std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) text_ += static_cast<char>(value | 0x80);
  text_ += static_cast<char>(value);
}

void ThriftWriter::zigzag(std::int64_t value) {
  varint((static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63));
}

void ThriftWriter::head(std::int32_t id, ThriftType type) {
  constexpr std::int32_t kMostStep = 15;
  const std::int32_t step = id - last_;
  const auto low = static_cast<unsigned>(type);
  if (step > 0 && step <= kMostStep) {
    text_ += static_cast<char>(static_cast<unsigned>(step) << 4 | low);
  } else {
    text_ += static_cast<char>(low);
    zigzag(id);
  }
  last_ = id;
}

void ThriftWriter::i32(std::int32_t id, std::int64_t value) {
  head(id, ThriftType::i32);
  zigzag(value);
}

void ThriftWriter::i64(std::int32_t id, std::int64_t value) {
  head(id, ThriftType::i64);
  zigzag(value);
}

void ThriftWriter::boolean(std::int32_t id, bool value) {
  head(id, value ? ThriftType::yes : ThriftType::no);
}

void ThriftWriter::binary(std::int32_t id, std::string_view value) {
  head(id, ThriftType::binary);
  element(value);
}

void ThriftWriter::list(std::int32_t id, ThriftType of, std::size_t size) {
  constexpr std::size_t kLong = 15;
  head(id, ThriftType::list);
  const auto low = static_cast<unsigned>(of);
  if (size < kLong) {
    text_ += static_cast<char>(static_cast<unsigned>(size) << 4 | low);
  } else {
    text_ += static_cast<char>(kLong << 4 | low);
    varint(size);
  }
}

void ThriftWriter::element(std::string_view value) {
  varint(value.size());
  text_ += value;
}

// A byte, as Apache's own writers have it.
void ThriftWriter::element(bool value) {
  text_ += static_cast<char>(value ? ThriftType::yes : ThriftType::no);
}

}  // namespace penstock::source

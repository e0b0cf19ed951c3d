// Thrift's compact protocol, written by hand: for Parquet files that no writer makes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace penstock::test {

inline std::string varint(std::uint64_t value) {
  std::string text;
  for (; value >= 128; value >>= 7) text += static_cast<char>((value & 127) | 128);
  return text + static_cast<char>(value);
}
inline std::string zigzag(std::int64_t value) {
  return varint((static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63));
}

/// A struct in Thrift's compact protocol.
class ThriftText {
 public:
  ThriftText& integer(int id, std::int64_t value, int type = 5) {
    return header(id, type, zigzag(value));
  }
  ThriftText& text(int id, const std::string& value) {
    return header(id, 8, varint(value.size()) + value);
  }
  ThriftText& part(int id, const ThriftText& value) { return header(id, 12, value.end()); }
  ThriftText& list(int id, int type, const std::vector<std::string>& items) {
    std::string all(1, static_cast<char>(items.size() << 4 | static_cast<unsigned>(type)));
    for (const std::string& item : items) all += item;
    return header(id, 9, all);
  }
  ThriftText& header(int id, int type, const std::string& value) {
    text_ += static_cast<char>((id - last_) << 4 | type);
    if (id <= last_) text_.back() = static_cast<char>(type);
    if (id <= last_) text_ += zigzag(id);
    last_ = id;
    text_ += value;
    return *this;
  }
  [[nodiscard]] std::string end() const { return text_ + '\0'; }

 private:
  std::string text_;
  int last_ = 0;
};

inline std::string fixed32(std::uint32_t value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

}  // namespace penstock::test

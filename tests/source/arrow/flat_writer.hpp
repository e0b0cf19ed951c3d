// Flatbuffers and Arrow messages made by hand, valid or not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::test {

/// Writes tables front to back: what a field leads to is written after its table, and linked then.
class FlatWriter {
 public:
  FlatWriter() : text_(4, '\0') {}

  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] std::size_t size() const { return text_.size(); }
  template <class T>
  void put(std::size_t at, T value) {
    std::memcpy(text_.data() + at, &value, sizeof value);
  }
  template <class T>
  std::size_t add(T value) {
    const std::size_t at = text_.size();
    text_.resize(at + sizeof value);
    put(at, value);
    return at;
  }
  /// Makes the offset at a position (0: the root's) lead to `target`, or to what is written next.
  void link(std::size_t at, std::size_t target) {
    put(at, static_cast<std::uint32_t>(target - at));
  }
  void link(std::size_t at) { link(at, text_.size()); }
  /// A table whose fields have so many bytes, 0 if they are left out; returns where each is. link() it from `from`.
  std::vector<std::size_t> table(std::size_t from, const std::vector<std::uint16_t>& sizes) {
    const std::size_t vtable = add(static_cast<std::uint16_t>(4 + 2 * sizes.size()));
    std::uint16_t end = 4;
    for (const std::uint16_t size : sizes) end = static_cast<std::uint16_t>(end + size);
    add(end);
    std::uint16_t at = 4;
    std::vector<std::size_t> places;
    const std::size_t begin = vtable + 4 + 2 * sizes.size();
    for (const std::uint16_t size : sizes) {
      add(size == 0 ? std::uint16_t{0} : at);
      places.push_back(begin + at);
      at = static_cast<std::uint16_t>(at + size);
    }
    link(from);
    add(static_cast<std::int32_t>(begin - vtable));
    text_.resize(begin + end);
    return places;
  }
  /// A vector of so many offsets, linked from `from`; returns where they are.
  std::vector<std::size_t> offsets(std::size_t from, std::uint32_t count) {
    link(from);
    add(count);
    std::vector<std::size_t> places;
    for (std::uint32_t i = 0; i < count; ++i) places.push_back(add(std::uint32_t{0}));
    return places;
  }
  void string(std::size_t from, std::string_view value) {
    link(from);
    add(static_cast<std::uint32_t>(value.size()));
    text_ += value;
    text_ += '\0';
  }

 private:
  std::string text_;
};

/// A message as a stream has it.
inline std::string arrow_message(std::string metadata, std::string_view body = {}) {
  metadata.resize((metadata.size() + 7) / 8 * 8);
  std::string text(4, '\xFF');
  const auto length = static_cast<std::uint32_t>(metadata.size());
  text.append(reinterpret_cast<const char*>(&length), sizeof length);
  return text + metadata + std::string(body);
}

/// Begins a message of a kind (1: schema, 3: batch); returns where its header is linked.
inline std::size_t begin_arrow_message(FlatWriter& writer, std::uint8_t kind,
                                       std::int16_t version = 4, std::int64_t body = 0) {
  const auto places = writer.table(0, {2, 1, 4, 8});
  writer.put(places[0], version);
  writer.put(places[1], kind);
  writer.put(places[3], body);
  return places[2];
}

/// A schema of one Int8 column "a".
inline std::string arrow_schema_message(std::int16_t version = 4, std::int16_t endianness = 0) {
  FlatWriter writer;
  const auto schema = writer.table(begin_arrow_message(writer, 1, version), {2, 4});
  writer.put(schema[0], endianness);
  const auto fields = writer.offsets(schema[1], 1);
  const auto field = writer.table(fields[0], {4, 1, 1, 4});
  writer.put(field[2], std::uint8_t{2});
  writer.string(field[0], "a");
  const auto type = writer.table(field[3], {4, 1});
  writer.put(type[0], std::int32_t{8});
  writer.put(type[1], std::uint8_t{1});
  return arrow_message(writer.text());
}

inline std::string arrow_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
inline std::vector<std::byte> bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

}  // namespace penstock::test

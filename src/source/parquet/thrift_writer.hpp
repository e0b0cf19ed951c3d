// source/parquet/thrift_writer: Thrift's compact protocol, written field by field.
//
// Source  github.com/apache/thrift, doc/specs/thrift-compact-protocol.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "src/source/parquet/thrift.hpp"

namespace penstock::source {

/// Structs, one after the other. The fields of a struct are written in the order of their ids, and the elements of a list
/// directly behind list().
class ThriftWriter {
 public:
  /// A struct by itself, or an element of a list of structs: `write` writes its fields.
  template <class Write>
  void structure(const Write& write) {
    const std::int32_t outer = last_;
    last_ = 0;
    write();
    text_ += '\0';
    last_ = outer;
  }
  /// A field that is a struct.
  template <class Write>
  void structure(std::int32_t id, const Write& write) {
    head(id, ThriftType::structure);
    structure(write);
  }
  void i32(std::int32_t id, std::int64_t value);
  void i64(std::int32_t id, std::int64_t value);
  void boolean(std::int32_t id, bool value);
  void binary(std::int32_t id, std::string_view value);

  /// A field that is a list of `size` elements, which are written next.
  void list(std::int32_t id, ThriftType of, std::size_t size);
  void element(std::int64_t value) { zigzag(value); }
  void element(std::string_view value);
  void element(bool value);

  [[nodiscard]] std::string_view text() const noexcept { return text_; }
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept {
    return std::as_bytes(std::span(text_));
  }

 private:
  void head(std::int32_t id, ThriftType type);
  void varint(std::uint64_t value);
  void zigzag(std::int64_t value);

  std::string text_;
  std::int32_t last_ = 0;  // id of the field before, in the struct that is open
};

}  // namespace penstock::source

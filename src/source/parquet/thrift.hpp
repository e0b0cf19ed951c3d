// source/parquet/thrift: Thrift's compact protocol, read field by field and never beyond its bounds.
//
// Source  github.com/apache/thrift, doc/specs/thrift-compact-protocol.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>

#include "src/source/parquet/origin.hpp"

namespace penstock::source {

enum class ThriftType : std::uint8_t {
  stop = 0,
  yes = 1,  ///< a boolean field that is true; of list elements, any boolean
  no = 2,
  i8 = 3,
  i16 = 4,
  i32 = 5,
  i64 = 6,
  float64 = 7,
  binary = 8,
  list = 9,
  set = 10,
  map = 11,
  structure = 12,
};

struct ThriftField {
  std::int32_t id = 0;
  ThriftType type = ThriftType::stop;
};

/// Structs, one value after the other. `name` of the functions below is for messages.
///
/// Errors  DataError  the bytes end within a value, or are none that the protocol has
class ThriftReader {
 public:
  ThriftReader(std::span<const std::byte> bytes, const ParquetOrigin& origin) noexcept
      : bytes_(bytes), origin_(origin) {}

  /// Calls `on_field(field)` for each field of a struct; it reads the value and returns true, or returns false, and
  /// the value is passed over.
  template <class OnField>
  void read_struct(const OnField& on_field) {
    enter();
    ThriftField field;
    while (next_field(field)) {
      const std::int32_t id = field.id;
      if (!on_field(field)) skip(field.type);
      field.id = id;
    }
    --depth_;
  }
  /// Calls `on_element()` for each struct of a list.
  template <class OnElement>
  void read_structs(const ThriftField& field, std::string_view name, const OnElement& on_element) {
    const std::uint64_t count = list_size(field, name, ThriftType::structure);
    for (std::uint64_t i = 0; i < count; ++i) on_element();
  }
  /// Calls `on_element(value)` for each integer of a list.
  template <class OnElement>
  void read_integers(const ThriftField& field, std::string_view name, const OnElement& on_element) {
    const std::uint64_t count = list_size(field, name, ThriftType::i32);
    for (std::uint64_t i = 0; i < count; ++i) on_element(zigzag());
  }

  [[nodiscard]] std::int64_t integer(const ThriftField& field, std::string_view name);
  /// An integer from `least` to `most`.
  [[nodiscard]] std::int64_t integer(const ThriftField& field, std::string_view name,
                                     std::int64_t least, std::int64_t most);
  /// One that is not negative.
  [[nodiscard]] std::uint64_t count(const ThriftField& field, std::string_view name,
                                    std::int64_t most = std::numeric_limits<std::int64_t>::max()) {
    return static_cast<std::uint64_t>(integer(field, name, 0, most));
  }
  [[nodiscard]] bool boolean(const ThriftField& field, std::string_view name);
  [[nodiscard]] std::string text(const ThriftField& field, std::string_view name);
  /// Fails unless the field is a struct; read_struct() comes next.
  void expect_struct(const ThriftField& field, std::string_view name) {
    expect(field, name, field.type == ThriftType::structure, "a struct");
  }

  [[noreturn]] void fail(std::string reason) const;
  [[nodiscard]] std::size_t position() const noexcept { return at_; }
  /// Whether it failed since more bytes were needed than there are.
  [[nodiscard]] bool ran_out() const noexcept { return ran_out_; }

 private:
  void enter();
  bool next_field(ThriftField& field);
  void skip(ThriftType type);
  std::uint64_t varint();
  std::int64_t zigzag();
  std::byte byte();
  void advance(std::uint64_t bytes);
  std::uint64_t list_size(const ThriftField& field, std::string_view name, ThriftType of);
  std::uint64_t list_head(ThriftType& of);
  void expect(const ThriftField& field, std::string_view name, bool holds,
              std::string_view what) const;

  std::span<const std::byte> bytes_;
  const ParquetOrigin& origin_;
  std::size_t at_ = 0;
  int depth_ = 0;
  bool ran_out_ = false;
};

}  // namespace penstock::source

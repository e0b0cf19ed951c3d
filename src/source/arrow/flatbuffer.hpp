// source/arrow/flatbuffer: tables of a Flatbuffer, each offset checked, with a limit of the work that shared ones can make.
//
// Source  github.com/google/flatbuffers, docs/source/internals.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "src/source/arrow/origin.hpp"
#include "src/source/little_endian.hpp"

namespace penstock::source {

class FlatTable;

/// The bytes of a Flatbuffer, and how much of them may be read yet: tables and texts that several places share count for
/// each of these. So no buffer makes more work than its size allows.
class FlatBuffer {
 public:
  FlatBuffer(std::span<const std::byte> bytes, const ArrowOrigin& origin) noexcept;
  FlatBuffer(const FlatBuffer&) = delete;
  FlatBuffer& operator=(const FlatBuffer&) = delete;

  /// The table that the buffer is of.
  ///
  /// Errors  DataError  its offsets are damaged
  [[nodiscard]] FlatTable root();
  /// Throws a DataError that names the byte `at` of the buffer.
  [[noreturn]] void fail(std::uint64_t at, std::string reason) const;

 private:
  friend class FlatTable;
  friend class FlatTables;
  template <class T>
  [[nodiscard]] T load(std::uint64_t at) const {
    require(at, sizeof(T));
    return load_little_endian<T>(bytes_, static_cast<std::size_t>(at));
  }
  void require(std::uint64_t at, std::uint64_t bytes) const;
  [[nodiscard]] std::uint64_t follow(std::uint64_t at) const;  // the position that an offset gives
  [[nodiscard]] FlatTable open_table(std::uint64_t at);

  std::span<const std::byte> bytes_;
  const ArrowOrigin& origin_;
  std::uint64_t tables_left_;
  std::uint64_t text_left_;
};

/// A vector of tables.
class FlatTables {
 public:
  FlatTables() = default;
  [[nodiscard]] std::uint32_t size() const noexcept { return size_; }
  /// One of them.
  ///
  /// Errors  DataError  its offsets are damaged
  [[nodiscard]] FlatTable operator[](std::uint32_t number) const;

 private:
  friend class FlatTable;
  FlatTables(FlatBuffer& buffer, std::uint64_t begin, std::uint32_t size) noexcept
      : buffer_(&buffer), begin_(begin), size_(size) {}
  FlatBuffer* buffer_ = nullptr;
  std::uint64_t begin_ = 0;
  std::uint32_t size_ = 0;
};

/// A table; fields have the numbers that their order in the .fbs file gives. A union takes two: its type, its table.
///
/// Errors  DataError  of all functions: an offset leads out of the buffer
class FlatTable {
 public:
  [[nodiscard]] bool has(unsigned field) const { return find(field) != 0; }
  /// A number, or `otherwise`, where the table leaves it out.
  template <class T>
  [[nodiscard]] T number(unsigned field, T otherwise = {}) const {
    const std::uint64_t at = find(field);
    return at == 0 ? otherwise : buffer_->load<T>(at);
  }
  /// A number that must not be negative.
  [[nodiscard]] std::uint64_t count(unsigned field, std::string_view name) const;
  [[nodiscard]] bool boolean(unsigned field, bool otherwise = false) const {
    return number<std::uint8_t>(field, otherwise ? 1 : 0) != 0;
  }
  [[nodiscard]] std::optional<FlatTable> table(unsigned field) const;
  /// Empty where the table leaves it out; so the next ones.
  [[nodiscard]] std::string text(unsigned field) const;
  [[nodiscard]] FlatTables tables(unsigned field) const;
  /// The bytes of a vector of structs or numbers, `bytes` each.
  [[nodiscard]] std::span<const std::byte> elements(unsigned field, std::uint32_t bytes) const;
  [[noreturn]] void fail(std::string reason) const { buffer_->fail(at_, std::move(reason)); }

 private:
  friend class FlatBuffer;
  FlatTable(FlatBuffer& buffer, std::uint64_t at, std::uint64_t vtable,
            std::uint32_t vtable_bytes) noexcept
      : buffer_(&buffer), at_(at), vtable_(vtable), vtable_bytes_(vtable_bytes) {}
  [[nodiscard]] std::uint64_t find(unsigned field) const;  // its position; 0: it is left out
  [[nodiscard]] std::pair<std::uint64_t, std::uint32_t> vector(std::uint64_t at,
                                                               std::uint32_t bytes) const;

  FlatBuffer* buffer_;
  std::uint64_t at_;
  std::uint64_t vtable_;
  std::uint32_t vtable_bytes_;
};

}  // namespace penstock::source

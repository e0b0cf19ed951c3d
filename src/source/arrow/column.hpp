// source/arrow/column: a column of a batch in memory: nulls, values, lists, structs and dictionaries, without copies.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "src/source/arrow/schema.hpp"

namespace penstock::source {

/// A buffer, and where it is in its file; 0 where there is none, or where it was decompressed.
struct ArrowBuffer {
  std::span<const std::byte> bytes;
  std::uint64_t offset = 0;
};

/// The values from `begin` to `end` of a list's child.
struct ArrowValues {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  [[nodiscard]] std::uint64_t size() const noexcept { return end - begin; }
};

class ArrowColumn;

/// A dictionary's entries, in parts that continue each other; columns share them.
struct ArrowEntries {
  std::vector<ArrowColumn> parts;
  std::vector<std::uint64_t> ends;  ///< of each part, in entries

  /// Errors  DataError  they have more entries than numbers of 63 bits can say
  void add(ArrowColumn part);
};

/// What a column is made of.
struct ArrowColumnParts {
  const ArrowField* field = nullptr;
  bool is_dictionary = false;  ///< it holds entries of the field's dictionary, not numbers of them
  std::string path;            ///< of the field, for messages
  std::shared_ptr<const std::string> file;
  std::uint64_t length = 0;
  std::uint64_t offset = 0;  ///< values at the buffers' beginning that are not the column's
  bool may_have_nulls = false;
  ArrowBuffer validity;
  ArrowBuffer
      first;  ///< values, bits, offsets or views; of a column with a dictionary, numbers of its entries
  ArrowBuffer second;               ///< the bytes that slices are of
  std::vector<ArrowBuffer> viewed;  ///< the bytes that views are of
  std::vector<ArrowColumn> children;
  std::shared_ptr<const ArrowEntries> dictionary;  ///< of a column that has one
  std::shared_ptr<const void> owner;  ///< of the memory, if the caller does not keep it
  std::uint64_t owned_bytes = 0;      ///< that were made for the column, and `owner` holds
};

/// Of each node of a schema whether it is wanted; null: all are. What is in a struct that is wanted need not be.
using ArrowWanted = std::vector<bool>;
[[nodiscard]] inline bool is_wanted(const ArrowWanted* wanted, std::uint32_t node) {
  return wanted == nullptr || (*wanted)[node];
}

/// Values of a field. Those that it reads are checked as they are read: a function never returns what lies outside of the
/// column's buffers, whatever these hold. `number` must be less than length().
///
/// Threads  any number at once
/// Owns     with copies and children of it, the memory that parts.owner says; other memory is the caller's
/// Errors   DataError  what is read is damaged, or the field is of another type than the function needs
class ArrowColumn {
 public:
  /// Errors  DataError  a buffer is too small, or the type is not read
  explicit ArrowColumn(ArrowColumnParts parts);
  /// Stands for a column that is not wanted: so many nulls.
  [[nodiscard]] static ArrowColumn unwanted(std::uint64_t length,
                                            std::shared_ptr<const std::string> file);

  [[nodiscard]] const ArrowType& type() const noexcept { return type_; }
  [[nodiscard]] std::uint64_t length() const noexcept { return length_; }
  [[nodiscard]] bool may_have_nulls() const noexcept { return may_have_nulls_; }
  /// Memory of parts.owned_bytes and of itself, with that of its children and its dictionary.
  [[nodiscard]] std::uint64_t owned_bytes() const noexcept;
  /// Of a column with a dictionary: also where the entry is null.
  [[nodiscard]] bool is_null(std::uint64_t number) const;
  /// A value's bytes: little-endian if it has a width, a slice if not. Empty for a null of Binary or Utf8, anything for
  /// other nulls.
  [[nodiscard]] std::span<const std::byte> value(std::uint64_t number) const;
  [[nodiscard]] bool boolean(std::uint64_t number) const;
  /// An integer, date, time, timestamp or duration of at most 64 bits; unsigned ones of 64 keep their bits.
  [[nodiscard]] std::int64_t integer(std::uint64_t number) const;
  /// A list's values, in child(0). Empty for a null.
  [[nodiscard]] ArrowValues range(std::uint64_t number) const;
  /// All bytes of so many values of a width, from a number on. Not with a dictionary.
  [[nodiscard]] std::span<const std::byte> values(std::uint64_t begin, std::uint64_t count) const;

  /// A struct's field, whose values have the same numbers; or a list's values. Those of a dictionary are entry()'s.
  [[nodiscard]] std::size_t child_count() const noexcept { return children_.size(); }
  [[nodiscard]] const ArrowColumn& child(std::size_t child) const { return children_.at(child); }

  [[nodiscard]] bool has_dictionary() const noexcept { return has_dictionary_; }
  /// Where a value that is not null is: in a dictionary, or in the column itself.
  struct Entry {
    const ArrowColumn* column = nullptr;
    std::uint64_t number = 0;
  };
  [[nodiscard]] Entry entry(std::uint64_t number) const;

 private:
  friend struct ArrowEntries;
  void skip_values(std::uint64_t first, std::uint64_t length);
  void require_buffer(const ArrowBuffer& buffer, std::uint64_t count, std::uint64_t bytes,
                      const char* what) const;
  void check_sizes() const;
  [[nodiscard]] std::uint64_t offset_at(std::uint64_t number) const noexcept;
  [[nodiscard]] ArrowValues slice(std::uint64_t number, std::uint64_t most) const;
  [[nodiscard]] std::span<const std::byte> viewed(std::uint64_t number) const;
  [[nodiscard]] std::uint64_t dictionary_number(std::uint64_t number) const;
  void require_layout(bool holds, const char* what) const;
  [[noreturn]] void fail(const ArrowBuffer& buffer, std::uint64_t at, std::string reason) const;
  [[nodiscard]] bool is_null_here(std::uint64_t number) const noexcept;

  ArrowType type_;
  ArrowType stored_;  // type_, or the dictionary's index
  ArrowLayout layout_;
  std::shared_ptr<const std::string> path_;
  std::shared_ptr<const std::string> file_;
  std::uint64_t length_;
  std::uint64_t offset_;
  bool may_have_nulls_;
  bool has_dictionary_;
  ArrowBuffer validity_;
  ArrowBuffer first_;
  ArrowBuffer second_;
  std::vector<ArrowBuffer> viewed_;
  std::vector<ArrowColumn> children_;
  std::shared_ptr<const ArrowEntries> dictionary_;
  std::shared_ptr<const void> owner_;
  std::uint64_t owned_bytes_;
};

}  // namespace penstock::source

// source/arrays/columns: records that are rows of arrays which lie in memory or in a mapping.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <penstock/source/arrays.hpp>

namespace penstock::source {

/// One array, whose number of rows is known.
struct Rows {
  Column column;
  std::uint64_t count = 0;
  std::string location;     ///< a path, or what else to call it in messages
  std::uint64_t begin = 0;  ///< of the rows, in that file
};

/// Arrays of equal length, row by row.
class ColumnSource final : public Source {
 public:
  /// `kind` begins the fingerprint. Rows from storage count as bytes read.
  ///
  /// Errors  std::invalid_argument  no columns, or a name missing or used twice
  ColumnSource(std::string kind, std::vector<Rows> columns, bool from_storage,
               std::optional<Description> description = {});

  std::uint64_t size() const noexcept override { return size_; }
  std::span<const FieldSpec> fields() const noexcept override { return fields_; }
  Result<void> read(std::uint64_t number, Record& record) const override;
  std::string location(std::uint64_t number) const override;
  RecordName name(std::uint64_t number) const override;
  std::uint64_t files() const noexcept override { return 1; }
  std::uint64_t file_of(std::uint64_t) const override { return 0; }
  [[nodiscard]] bool is_random() const noexcept override { return false; }
  std::string fingerprint() const override;
  std::optional<Description> description() const override { return description_; }

 private:
  struct Start {
    const std::byte* data;
    std::size_t row_bytes;
    std::size_t stride;
    bool aligned;  // rows may be used where they lie
  };
  [[nodiscard]] RecordName name_in(std::size_t column, std::uint64_t number) const;

  std::string kind_;
  bool from_storage_;
  std::vector<FieldSpec> fields_;
  std::vector<Start> starts_;
  std::vector<Rows> columns_;
  std::uint64_t size_ = 0;
  std::uint64_t storage_bytes_ = 0;  // per record
  std::optional<Description> description_;
};

/// Errors  std::invalid_argument  no fields, or a name missing or used twice
void require_names(std::span<const FieldSpec> fields);

/// Bytes of one row.
///
/// Errors  std::invalid_argument  that is not a fixed number, is 0, or more than 2^63-1, or the
///                                shape leaves no room for a batch axis; the message names the
///                                field and `where` it comes from
[[nodiscard]] std::size_t require_row_bytes(const FieldSpec& spec, const std::string& where);

/// The first two columns whose lengths differ, in words; empty if there are none.
[[nodiscard]] std::string describe_unequal(std::span<const Rows> columns);

}  // namespace penstock::source

// batch/layout: where every row of every field lies in one replica's slice of a slot.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <penstock/core/tensor.hpp>

namespace penstock::batch {

/// The fields of a slice, one after another, each 256-byte aligned, so that one copy moves them
/// all.
///
/// Shapes   a field of shape [a, b] lies as [rows, a, b], dense
/// Units    offsets and sizes in bytes
/// Threads  const; any number of threads.
class BatchLayout {
 public:
  static constexpr std::size_t kAlignment = 256;

  /// Errors  std::invalid_argument  a dynamic field, two fields of one name, or a size beyond 64
  /// bits
  BatchLayout(std::vector<FieldSpec> fields, std::uint64_t max_rows);

  [[nodiscard]] std::span<const FieldSpec> fields() const noexcept { return fields_; }
  [[nodiscard]] std::uint64_t max_rows() const noexcept { return max_rows_; }
  [[nodiscard]] std::optional<std::size_t> find(std::string_view name) const noexcept;
  /// Of one slice with room for max_rows rows, a multiple of kAlignment.
  [[nodiscard]] std::size_t slice_bytes() const noexcept { return slice_bytes_; }
  /// Payload of one row over all fields, without padding.
  [[nodiscard]] std::size_t row_bytes() const noexcept { return row_bytes_; }

  /// The first `rows` rows of a field in the slice that starts at `slice`.
  [[nodiscard]] TensorView field(std::byte* slice, std::size_t field, std::uint64_t rows) const;
  /// Where a field begins in a slice.
  [[nodiscard]] std::size_t offset(std::size_t field) const noexcept {
    return places_[field].offset;
  }
  /// One row of a field: the place that a sample is written to.
  [[nodiscard]] std::byte* row(std::byte* slice, std::size_t field,
                               std::uint64_t row) const noexcept {
    return slice + places_[field].offset + row * places_[field].row_bytes;
  }

 private:
  struct Place {
    std::size_t offset;
    std::size_t row_bytes;
  };
  std::vector<FieldSpec> fields_;
  std::uint64_t max_rows_;
  std::vector<Place> places_;
  std::size_t slice_bytes_ = 0;
  std::size_t row_bytes_ = 0;
};

}  // namespace penstock::batch

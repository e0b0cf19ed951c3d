// source/stream/packing: one record in one block of memory, for queues and for what travels to
// them.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <penstock/core/tensor.hpp>
#include <penstock/source/source.hpp>

namespace penstock::source {

/// The dynamic extents of all fields (i64), then the bytes of every field, one after another.
struct PackedRecord {
  explicit PackedRecord(std::size_t bytes)
      : memory(std::make_unique_for_overwrite<std::byte[]>(bytes)), size(bytes) {}

  [[nodiscard]] std::span<std::byte> bytes() const noexcept { return {memory.get(), size}; }

  std::unique_ptr<std::byte[]> memory;
  std::size_t size;
};

/// How the records of some fields are packed.
///
/// Threads  const, from any thread.
class Packing {
 public:
  /// `where` is what the fields belong to, for messages.
  ///
  /// Errors  std::invalid_argument  no fields, a name missing or used twice, or a fixed shape
  /// without
  ///                                elements
  Packing(std::vector<FieldSpec> fields, std::string where);

  [[nodiscard]] std::span<const FieldSpec> fields() const noexcept { return fields_; }
  /// Bytes of every record; none if a field is dynamic.
  [[nodiscard]] std::optional<std::size_t> fixed_size() const noexcept { return fixed_size_; }

  /// The bytes of field `index` of a record.
  ///
  /// Errors  std::invalid_argument  it has another type or shape than the field should; says what
  /// was
  ///                                expected and what was found
  [[nodiscard]] std::size_t check(std::size_t index, const ConstTensorView& view) const;
  /// The packed size of a record.
  ///
  /// Errors  std::invalid_argument  as check(), or there are more or fewer fields
  [[nodiscard]] std::size_t size_of_record(std::span<const ConstTensorView> record) const;
  /// The dynamic extents that begin a packed record.
  [[nodiscard]] std::vector<std::int64_t> extents(std::span<const ConstTensorView> record) const;
  /// Packs a record whose size size_of_record() gave.
  [[nodiscard]] PackedRecord pack(std::span<const ConstTensorView> record, std::size_t size) const;

  /// What is wrong with bytes that another process packed; empty if nothing is.
  [[nodiscard]] std::string find_fault(const PackedRecord& packed) const;
  /// Copies a faultless record's fields into `record`'s memory.
  Result<void> unpack(const PackedRecord& packed, Record& record) const;

 private:
  std::vector<FieldSpec> fields_;
  std::string where_;
  std::size_t dynamic_extents_ = 0;
  std::optional<std::size_t> fixed_size_;
};

}  // namespace penstock::source

// Tables that Python has in memory, through Arrow's C stream interface, as records.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <penstock/penstock.hpp>

#include "python_object.hpp"

namespace penstock::python {

/// arrow_table() of an object, which it keeps, so that a plan with it can be pickled with the object.
class PythonTable final : public Source {
 public:
  PythonTable(SourcePtr rows, ObjectRef made_of)
      : rows_(std::move(rows)), made_of_(std::move(made_of)) {}

  /// The arguments of source_of_table(), as a tuple.
  [[nodiscard]] const ObjectRef& made_of() const noexcept { return made_of_; }

  std::uint64_t size() const noexcept override { return rows_->size(); }
  std::span<const FieldSpec> fields() const noexcept override { return rows_->fields(); }
  Result<void> read(std::uint64_t number, Record& record) const override {
    return rows_->read(number, record);
  }
  std::string location(std::uint64_t number) const override { return rows_->location(number); }
  RecordInfo info(std::uint64_t number) const override { return rows_->info(number); }
  std::optional<std::int64_t> label(std::uint64_t number) const override {
    return rows_->label(number);
  }
  RecordName name(std::uint64_t number) const override { return rows_->name(number); }
  std::optional<std::uint64_t> length(std::uint64_t number) const override {
    return rows_->length(number);
  }
  std::uint64_t files() const noexcept override { return rows_->files(); }
  std::uint64_t file_of(std::uint64_t number) const override { return rows_->file_of(number); }
  std::vector<std::uint64_t> chunks() const override { return rows_->chunks(); }
  std::string fingerprint() const override { return rows_->fingerprint(); }
  bool is_random() const noexcept override { return false; }
  std::span<const std::string> class_names() const noexcept override {
    return rows_->class_names();
  }

 private:
  SourcePtr rows_;
  ObjectRef made_of_;
};

/// `table` is an object with __arrow_c_stream__ or a data set of Hugging Face's. Needs the GIL.
///
/// Errors  as arrow_table() in Python
[[nodiscard]] SourcePtr source_of_table(nb::handle table, ArrowOptions options, nb::handle rows);

/// The same of made_of().
[[nodiscard]] SourcePtr remake_table(const nb::object& made_of);

}  // namespace penstock::python

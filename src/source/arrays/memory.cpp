#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include <penstock/source/arrays.hpp>

#include "src/source/arrays/columns.hpp"
#include "src/source/catalog.hpp"

namespace penstock {

namespace {

source::Rows whole_rows(Column column) {
  const FieldSpec& spec = column.spec;
  const std::size_t row_bytes = source::require_row_bytes(spec, "memory");
  if (column.stride) {
    const std::size_t stride = *column.stride, bytes = column.bytes.size();
    if (stride == 0 || (bytes != 0 && (bytes < row_bytes || (bytes - row_bytes) % stride != 0)))
      throw std::invalid_argument(
          fmt::format("field '{}': expected rows of {} bytes every so many bytes up to the last, "
                      "found {} bytes "
                      "and a row every {}",
                      spec.name, row_bytes, bytes, stride));
    const std::uint64_t count = bytes == 0 ? 0 : (bytes - row_bytes) / stride + 1;
    return {std::move(column), count, "memory"};
  }
  if (column.bytes.size() % row_bytes != 0) {
    throw std::invalid_argument(fmt::format(
        "field '{}': its {} bytes are not whole rows {} {} of {} bytes; check the "
        "row's shape",
        spec.name, column.bytes.size(), name_of(spec.dtype), spec.shape.to_string(), row_bytes));
  }
  const std::uint64_t count = column.bytes.size() / row_bytes;
  return {std::move(column), count, "memory"};
}

class Numbers final : public Source {
 public:
  Numbers(std::uint64_t size, std::size_t bytes)
      : size_(size),
        words_(bytes / sizeof(std::uint64_t)),
        field_{"number", DType::u64, {static_cast<std::int64_t>(words_)}} {}

  std::uint64_t size() const noexcept override { return size_; }
  std::span<const FieldSpec> fields() const noexcept override { return {&field_, 1}; }

  Result<void> read(std::uint64_t number, Record& record) const override {
    record.reset(1);
    Result<std::span<std::byte>> bytes = record.allocate(words_ * sizeof(std::uint64_t));
    if (!bytes) return std::move(bytes.fault());
    auto* const words = reinterpret_cast<std::uint64_t*>(bytes->data());
    for (std::size_t i = 0; i < words_; ++i) words[i] = number;
    record.set(0, bytes->data(), DType::u64, field_.shape);
    return {};
  }

  std::string location(std::uint64_t number) const override {
    return fmt::format("number {}", number);
  }
  std::uint64_t files() const noexcept override { return 1; }
  std::uint64_t file_of(std::uint64_t) const override { return 0; }
  [[nodiscard]] bool is_random() const noexcept override { return false; }
  std::string fingerprint() const override {
    return fmt::format("numbers({} rows, {} bytes)", size_, words_ * sizeof(std::uint64_t));
  }
  std::optional<Description> description() const override {
    return source::describe_numbers(size_, words_ * sizeof(std::uint64_t));
  }

 private:
  std::uint64_t size_;
  std::size_t words_;
  FieldSpec field_;
};

}  // namespace

SourcePtr source::memory(std::vector<Column> columns) {
  std::vector<source::Rows> rows;
  for (Column& column : columns) rows.push_back(whole_rows(std::move(column)));
  if (const std::string unequal = source::describe_unequal(rows); !unequal.empty()) {
    throw std::invalid_argument(unequal);
  }
  return std::make_shared<source::ColumnSource>("memory", std::move(rows), false);
}

SourcePtr source::numbers(std::uint64_t size, std::size_t bytes) {
  if (bytes == 0 || bytes % sizeof(std::uint64_t) != 0) {
    throw std::invalid_argument(
        fmt::format("numbers: expected bytes to be a multiple of 8, found {}", bytes));
  }
  return std::make_shared<Numbers>(size, bytes);
}

}  // namespace penstock

#include "src/source/arrays/columns.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string_view>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include <penstock/core/random.hpp>

#include "src/source/composite.hpp"
#include "src/source/hash_ends.hpp"

namespace penstock::source {

namespace {

bool is_aligned(const std::byte* data, std::size_t stride, DType dtype) noexcept {
  return (reinterpret_cast<std::uintptr_t>(data) | stride) % size_of(dtype) == 0;
}

}  // namespace

ColumnSource::ColumnSource(std::string kind, std::vector<Rows> columns, bool from_storage,
                           std::optional<Description> description)
    : kind_(std::move(kind)),
      from_storage_(from_storage),
      columns_(std::move(columns)),
      description_(std::move(description)) {
  for (const Rows& rows : columns_) {
    const FieldSpec& spec = rows.column.spec;
    const std::byte* const data = rows.column.bytes.data();
    fields_.push_back(spec);
    const std::size_t stride = rows.column.stride.value_or(spec.bytes());
    starts_.push_back({data, spec.bytes(), stride, is_aligned(data, stride, spec.dtype)});
    if (from_storage) storage_bytes_ += spec.bytes();
  }
  require_names(fields_);
  size_ = columns_.front().count;
}

Result<void> ColumnSource::read(std::uint64_t number, Record& record) const {
  record.reset(starts_.size());
  for (std::size_t i = 0; i < starts_.size(); ++i) {
    const Start& start = starts_[i];
    const std::byte* row = start.data + number * start.stride;
    if (!start.aligned) {
      Result<std::span<std::byte>> copy = record.allocate(start.row_bytes);
      if (!copy) return std::move(copy.fault());
      std::memcpy(copy->data(), row, start.row_bytes);
      row = copy->data();
    }
    record.set(i, row, fields_[i].dtype, fields_[i].shape);
  }
  record.add_bytes_read(storage_bytes_);
  return {};
}

std::string ColumnSource::location(std::uint64_t number) const {
  return fmt::format("{} row {}", columns_.front().location, number);
}

RecordName ColumnSource::name_in(std::size_t column, std::uint64_t number) const {
  const Rows& rows = columns_[column];
  RecordName name{.key = fmt::format("{} row {}", rows.location, number)};
  if (!from_storage_) return name;
  name.file = rows.location;
  name.offset = rows.begin + number * starts_[column].stride;
  return name;
}

RecordName ColumnSource::name(std::uint64_t number) const {
  if (columns_.size() == 1 || !from_storage_) return name_in(0, number);
  std::vector<RecordName> pieces;
  for (std::size_t column = 0; column < columns_.size(); ++column)
    pieces.push_back(name_in(column, number));
  return name_of_pieces(location(number), std::move(pieces));
}

std::string ColumnSource::fingerprint() const {
  std::string contents;
  for (const Rows& rows : columns_) {
    contents += rows.column.spec.to_string() + hash_spread(rows.column.bytes);
    if (rows.column.stride) contents += fmt::format("every {} bytes", *rows.column.stride);
  }
  return fmt::format("{}({} rows, {})", kind_, size_, hash_text(contents));
}

void require_names(std::span<const FieldSpec> fields) {
  if (fields.empty()) throw std::invalid_argument("no fields given; expected at least one");
  std::unordered_set<std::string_view> names;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].name.empty()) {
      throw std::invalid_argument(fmt::format("field {} has no name; give it one", i));
    }
    if (!names.insert(fields[i].name).second) {
      throw std::invalid_argument(
          fmt::format("two fields are named '{}'; give each a name of its own", fields[i].name));
    }
  }
}

std::size_t require_row_bytes(const FieldSpec& spec, const std::string& where) {
  if (spec.shape.rank() == Shape::kMaxRank) {  // a batch puts one more in front
    throw std::invalid_argument(
        fmt::format("field '{}' of {}: expected rows of at most {} extents, found {}", spec.name,
                    where, Shape::kMaxRank - 1, spec.shape.to_string()));
  }
  auto bytes = static_cast<std::int64_t>(size_of(spec.dtype));
  bool fixed = true;
  for (const std::int64_t extent : spec.shape.extents()) {
    fixed = fixed && extent > 0 && !__builtin_mul_overflow(bytes, extent, &bytes);
  }
  if (!fixed) {
    throw std::invalid_argument(fmt::format(
        "field '{}' of {}: expected rows of a fixed number of bytes, at least one and fewer than "
        "2^63, found the row {} {}",
        spec.name, where, name_of(spec.dtype), spec.shape.to_string()));
  }
  return static_cast<std::size_t>(bytes);
}

std::string describe_unequal(std::span<const Rows> columns) {
  for (const Rows& rows : columns) {
    const Rows& first = columns.front();
    if (rows.count == first.count) continue;
    return fmt::format("'{}' ({}) has {} rows, but '{}' ({}) has {}; expected equally many",
                       first.column.spec.name, first.location, first.count, rows.column.spec.name,
                       rows.location, rows.count);
  }
  return {};
}

}  // namespace penstock::source

#include "src/source/stream/packing.hpp"

#include <array>
#include <cstring>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "src/source/arrays/columns.hpp"

namespace penstock::source {

namespace {

// Bytes of a tensor whose extents may be anything; none if they are no shape of this world.
std::optional<std::size_t> checked_bytes(DType dtype, std::span<const std::int64_t> extents) {
  auto bytes = static_cast<std::int64_t>(size_of(dtype));
  bool fits = true;
  for (const std::int64_t extent : extents)
    fits = fits && extent >= 0 && !__builtin_mul_overflow(bytes, extent, &bytes);
  if (!fits) return std::nullopt;
  return static_cast<std::size_t>(bytes);
}

bool matches(const Shape& expected, const Shape& found) {
  if (expected.rank() != found.rank()) return false;
  for (std::size_t axis = 0; axis < expected.rank(); ++axis)
    if (expected[axis] != found[axis] && (expected[axis] != kDynamic || found[axis] < 0))
      return false;
  return true;
}

using Extents = std::array<std::int64_t, Shape::kMaxRank>;

// A field's extents in a packed record; moves `at` past those that stand there.
Extents read_extents(const FieldSpec& field, const std::byte*& at) {
  Extents extents{};
  for (std::size_t axis = 0; axis < field.shape.rank(); ++axis) {
    extents[axis] = field.shape[axis];
    if (extents[axis] != kDynamic) continue;
    std::memcpy(&extents[axis], at, sizeof(std::int64_t));
    at += sizeof(std::int64_t);
  }
  return extents;
}

}  // namespace

Packing::Packing(std::vector<FieldSpec> fields, std::string where)
    : fields_(std::move(fields)), where_(std::move(where)), fixed_size_(0) {
  require_names(fields_);
  for (const FieldSpec& field : fields_) {
    for (const std::int64_t extent : field.shape.extents())
      if (extent == kDynamic) ++dynamic_extents_;
    if (field.shape.is_dynamic())
      fixed_size_.reset();
    else if (const std::size_t bytes = require_row_bytes(field, where_); fixed_size_)
      *fixed_size_ += bytes;
  }
}

std::size_t Packing::check(std::size_t index, const ConstTensorView& view) const {
  const FieldSpec& field = fields_[index];
  const auto refuse = [&](std::string_view why) {
    throw std::invalid_argument(fmt::format(
        "{}: field '{}': expected {} {}, found {} {}: {}", where_, field.name, name_of(field.dtype),
        field.shape.to_string(), name_of(view.dtype()), view.shape().to_string(), why));
  };
  if (view.dtype() != field.dtype || !matches(field.shape, view.shape()))
    refuse("give it the type and shape that it was declared with, or declare others");
  const auto bytes = checked_bytes(view.dtype(), view.shape().extents());
  if (!bytes) refuse("no memory holds that much");
  return *bytes;
}

std::size_t Packing::size_of_record(std::span<const ConstTensorView> record) const {
  if (record.size() != fields_.size())
    throw std::invalid_argument(
        fmt::format("{}: expected records of {} fields, found one of {}: give them all, in the "
                    "order in which they were declared",
                    where_, fields_.size(), record.size()));
  std::size_t size = dynamic_extents_ * sizeof(std::int64_t);
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    const std::size_t bytes = check(i, record[i]);
    if (bytes != 0 && record[i].raw() == nullptr)
      throw std::invalid_argument(
          fmt::format("{}: field '{}': expected {} bytes, found a null pointer", where_,
                      fields_[i].name, bytes));
    size += bytes;  // of memory that exists
  }
  return size;
}

std::vector<std::int64_t> Packing::extents(std::span<const ConstTensorView> record) const {
  std::vector<std::int64_t> extents;
  extents.reserve(dynamic_extents_);
  for (std::size_t i = 0; i < fields_.size(); ++i)
    for (std::size_t axis = 0; axis < fields_[i].shape.rank(); ++axis)
      if (fields_[i].shape[axis] == kDynamic) extents.push_back(record[i].shape()[axis]);
  return extents;
}

PackedRecord Packing::pack(std::span<const ConstTensorView> record, std::size_t size) const {
  PackedRecord packed(size);
  std::byte* at = packed.memory.get();
  const auto append = [&at](std::span<const std::byte> bytes) {
    if (bytes.empty()) return;  // whose pointer may be null
    std::memcpy(at, bytes.data(), bytes.size());
    at += bytes.size();
  };
  if (dynamic_extents_ != 0) {
    const std::vector<std::int64_t> head = extents(record);
    append(std::as_bytes(std::span(head)));
  }
  for (const ConstTensorView& view : record) append(view.bytes());
  return packed;
}

std::string Packing::find_fault(const PackedRecord& packed) const {
  const std::size_t head = dynamic_extents_ * sizeof(std::int64_t);
  if (packed.size < head)
    return fmt::format("a record of {} bytes, too few for the {} extents that begin it",
                       packed.size, dynamic_extents_);
  const std::byte* extent_at = packed.memory.get();
  std::size_t size = head;
  for (const FieldSpec& field : fields_) {
    const Extents extents = read_extents(field, extent_at);
    const auto bytes = checked_bytes(field.dtype, std::span(extents).first(field.shape.rank()));
    if (!bytes || __builtin_add_overflow(size, *bytes, &size))
      return fmt::format("impossible extents for field '{}'", field.name);
  }
  if (size == packed.size) return {};
  return fmt::format("a record of {} bytes whose fields take {}", packed.size, size);
}

Result<void> Packing::unpack(const PackedRecord& packed, Record& record) const {
  record.reset(fields_.size());
  const std::byte* extent_at = packed.memory.get();
  const std::byte* at = extent_at + dynamic_extents_ * sizeof(std::int64_t);
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    const FieldSpec& field = fields_[i];
    const Extents extents = read_extents(field, extent_at);
    const FieldSpec found{{}, field.dtype, Shape(std::span(extents).first(field.shape.rank()))};
    const Result<std::span<std::byte>> room = record.allocate(found.bytes());
    if (!room) return room.fault();
    const std::span<std::byte> bytes = *room;
    if (!bytes.empty()) std::memcpy(bytes.data(), at, bytes.size());
    at += bytes.size();
    record.set(i, bytes.data(), found.dtype, found.shape);
  }
  return {};
}

}  // namespace penstock::source

#include "src/source/arrow/column.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "src/source/arrow/origin.hpp"
#include "src/source/little_endian.hpp"

namespace penstock::source {

namespace {

constexpr std::uint64_t kMaxLength = std::numeric_limits<std::int64_t>::max();

bool bit_at(std::span<const std::byte> bytes, std::uint64_t at) noexcept {
  return (std::to_integer<unsigned>(bytes[static_cast<std::size_t>(at / 8)]) >> (at % 8) & 1U) != 0;
}

// A little-endian integer of 1, 2, 4 or 8 bytes; narrower ones are extended.
std::int64_t integer_at(std::span<const std::byte> bytes, std::uint64_t at, const ArrowType& type) {
  const auto position = static_cast<std::size_t>(at);
  switch (type.width) {
    case 1:
      return type.is_signed ? load_little_endian<std::int8_t>(bytes, position)
                            : load_little_endian<std::uint8_t>(bytes, position);
    case 2:
      return type.is_signed ? load_little_endian<std::int16_t>(bytes, position)
                            : load_little_endian<std::uint16_t>(bytes, position);
    case 4:
      return type.is_signed ? load_little_endian<std::int32_t>(bytes, position)
                            : std::int64_t{load_little_endian<std::uint32_t>(bytes, position)};
    default:
      return load_little_endian<std::int64_t>(bytes, position);
  }
}

}  // namespace

ArrowColumn::ArrowColumn(ArrowColumnParts parts)
    : type_(parts.field->type),
      stored_(parts.field->dictionary && !parts.is_dictionary ? parts.field->dictionary->index
                                                              : parts.field->type),
      layout_(arrow_layout(stored_.kind)),
      path_(std::make_shared<const std::string>(std::move(parts.path))),
      file_(std::move(parts.file)),
      length_(parts.length),
      offset_(parts.offset),
      may_have_nulls_(parts.may_have_nulls),
      has_dictionary_(parts.field->dictionary.has_value() && !parts.is_dictionary),
      validity_(parts.validity),
      first_(parts.first),
      second_(parts.second),
      viewed_(std::move(parts.viewed)),
      children_(std::move(parts.children)),
      dictionary_(std::move(parts.dictionary)),
      owner_(std::move(parts.owner)),
      owned_bytes_(parts.owned_bytes) {
  check_sizes();
  if (layout_ == ArrowLayout::structure)
    for (ArrowColumn& child : children_) child.skip_values(offset_, length_);
}

ArrowColumn ArrowColumn::unwanted(std::uint64_t length, std::shared_ptr<const std::string> file) {
  static const ArrowField kField{.type = {.kind = ArrowKind::null}};
  return ArrowColumn({.field = &kField, .file = std::move(file), .length = length});
}

std::uint64_t ArrowColumn::owned_bytes() const noexcept {
  std::uint64_t bytes = sizeof(ArrowColumn) + owned_bytes_;
  for (const ArrowColumn& child : children_) bytes += child.owned_bytes();
  if (dictionary_ != nullptr)
    for (const ArrowColumn& part : dictionary_->parts) bytes += part.owned_bytes();
  return bytes;
}

void ArrowEntries::add(ArrowColumn part) {
  const std::uint64_t before = ends.empty() ? 0 : ends.back();
  if (part.length() > kMaxLength - before)
    part.fail(part.first_, 0, fmt::format("the dictionary has more than {} entries", kMaxLength));
  ends.push_back(before + part.length());
  parts.push_back(std::move(part));
}

// What a struct's offset leaves out is left out of its fields.
void ArrowColumn::skip_values(std::uint64_t first, std::uint64_t length) {
  offset_ += first;
  length_ = length;
  if (layout_ == ArrowLayout::structure)
    for (ArrowColumn& child : children_) child.skip_values(first, length);
}

void ArrowColumn::check_sizes() const {
  if (layout_ == ArrowLayout::other)
    throw_arrow_unread({.file = *file_, .offset = first_.offset},
                       fmt::format("{} in column '{}'", name_of(stored_), *path_));
  if (length_ > kMaxLength || offset_ > kMaxLength - length_)
    fail(first_, 0, fmt::format("the column has {} values from {} on", length_, offset_));
  const std::uint64_t count = offset_ + length_;
  if (may_have_nulls_ && layout_ != ArrowLayout::none)
    require_buffer(validity_, count / 8 + (count % 8 != 0 ? 1 : 0), 1, "validity bits");
  const auto require_child = [&](std::size_t child, std::uint64_t length) {
    if (children_[child].length() < length)
      fail(first_, 0,
           fmt::format("expected {} values in child {}, and found {}", length, child,
                       children_[child].length()));
  };
  const bool has_child = layout_ == ArrowLayout::list || layout_ == ArrowLayout::fixed_list;
  if (has_child && children_.size() != 1)
    fail(first_, 0, fmt::format("expected one child of a list, and found {}", children_.size()));
  switch (layout_) {
    case ArrowLayout::bits:
      return require_buffer(first_, count / 8 + (count % 8 != 0 ? 1 : 0), 1, "bits");
    case ArrowLayout::fixed:
      return require_buffer(first_, count, stored_.width, "values");
    case ArrowLayout::slices:
    case ArrowLayout::list:
      // Without values there need not be an offset.
      if (length_ == 0) return;
      return require_buffer(first_, count + 1, arrow_offset_bytes(stored_.kind), "offsets");
    case ArrowLayout::views:
      return require_buffer(first_, count, kArrowViewBytes, "views");
    case ArrowLayout::fixed_list: {
      if (stored_.list_size != 0 && count > kMaxLength / stored_.list_size)
        fail(first_, 0, fmt::format("{} lists have {} values each", count, stored_.list_size));
      return require_child(0, count * stored_.list_size);
    }
    case ArrowLayout::structure:
      for (std::size_t i = 0; i < children_.size(); ++i) require_child(i, count);
      return;
    default:
      return;
  }
}

void ArrowColumn::require_buffer(const ArrowBuffer& buffer, std::uint64_t count,
                                 std::uint64_t bytes, const char* what) const {
  if (bytes == 0 || count <= buffer.bytes.size() / bytes) return;
  fail(buffer, 0,
       fmt::format("expected {} {} of {} bytes, and found {} bytes", count, what, bytes,
                   buffer.bytes.size()));
}

void ArrowColumn::fail(const ArrowBuffer& buffer, std::uint64_t at, std::string reason) const {
  throw_arrow_damage({.file = *file_, .offset = buffer.offset}, buffer.offset == 0 ? 0 : at,
                     fmt::format("column '{}' of type {}: {}", *path_, name_of(stored_), reason));
}

void ArrowColumn::require_layout(bool holds, const char* what) const {
  if (holds) return;
  throw DataError(Fault{.reason = fmt::format("expected column '{}' to have {}, and found {}: read "
                                              "it as what it is",
                                              *path_, what, name_of(stored_)),
                        .file = *file_,
                        .offset = first_.offset});
}

bool ArrowColumn::is_null_here(std::uint64_t number) const noexcept {
  if (layout_ == ArrowLayout::none) return true;
  return may_have_nulls_ && !bit_at(validity_.bytes, offset_ + number);
}

bool ArrowColumn::is_null(std::uint64_t number) const {
  if (is_null_here(number)) return true;
  if (!has_dictionary_) return false;
  const Entry found = entry(number);
  return found.column->is_null(found.number);
}

std::uint64_t ArrowColumn::dictionary_number(std::uint64_t number) const {
  const std::uint64_t at = (offset_ + number) * stored_.width;
  const std::int64_t entry = integer_at(first_.bytes, at, stored_);
  const bool is_empty = dictionary_ == nullptr || dictionary_->ends.empty();
  const std::uint64_t entries = is_empty ? 0 : dictionary_->ends.back();
  if (entry < 0 || static_cast<std::uint64_t>(entry) >= entries)
    fail(first_, at,
         fmt::format("value {} is entry {} of a dictionary of {} entries", number, entry, entries));
  return static_cast<std::uint64_t>(entry);
}

ArrowColumn::Entry ArrowColumn::entry(std::uint64_t number) const {
  if (!has_dictionary_) return {this, number};
  const std::uint64_t entry = dictionary_number(number);
  const std::vector<std::uint64_t>& ends = dictionary_->ends;
  const auto at = static_cast<std::size_t>(std::ranges::upper_bound(ends, entry) - ends.begin());
  return {&dictionary_->parts[at], at == 0 ? entry : entry - ends[at - 1]};
}

std::uint64_t ArrowColumn::offset_at(std::uint64_t number) const noexcept {
  const auto at = static_cast<std::size_t>(offset_ + number);
  if (arrow_offset_bytes(stored_.kind) == 4) {
    // A negative one becomes one that no buffer has.
    return static_cast<std::uint64_t>(
        std::int64_t{load_little_endian<std::int32_t>(first_.bytes, 4 * at)});
  }
  return load_little_endian<std::uint64_t>(first_.bytes, 8 * at);
}

ArrowValues ArrowColumn::slice(std::uint64_t number, std::uint64_t most) const {
  const ArrowValues found{offset_at(number), offset_at(number + 1)};
  if (found.begin > found.end || found.end > most)
    fail(first_, (offset_ + number) * arrow_offset_bytes(stored_.kind),
         fmt::format("value {} is from {} to {} of {}", number,
                     static_cast<std::int64_t>(found.begin), static_cast<std::int64_t>(found.end),
                     most));
  return found;
}

std::span<const std::byte> ArrowColumn::value(std::uint64_t number) const {
  if (has_dictionary_) {
    if (is_null_here(number)) return {};
    const Entry found = entry(number);
    return found.column->value(found.number);
  }
  if (layout_ == ArrowLayout::slices) {
    if (is_null_here(number)) return {};
    const ArrowValues found = slice(number, second_.bytes.size());
    return second_.bytes.subspan(static_cast<std::size_t>(found.begin),
                                 static_cast<std::size_t>(found.size()));
  }
  if (layout_ == ArrowLayout::views)
    return is_null_here(number) ? std::span<const std::byte>() : viewed(number);
  return values(number, 1);
}

// Short values are in the view itself; of others it has the first 4 bytes, which are not read here.
std::span<const std::byte> ArrowColumn::viewed(std::uint64_t number) const {
  constexpr std::size_t kInline = 12;
  const auto at = static_cast<std::size_t>((offset_ + number) * kArrowViewBytes);
  const auto length = load_little_endian<std::int32_t>(first_.bytes, at);
  if (length >= 0 && static_cast<std::size_t>(length) <= kInline)
    return first_.bytes.subspan(at + sizeof length, static_cast<std::size_t>(length));
  const auto buffer = load_little_endian<std::int32_t>(first_.bytes, at + 8);
  const auto begin = load_little_endian<std::int32_t>(first_.bytes, at + 12);
  const auto bytes = buffer >= 0 && static_cast<std::size_t>(buffer) < viewed_.size()
                         ? viewed_[static_cast<std::size_t>(buffer)].bytes
                         : std::span<const std::byte>();
  if (length < 0 || begin < 0 || static_cast<std::size_t>(begin) > bytes.size() ||
      static_cast<std::size_t>(length) > bytes.size() - static_cast<std::size_t>(begin))
    fail(first_, at,
         fmt::format("value {} is {} bytes from {} of buffer {}, which has {}", number, length,
                     begin, buffer, bytes.size()));
  return bytes.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(length));
}

std::span<const std::byte> ArrowColumn::values(std::uint64_t begin, std::uint64_t count) const {
  require_layout(layout_ == ArrowLayout::fixed && !has_dictionary_, "values of one width");
  const std::uint64_t width = stored_.width;
  return first_.bytes.subspan(static_cast<std::size_t>((offset_ + begin) * width),
                              static_cast<std::size_t>(count * width));
}

bool ArrowColumn::boolean(std::uint64_t number) const {
  if (has_dictionary_) {
    if (is_null_here(number)) return false;
    const Entry found = entry(number);
    return found.column->boolean(found.number);
  }
  require_layout(layout_ == ArrowLayout::bits, "booleans");
  return bit_at(first_.bytes, offset_ + number);
}

std::int64_t ArrowColumn::integer(std::uint64_t number) const {
  if (has_dictionary_) {
    if (is_null_here(number)) return 0;
    const Entry found = entry(number);
    return found.column->integer(found.number);
  }
  const ArrowKind kind = stored_.kind;
  const bool is_time = kind == ArrowKind::date || kind == ArrowKind::time ||
                       kind == ArrowKind::timestamp || kind == ArrowKind::duration;
  require_layout(is_time || kind == ArrowKind::integer, "integers");
  ArrowType read = stored_;
  read.is_signed = read.is_signed || is_time;
  return integer_at(first_.bytes, (offset_ + number) * stored_.width, read);
}

ArrowValues ArrowColumn::range(std::uint64_t number) const {
  if (is_null_here(number)) return {};
  if (layout_ == ArrowLayout::fixed_list) {
    const std::uint64_t size = stored_.list_size;
    return {(offset_ + number) * size, (offset_ + number + 1) * size};
  }
  require_layout(layout_ == ArrowLayout::list, "lists");
  return slice(number, children_[0].length());
}

}  // namespace penstock::source

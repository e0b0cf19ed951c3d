#include "src/source/arrow/place.hpp"

#include <fmt/format.h>

#include "src/source/little_endian.hpp"

namespace penstock::source {

void ArrowPlaces::fail(std::uint32_t field, const std::string& reason) const {
  throw_arrow_damage({.file = file_, .offset = batch_.body.begin}, 0,
                     fmt::format("column '{}': {}", fields_.path(field), reason));
}

void ArrowPlaces::fail_unplaced(std::uint32_t field) const {
  const ArrowField& node = fields_.nodes[field];
  throw DataError(Fault{
      .reason = fmt::format("the values of column '{}' of type {}{}{} have no places in the "
                            "file: open the column",
                            fields_.path(field), name_of(node.type),
                            node.dictionary ? " with a dictionary" : "",
                            batch_.compression != ArrowCompression::none ? ", compressed" : ""),
      .file = file_,
      .offset = batch_.body.begin});
}

const ArrowNode& ArrowPlaces::require(std::uint32_t field, std::uint64_t number) const {
  const ArrowNode* node = batch_.find(field);
  if (node == nullptr || batch_.compression != ArrowCompression::none ||
      fields_.nodes[field].dictionary)
    fail_unplaced(field);
  if (number >= node->length)
    fail(field, fmt::format("expected a value {}, and found {} values", number, node->length));
  return *node;
}

ArrowRange ArrowPlaces::part(std::uint32_t field, std::uint32_t buffer, std::uint64_t number,
                             std::uint64_t bytes, std::uint64_t count) const {
  const ArrowRange& range = batch_.buffers[buffer];
  if (bytes > 0 && (range.bytes / bytes < count || number > range.bytes / bytes - count))
    fail(field, fmt::format("expected {} elements of {} bytes from {} on, and found {} bytes",
                            count, bytes, number, range.bytes));
  return {batch_.body.begin + range.begin + number * bytes, count * bytes};
}

bool ArrowPlaces::is_null(std::uint32_t field, const ArrowNode& node, std::uint64_t number) const {
  if (node.null_count == 0) return false;
  const ArrowRange byte = part(field, node.first_buffer, number / 8, 1, 1);
  const auto read = read_arrow_range(read_, byte.begin, byte.bytes, file_);
  return (std::to_integer<unsigned>(read[0]) >> (number % 8) & 1U) == 0;
}

ArrowValues ArrowPlaces::slice(std::uint32_t field, const ArrowNode& node, std::uint64_t number,
                               std::uint64_t most) const {
  const std::uint32_t width = arrow_offset_bytes(fields_.nodes[field].type.kind);
  const ArrowRange offsets = part(field, node.first_buffer + 1, number, width, 2);
  const auto read = read_arrow_range(read_, offsets.begin, offsets.bytes, file_);
  const auto offset = [&](std::size_t at) {
    return width == 4 ? std::int64_t{load_little_endian<std::int32_t>(read, at)}
                      : load_little_endian<std::int64_t>(read, at);
  };
  const std::int64_t begin = offset(0);
  const std::int64_t end = offset(width);
  if (begin < 0 || end < begin || static_cast<std::uint64_t>(end) > most)
    fail(field, fmt::format("value {} is from {} to {} of {}", number, begin, end, most));
  return {static_cast<std::uint64_t>(begin), static_cast<std::uint64_t>(end)};
}

Result<std::optional<ArrowRange>> ArrowPlaces::value(std::uint32_t field,
                                                     std::uint64_t number) const {
  return arrow_result([&]() -> std::optional<ArrowRange> {
    const ArrowNode& node = require(field, number);
    const ArrowType& type = fields_.nodes[field].type;
    const ArrowLayout layout = arrow_layout(type.kind);
    if (layout != ArrowLayout::fixed && layout != ArrowLayout::slices) fail_unplaced(field);
    if (is_null(field, node, number)) return std::nullopt;
    if (layout == ArrowLayout::fixed)
      return part(field, node.first_buffer + 1, number, type.width, 1);
    const ArrowRange& bytes = batch_.buffers[node.first_buffer + 2];
    const ArrowValues found = slice(field, node, number, bytes.bytes);
    return ArrowRange{batch_.body.begin + bytes.begin + found.begin, found.size()};
  });
}

Result<std::optional<ArrowValues>> ArrowPlaces::list(std::uint32_t field,
                                                     std::uint64_t number) const {
  return arrow_result([&]() -> std::optional<ArrowValues> {
    const ArrowNode& node = require(field, number);
    const ArrowType& type = fields_.nodes[field].type;
    const ArrowLayout layout = arrow_layout(type.kind);
    if (layout != ArrowLayout::list && layout != ArrowLayout::fixed_list) fail_unplaced(field);
    if (is_null(field, node, number)) return std::nullopt;
    const std::uint64_t most = batch_.find(fields_.nodes[field].children.at(0))->length;
    if (layout == ArrowLayout::list) return slice(field, node, number, most);
    const std::uint64_t size = type.list_size;
    if (size > 0 && number >= most / size)
      fail(field, fmt::format("expected value {} of {} elements, and found {} elements in all",
                              number, size, most));
    return ArrowValues{number * size, (number + 1) * size};
  });
}

}  // namespace penstock::source

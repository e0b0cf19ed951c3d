#include "src/source/arrow/schema.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace penstock::source {

namespace {

constexpr std::int32_t kByteBits = 8;

ArrowMetadata read_metadata(const FlatTable& table, unsigned field) {
  ArrowMetadata metadata;
  const FlatTables entries = table.tables(field);
  for (std::uint32_t i = 0; i < entries.size(); ++i) {
    const FlatTable entry = entries[i];
    metadata.emplace_back(entry.text(0), entry.text(1));
  }
  return metadata;
}

std::uint32_t read_width(const FlatTable& type, std::int32_t bits, std::int32_t least,
                         std::int32_t most, std::string_view what) {
  if (bits < least || bits > most || (bits & (bits - 1)) != 0)
    type.fail(fmt::format("expected {} of {} to {} bits, and found {}", what, least, most, bits));
  return static_cast<std::uint32_t>(bits / kByteBits);
}

ArrowUnit read_unit(const FlatTable& type, unsigned field, std::int16_t otherwise) {
  static constexpr std::array kUnits{ArrowUnit::seconds, ArrowUnit::milliseconds,
                                     ArrowUnit::microseconds, ArrowUnit::nanoseconds};
  const auto unit = type.number<std::int16_t>(field, otherwise);
  if (unit < 0 || static_cast<std::size_t>(unit) >= kUnits.size())
    type.fail(fmt::format("expected a unit of time from 0 to 3, and found {}", unit));
  return kUnits[static_cast<std::size_t>(unit)];
}

std::uint32_t read_size(const FlatTable& type, std::string_view what) {
  const auto size = type.number<std::int32_t>(0);
  if (size < 0) type.fail(fmt::format("expected {} to be 0 or more, and found {}", what, size));
  return static_cast<std::uint32_t>(size);
}

ArrowType read_integer_type(const FlatTable& type) {
  return {.kind = ArrowKind::integer,
          .width = read_width(type, type.number<std::int32_t>(0), 8, 64, "an integer"),
          .is_signed = type.boolean(1)};
}

ArrowType read_type(ArrowKind kind, const FlatTable& type) {
  constexpr std::int16_t kMilliseconds = 1;
  ArrowType read{.kind = kind};
  switch (kind) {
    case ArrowKind::integer:
      return read_integer_type(type);
    case ArrowKind::floating: {
      const auto precision = type.number<std::int16_t>(0);
      if (precision < 0 || precision > 2)
        type.fail(fmt::format("expected a precision from 0 to 2, and found {}", precision));
      read.width = 2U << static_cast<unsigned>(precision);
      return read;
    }
    case ArrowKind::decimal:
      read.precision = type.number<std::int32_t>(0);
      read.scale = type.number<std::int32_t>(1);
      read.width = read_width(type, type.number<std::int32_t>(2, 128), 32, 256, "a decimal");
      return read;
    case ArrowKind::date: {
      const auto unit = type.number<std::int16_t>(0, kMilliseconds);
      if (unit < 0 || unit > 1)
        type.fail(fmt::format("expected a unit of dates from 0 to 1, and found {}", unit));
      read.unit = unit == 0 ? ArrowUnit::days : ArrowUnit::milliseconds;
      read.width = unit == 0 ? 4 : 8;
      return read;
    }
    case ArrowKind::time:
      read.unit = read_unit(type, 0, kMilliseconds);
      read.width = read_width(type, type.number<std::int32_t>(1, 32), 32, 64, "a time");
      return read;
    case ArrowKind::timestamp:
      read.unit = read_unit(type, 0, 0);
      read.time_zone = type.text(1);
      read.width = 8;
      return read;
    case ArrowKind::duration:
      read.unit = read_unit(type, 0, kMilliseconds);
      read.width = 8;
      return read;
    case ArrowKind::interval: {
      static constexpr std::array<std::uint32_t, 3> kWidths{4, 8, 16};
      const auto unit = type.number<std::int16_t>(0);
      if (unit < 0 || static_cast<std::size_t>(unit) >= kWidths.size())
        type.fail(fmt::format("expected a unit of intervals from 0 to 2, and found {}", unit));
      read.width = kWidths[static_cast<std::size_t>(unit)];
      return read;
    }
    case ArrowKind::fixed_size_binary:
      read.width = read_size(type, "the bytes of a FixedSizeBinary");
      return read;
    case ArrowKind::fixed_size_list:
      read.list_size = read_size(type, "the size of a FixedSizeList");
      return read;
    case ArrowKind::dense_or_sparse_union:
      read.is_dense = type.number<std::int16_t>(0) != 0;
      return read;
    default:
      return read;
  }
}

class SchemaReader {
 public:
  SchemaReader(ArrowFields& fields, const ArrowOrigin& origin, const ArrowLimits& limits)
      : fields_(fields), origin_(origin), limits_(limits) {}

  void read_children(const FlatTables& tables, std::uint32_t parent, std::uint32_t depth) {
    if (tables.size() > 0 && depth > kDeepestArrowField)
      tables[0].fail(fmt::format("the schema is more than {} fields deep", kDeepestArrowField));
    for (std::uint32_t i = 0; i < tables.size(); ++i) read_field(tables[i], parent, depth);
  }

 private:
  void read_field(const FlatTable& table, std::uint32_t parent, std::uint32_t depth) {
    if (fields_.nodes.size() >= limits_.fields)
      throw DataError(
          Fault{.reason = fmt::format("the schema has more than {} fields, which is the "
                                      "most that are read: leave out columns",
                                      limits_.fields),
                .file = origin_.file,
                .offset = origin_.offset});
    ArrowField field;
    field.name = table.text(0);
    field.nullable = table.boolean(1);
    const auto kind = table.number<std::uint8_t>(2);
    const auto type = table.table(3);
    if (kind == 0 || !type) table.fail(fmt::format("field '{}' has no type", field.name));
    field.type = read_type(static_cast<ArrowKind>(kind), *type);
    if (const auto dictionary = table.table(4)) field.dictionary = read_dictionary(*dictionary);
    field.metadata = read_metadata(table, 6);
    const std::uint32_t node = add_arrow_field(fields_, std::move(field), parent);
    read_children(table.tables(5), node, depth + 1);
    close_arrow_field(fields_, node);
    if (std::string fault = arrow_children_fault(fields_, node); !fault.empty())
      table.fail(std::move(fault));
  }

  static ArrowDictionary read_dictionary(const FlatTable& table) {
    ArrowDictionary dictionary{
        .id = table.number<std::int64_t>(0),
        .index = {.kind = ArrowKind::integer, .width = 4, .is_signed = true}};
    if (const auto index = table.table(1)) dictionary.index = read_integer_type(*index);
    return dictionary;
  }

  ArrowFields& fields_;
  const ArrowOrigin& origin_;
  const ArrowLimits& limits_;
};

}  // namespace

const std::string* ArrowField::find_metadata(std::string_view key) const noexcept {
  for (const auto& [name_of_entry, value] : metadata)
    if (name_of_entry == key) return &value;
  return nullptr;
}

std::optional<std::uint32_t> ArrowFields::find(std::string_view name,
                                               std::uint32_t parent) const noexcept {
  const std::vector<std::uint32_t>& children = nodes[parent].children;
  const auto found = std::ranges::find_if(
      children, [&](std::uint32_t child) { return nodes[child].name == name; });
  if (found == children.end()) return std::nullopt;
  return *found;
}

std::string ArrowFields::path(std::uint32_t node) const {
  constexpr std::size_t kLongest = 200;
  std::string text = nodes[node].name.substr(0, kLongest);
  while (nodes[node].parent != 0) {
    node = nodes[node].parent;
    const std::string& name = nodes[node].name;
    if (name.size() > kLongest || text.size() + name.size() > kLongest) return "..." + text;
    text.insert(0, name + ".");
  }
  return text;
}

bool same_arrow_values(const ArrowFields& fields, std::uint32_t one, std::uint32_t other) noexcept {
  const std::uint32_t size = fields.nodes[one].end - one;
  if (fields.nodes[other].end - other != size) return false;
  for (std::uint32_t i = 0; i < size; ++i) {
    const ArrowField& first = fields.nodes[one + i];
    const ArrowField& second = fields.nodes[other + i];
    if (first.type != second.type || first.end - one != second.end - other) return false;
    if (i > 0 && first.dictionary != second.dictionary) return false;
  }
  return true;
}

std::uint32_t add_arrow_field(ArrowFields& fields, ArrowField field, std::uint32_t parent) {
  const auto number = static_cast<std::uint32_t>(fields.nodes.size());
  field.parent = parent;
  field.end = number + 1;
  fields.nodes.push_back(std::move(field));
  if (number != parent) fields.nodes[parent].children.push_back(number);
  return number;
}

void close_arrow_field(ArrowFields& fields, std::uint32_t node) {
  fields.nodes[node].end = static_cast<std::uint32_t>(fields.nodes.size());
}

std::string arrow_children_fault(const ArrowFields& fields, std::uint32_t node) {
  const ArrowField& field = fields.nodes[node];
  std::size_t expected = 0;
  switch (field.type.kind) {
    case ArrowKind::structure:
    case ArrowKind::dense_or_sparse_union:
    case ArrowKind::unknown:
      return {};
    case ArrowKind::list:
    case ArrowKind::large_list:
    case ArrowKind::fixed_size_list:
    case ArrowKind::map:
    case ArrowKind::list_view:
    case ArrowKind::large_list_view:
      expected = 1;
      break;
    case ArrowKind::run_end_encoded:
      expected = 2;
      break;
    default:
      if (field.type.kind > ArrowKind::large_list_view) return {};
      break;
  }
  if (field.children.size() == expected) return {};
  return fmt::format("expected field '{}' of type {} to have {} children, and found {}", field.name,
                     name_of(field.type), expected, field.children.size());
}

ArrowFields read_arrow_schema(const FlatTable& schema, const ArrowOrigin& origin,
                              const ArrowLimits& limits) {
  if (schema.number<std::int16_t>(0) != 0)
    throw_arrow_unread(origin, "data of a big-endian machine");
  ArrowFields fields;
  ArrowField root;
  root.nullable = false;
  root.type.kind = ArrowKind::structure;
  root.metadata = read_metadata(schema, 2);
  add_arrow_field(fields, std::move(root), 0);
  SchemaReader(fields, origin, limits).read_children(schema.tables(1), 0, 1);
  close_arrow_field(fields, 0);
  return fields;
}

}  // namespace penstock::source

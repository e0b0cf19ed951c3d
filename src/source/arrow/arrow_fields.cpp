#include "src/source/arrow/arrow_fields.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace penstock::source {

namespace {

constexpr std::string_view kArrowReader =
    "pyarrow.ipc.open_stream(path).read_all(), or open_file(path)";

// The nodes from a column to a leaf.
std::vector<std::uint32_t> way_to(const ArrowFields& schema, std::uint32_t leaf) {
  std::vector<std::uint32_t> nodes;
  for (std::uint32_t node = leaf; node != 0; node = schema.nodes[node].parent)
    nodes.push_back(node);
  std::ranges::reverse(nodes);
  return nodes;
}

std::string name_of_way(const ArrowFields& schema, std::span<const std::uint32_t> nodes) {
  std::string name;
  for (const std::uint32_t node : nodes) {
    const ArrowField& field = schema.nodes[node];
    if (field.parent != 0 && is_arrow_list(schema.nodes[field.parent].type.kind)) continue;
    if (!name.empty()) name += '.';
    name += field.name;
  }
  return name;
}

bool is_arrow_bytes(ArrowKind kind) noexcept {
  return kind == ArrowKind::binary || kind == ArrowKind::utf8 || kind == ArrowKind::large_binary ||
         kind == ArrowKind::large_utf8 || kind == ArrowKind::binary_view ||
         kind == ArrowKind::utf8_view;
}

// Whether a struct is Hugging Face's for media.
bool is_arrow_media(const ArrowFields& schema, std::uint32_t node) {
  const ArrowField& field = schema.nodes[node];
  return field.type.kind == ArrowKind::structure && field.children.size() == 2 &&
         std::ranges::all_of(field.children, [&](std::uint32_t child) {
           const ArrowField& part = schema.nodes[child];
           return (part.name == "bytes" || part.name == "path") && is_arrow_bytes(part.type.kind);
         });
}

// Whether a node is read through what is in it.
bool has_parts(const ArrowField& field) noexcept {
  return field.type.kind == ArrowKind::structure || is_arrow_list(field.type.kind);
}

DType arrow_integer(const ArrowType& type) noexcept {
  switch (type.width) {
    case 1:
      return type.is_signed ? DType::i8 : DType::u8;
    case 2:
      return type.is_signed ? DType::i16 : DType::u16;
    case 4:
      return type.is_signed ? DType::i32 : DType::u32;
    default:
      return type.is_signed ? DType::i64 : DType::u64;
  }
}

std::string unit_of_type(const ArrowType& type) {
  static constexpr std::array<std::string_view, 6> kUnits{"",       " in days", " in s",
                                                          " in ms", " in us",   " in ns"};
  const std::string_view unit = kUnits[static_cast<std::size_t>(type.unit)];
  switch (type.kind) {
    case ArrowKind::date:
      return fmt::format("a date{}", unit);
    case ArrowKind::time:
      return fmt::format("a time{}", unit);
    case ArrowKind::timestamp:
      return fmt::format("a timestamp{}", unit);
    default:
      return fmt::format("a duration{}", unit);
  }
}

TableValues values_of_type(const ArrowType& type, const std::string& file,
                           const std::string& column) {
  switch (type.kind) {
    case ArrowKind::boolean:
      return {.dtype = DType::boolean};
    case ArrowKind::integer:
      return {.dtype = arrow_integer(type)};
    case ArrowKind::floating:
      return {.dtype = type.width == 2 ? DType::f16 : type.width == 4 ? DType::f32 : DType::f64};
    case ArrowKind::date:
    case ArrowKind::time:
    case ArrowKind::timestamp:
    case ArrowKind::duration:
      return {.dtype = type.width == 4 ? DType::i32 : DType::i64, .unit = unit_of_type(type)};
    case ArrowKind::binary:
    case ArrowKind::utf8:
    case ArrowKind::large_binary:
    case ArrowKind::large_utf8:
    case ArrowKind::binary_view:
    case ArrowKind::utf8_view:
      return {.is_bytes = true};
    case ArrowKind::fixed_size_binary:
      if (type.width > 0) return {.fixed_bytes = type.width};
      [[fallthrough]];
    default:
      refuse_table_column(file, column, fmt::format("is of type {}", name_of(type)), kArrowReader);
  }
}

TableValues values_of_node(const ArrowFields& schema, std::uint32_t leaf, const std::string& file,
                           const std::string& column) {
  std::vector<std::uint32_t> sizes;  // of lists, the inner ones first
  for (std::uint32_t node = schema.nodes[leaf].parent; node != 0;
       node = schema.nodes[node].parent) {
    const ArrowType& type = schema.nodes[node].type;
    if (!is_arrow_list(type.kind)) continue;
    sizes.push_back(type.kind == ArrowKind::fixed_size_list ? type.list_size : 0);
  }
  TableValues values = values_of_type(schema.nodes[leaf].type, file, column);
  const bool is_bytes = values.is_bytes || values.fixed_bytes != 0;
  require_list_depth(static_cast<std::uint32_t>(sizes.size()), is_bytes, file, column,
                     kArrowReader);
  if (sizes.empty()) return values;
  values.is_list = true;
  values.list_size = is_bytes ? 0 : sizes.back();
  values.inner_sizes.assign(sizes.rbegin() + 1, sizes.rend());
  return values;
}

}  // namespace

bool is_arrow_list(ArrowKind kind) noexcept {
  return kind == ArrowKind::list || kind == ArrowKind::large_list ||
         kind == ArrowKind::fixed_size_list;
}

TableLeaves list_arrow_columns(const ArrowFields& schema) {
  TableLeaves all{.reader = kArrowReader,
                  .huggingface = schema.nodes.front().find_metadata("huggingface")};
  for (std::uint32_t number = 1; number < schema.nodes.size(); ++number) {
    const ArrowField& field = schema.nodes[number];
    const std::vector<std::uint32_t> way = way_to(schema, number);
    const std::span<const std::uint32_t> around(way.begin(), way.end() - 1);
    const bool is_readable = std::ranges::all_of(
        around, [&](std::uint32_t node) { return has_parts(schema.nodes[node]); });
    if (!is_readable || has_parts(field)) continue;
    TableLeaf part{name_of_way(schema, way), number};
    if (around.empty() || !is_arrow_media(schema, around.back())) {
      all.fields.push_back(std::move(part));
      continue;
    }
    if (field.name == "bytes") all.fields.push_back({name_of_way(schema, around), number, true});
    all.parts.push_back(std::move(part));
  }
  return all;
}

std::vector<ArrowTableField> resolve_arrow_columns(const ArrowFields& schema,
                                                   std::span<const TableColumn> columns,
                                                   const std::string& file) {
  std::vector<ArrowTableField> fields;
  for (TableField& field : resolve_table_columns(list_arrow_columns(schema), columns, file,
                                                 [&](std::uint32_t leaf, const std::string&column) {
                                                   return values_of_node(schema, leaf, file,
                                                                         column);
                                                 })) {
    const std::vector<std::uint32_t> way = way_to(schema, field.leaf);
    std::vector<std::uint32_t> steps;
    for (std::size_t i = 1; i < way.size(); ++i) {
      const std::vector<std::uint32_t>& children = schema.nodes[way[i - 1]].children;
      steps.push_back(
          static_cast<std::uint32_t>(std::ranges::find(children, way[i]) - children.begin()));
    }
    fields.push_back({std::move(field), way.front(), std::move(steps)});
  }
  return fields;
}

std::vector<ArrowTableField> find_arrow_fields(const ArrowFields& schema,
                                               std::span<const ArrowTableField> fields,
                                               const std::string& file,
                                               const std::string& first_file) {
  std::vector<TableColumn> columns;
  for (const ArrowTableField& field : fields) columns.push_back(field.column);
  std::vector<ArrowTableField> own = resolve_arrow_columns(schema, columns, file);
  for (std::size_t i = 0; i < fields.size(); ++i)
    require_same_field(own[i], fields[i], file, first_file);
  return own;
}

ArrowWanted wanted_arrow_nodes(const ArrowFields& schema, std::span<const ArrowTableField> fields) {
  ArrowWanted wanted(schema.nodes.size());
  for (const ArrowTableField& field : fields)
    for (const std::uint32_t node : way_to(schema, field.leaf)) wanted[node] = true;
  return wanted;
}

std::vector<std::string> arrow_class_names(const ArrowFields& schema, const std::string& column) {
  return huggingface_class_names(schema.nodes.front().find_metadata("huggingface"), column);
}

}  // namespace penstock::source

#include "src/source/parquet/parquet_fields.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <ranges>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <penstock/core/error.hpp>

#include "src/source/parquet/values.hpp"

namespace penstock::source {

namespace {

constexpr std::string_view kReader = "pyarrow.parquet.read_table(path)";

[[noreturn]] void refuse(const std::string& file, const std::string& column,
                         const std::string& why) {
  refuse_table_column(file, column, why, kReader);
}

bool is_wrapper(const ParquetSchema& schema, std::uint32_t number) {
  const ParquetNode& node = schema.nodes[number];
  if (number == 0) return false;
  const ParquetNode& parent = schema.nodes[node.parent];
  const auto is_repeated_group = [](const ParquetNode& one) {
    return one.repetition == ParquetRepetition::repeated && !one.leaf;
  };
  if (parent.logical.meaning == ParquetMeaning::list)
    return node.repetition == ParquetRepetition::repeated;
  return node.parent != 0 && is_repeated_group(parent) && parent.children.size() == 1 &&
         schema.nodes[parent.parent].logical.meaning == ParquetMeaning::list;
}

std::string name_of_path(const ParquetSchema& schema, std::span<const std::uint32_t> nodes) {
  std::string name;
  for (const std::uint32_t number : nodes) {
    if (is_wrapper(schema, number)) continue;
    if (!name.empty()) name += '.';
    name += schema.nodes[number].name;
  }
  return name;
}

// The definition level from which on a slot is in an element of the innermost list.
std::uint8_t parquet_element_definition(const ParquetSchema& schema, const ParquetLeaf& leaf) {
  std::uint8_t level = leaf.max_definition;
  for (const std::uint32_t number : leaf.nodes | std::views::reverse) {
    const ParquetRepetition repetition = schema.nodes[number].repetition;
    if (repetition == ParquetRepetition::repeated) break;
    if (repetition == ParquetRepetition::optional) --level;
  }
  return level;
}

// Whether a struct is Hugging Face's for media.
bool is_media(const ParquetSchema& schema, std::uint32_t number) {
  const std::vector<std::uint32_t>& children = schema.nodes[number].children;
  return children.size() == 2 && std::ranges::all_of(children, [&](std::uint32_t child) {
           const ParquetNode& node = schema.nodes[child];
           return node.leaf && (node.name == "bytes" || node.name == "path") &&
                  schema.leaves[*node.leaf].type == ParquetType::byte_array;
         });
}

struct Meaning {
  DType dtype = DType::u8;
  bool is_bytes = false;
};

// 8, 16 and 32 bits are stored as INT32, 64 as INT64.
std::optional<Meaning> integer_of(const ParquetLogical& logical, ParquetType type) {
  switch (type == ParquetType::int64 && logical.bits != 64 ? 0 : logical.bits) {
    case 8:
      return Meaning{logical.is_signed ? DType::i8 : DType::u8};
    case 16:
      return Meaning{logical.is_signed ? DType::i16 : DType::u16};
    case 32:
      return Meaning{logical.is_signed ? DType::i32 : DType::u32};
    case 64:
      if (type != ParquetType::int64) return std::nullopt;
      return Meaning{logical.is_signed ? DType::i64 : DType::u64};
    default:
      return std::nullopt;
  }
}

std::string unit_of(const ParquetLogical& logical) {
  static constexpr std::array<std::string_view, 4> kUnits{"", " in ms", " in us", " in ns"};
  const std::string_view unit = kUnits[static_cast<std::size_t>(logical.unit)];
  switch (logical.meaning) {
    case ParquetMeaning::date:
      return "a date in days";
    case ParquetMeaning::time:
      return fmt::format("a time{}", unit);
    case ParquetMeaning::timestamp:
      return fmt::format("a timestamp{}", unit);
    default:
      return {};
  }
}

Meaning meaning_of(const ParquetLeaf& leaf, const std::string& file, const std::string& column) {
  const ParquetMeaning meaning = leaf.logical.meaning;
  if (meaning == ParquetMeaning::decimal) refuse(file, column, "is a decimal");
  if (meaning == ParquetMeaning::interval) refuse(file, column, "is an interval");
  switch (leaf.type) {
    case ParquetType::boolean:
      return {DType::boolean};
    case ParquetType::int32:
    case ParquetType::int64: {
      const bool is_wide = leaf.type == ParquetType::int64;
      if (meaning == ParquetMeaning::integer) {
        const auto integer = integer_of(leaf.logical, leaf.type);
        if (integer) return *integer;
        refuse(file, column,
               fmt::format("is {} that says it has integers of {} bits", name_of(leaf.type),
                           leaf.logical.bits));
      }
      return {is_wide ? DType::i64 : DType::i32};
    }
    case ParquetType::float32:
      return {DType::f32};
    case ParquetType::float64:
      return {DType::f64};
    case ParquetType::byte_array:
      return {DType::u8, true};
    case ParquetType::fixed_len_byte_array:
      if (meaning != ParquetMeaning::float16) return {DType::u8};
      if (leaf.type_length == size_of(DType::f16)) return {DType::f16};
      refuse(file, column, fmt::format("is a FLOAT16 of {} bytes", leaf.type_length));
    default:
      refuse(file, column, fmt::format("is of type {}", name_of(leaf.type)));
  }
}

TableValues values_of_leaf(const ParquetSchema& schema, std::uint32_t number,
                           const std::string& file, const std::string& column) {
  const ParquetLeaf& leaf = schema.leaves[number];
  const Meaning meaning = meaning_of(leaf, file, column);
  const bool is_fixed =
      meaning.dtype == DType::u8 && leaf.type == ParquetType::fixed_len_byte_array;
  const std::uint32_t lists = leaf.max_repetition;
  require_list_depth(lists, meaning.is_bytes || is_fixed, file, column, kReader);
  return {.dtype = meaning.dtype,
          .is_bytes = meaning.is_bytes,
          .is_list = lists > 0,
          .fixed_bytes = is_fixed ? parquet_width(leaf, {.file = file}) : 0,
          .inner_sizes = std::vector<std::uint32_t>(std::max(lists, 1U) - 1),
          .unit = unit_of(leaf.logical)};
}

}  // namespace

TableLeaves list_parquet_columns(const ParquetFooter& footer) {
  const ParquetSchema& schema = footer.schema;
  TableLeaves all{.reader = kReader, .huggingface = footer.find_metadata("huggingface")};
  for (std::uint32_t number = 0; number < schema.leaves.size(); ++number) {
    const std::span<const std::uint32_t> nodes = schema.leaves[number].nodes;
    TableLeaf part{name_of_path(schema, nodes), number};
    const bool is_in_media = nodes.size() > 1 && is_media(schema, nodes[nodes.size() - 2]);
    if (!is_in_media) {
      all.fields.push_back(std::move(part));
      continue;
    }
    if (schema.nodes[nodes.back()].name == "bytes")
      all.fields.push_back({name_of_path(schema, nodes.first(nodes.size() - 1)), number, true});
    all.parts.push_back(std::move(part));
  }
  return all;
}

std::vector<ParquetField> resolve_parquet_columns(const ParquetFooter& footer,
                                                  std::span<const TableColumn> columns,
                                                  const std::string& file) {
  const ParquetSchema& schema = footer.schema;
  std::vector<ParquetField> fields;
  for (TableField& field : resolve_table_columns(list_parquet_columns(footer), columns, file,
                                                 [&](std::uint32_t leaf, const std::string&column) {
                                                   return values_of_leaf(schema, leaf, file,
                                                                         column);
                                                 })) {
    const ParquetLeaf& leaf = schema.leaves[field.leaf];
    fields.push_back({std::move(field), leaf.path, leaf.type, parquet_width(leaf, {.file = file}),
                      leaf.max_definition, parquet_list_definition(schema, leaf),
                      parquet_element_definition(schema, leaf)});
  }
  return fields;
}

std::vector<ParquetField> find_parquet_fields(const ParquetFooter& footer,
                                              std::span<const ParquetField> fields,
                                              const std::string& file,
                                              const std::string& first_file) {
  std::vector<TableColumn> columns;
  for (const ParquetField& field : fields) columns.push_back(field.column);
  std::vector<ParquetField> own = resolve_parquet_columns(footer, columns, file);
  for (std::size_t i = 0; i < fields.size(); ++i)
    require_same_field(own[i], fields[i], file, first_file);
  return own;
}

std::uint8_t parquet_list_definition(const ParquetSchema& schema, const ParquetLeaf& leaf) {
  std::uint8_t level = 0;
  for (const std::uint32_t number : leaf.nodes) {
    const ParquetRepetition repetition = schema.nodes[number].repetition;
    if (repetition != ParquetRepetition::required) ++level;
    if (repetition == ParquetRepetition::repeated) return level;
  }
  return level;
}

std::vector<std::string> parquet_class_names(const ParquetFooter& footer,
                                             const std::string& column) {
  return huggingface_class_names(footer.find_metadata("huggingface"), column);
}

}  // namespace penstock::source

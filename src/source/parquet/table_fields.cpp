#include "src/source/parquet/table_fields.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <penstock/core/error.hpp>

#include "src/core/can_hold.hpp"
#include "src/core/json_fields.hpp"
#include "src/source/arrays/columns.hpp"
#include "src/source/parquet/values.hpp"

namespace penstock::source {

namespace {

// A column as people name it: without the groups that lists consist of.
struct NamedLeaf {
  std::string name;
  std::uint32_t leaf = 0;
  bool is_media = false;
};

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

// Whether a struct is Hugging Face's for media.
bool is_media(const ParquetSchema& schema, std::uint32_t number) {
  const std::vector<std::uint32_t>& children = schema.nodes[number].children;
  return children.size() == 2 && std::ranges::all_of(children, [&](std::uint32_t child) {
           const ParquetNode& node = schema.nodes[child];
           return node.leaf && (node.name == "bytes" || node.name == "path") &&
                  schema.leaves[*node.leaf].type == ParquetType::byte_array;
         });
}

// All columns by the names that people give; the parts of a media struct also by themselves.
struct NamedColumns {
  std::vector<NamedLeaf> fields;  // those of `columns` that is empty
  std::vector<NamedLeaf> parts;
};

NamedColumns name_columns(const ParquetSchema& schema) {
  NamedColumns all;
  for (std::uint32_t number = 0; number < schema.leaves.size(); ++number) {
    const std::span<const std::uint32_t> nodes = schema.leaves[number].nodes;
    NamedLeaf part{name_of_path(schema, nodes), number};
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

[[noreturn]] void refuse(const std::string& file, const std::string& column,
                         const std::string& why) {
  throw Error(fmt::format(
      "{}: the column '{}' {}; name the columns to be read in columns, or convert it with pyarrow, "
      "which reads it: pyarrow.parquet.read_table(path)",
      file, column, why));
}

struct Meaning {
  DType dtype = DType::u8;
  bool is_bytes = false;
};

Meaning integer_of(const ParquetLogical& logical, bool is_wide) {
  switch (logical.bits) {
    case 8:
      return {logical.is_signed ? DType::i8 : DType::u8};
    case 16:
      return {logical.is_signed ? DType::i16 : DType::u16};
    case 32:
      return {logical.is_signed ? DType::i32 : DType::u32};
    default:
      if (!is_wide) return {DType::i32};
      return {logical.is_signed ? DType::i64 : DType::u64};
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
      if (meaning == ParquetMeaning::integer) return integer_of(leaf.logical, is_wide);
      return {is_wide ? DType::i64 : DType::i32};
    }
    case ParquetType::float32:
      return {DType::f32};
    case ParquetType::float64:
      return {DType::f64};
    case ParquetType::byte_array:
      return {DType::u8, true};
    case ParquetType::fixed_len_byte_array:
      return {meaning == ParquetMeaning::float16 ? DType::f16 : DType::u8};
    default:
      refuse(file, column, fmt::format("is of type {}", name_of(leaf.type)));
  }
}

[[noreturn]] void refuse_shape(const ParquetField& field, const std::string& expected) {
  throw std::invalid_argument(fmt::format("column '{}': expected {}, found the shape {}",
                                          field.column.column, expected,
                                          field.column.shape.to_string()));
}

// Whether all extents behind the first are known, and none is 0.
bool has_known_rows(const Shape& shape) {
  for (std::size_t axis = 0; axis < shape.rank(); ++axis)
    if (shape[axis] == 0 || (axis > 0 && shape[axis] == kDynamic)) return false;
  return true;
}

// The field's shape.
Shape shape_of(const ParquetField& field) {
  const Shape& asked = field.column.shape;
  if (asked.rank() > 0 && !has_known_rows(asked))
    refuse_shape(field, "extents above 0, of which the first alone may be None");
  if (field.is_bytes) {
    if (asked.rank() == 0 || asked == Shape{kDynamic}) return {kDynamic};
    if (field.is_list || asked.rank() > 1) refuse_shape(field, "(None,) for texts or bytes");
    return asked;
  }
  if (field.is_fixed_bytes()) {
    const auto width = static_cast<std::int64_t>(field.file_width);
    if (asked.rank() > 0 && asked != (field.is_list ? Shape{kDynamic, width} : Shape{width}))
      refuse_shape(field, "the size of the column's bytes, or no shape");
    return field.is_list ? Shape{kDynamic, width} : Shape{width};
  }
  if (field.is_list) return asked.rank() == 0 ? Shape{kDynamic} : asked;
  if (asked.rank() > 0) refuse_shape(field, "no shape for a column of numbers that are no lists");
  return {};
}

ParquetField make_field(const ParquetSchema& schema, ParquetColumn column, std::uint32_t number,
                        const std::string& file) {
  const ParquetLeaf& leaf = schema.leaves[number];
  const std::string name = column.column;
  if (leaf.max_repetition > 1) refuse(file, name, "has lists of lists");
  const Meaning meaning = meaning_of(leaf, file, name);
  ParquetField field{.leaf = leaf.path,
                     .type = leaf.type,
                     .file_width = parquet_width(leaf, {.file = file}),
                     .max_definition = leaf.max_definition,
                     .dtype = meaning.dtype,
                     .is_bytes = meaning.is_bytes,
                     .is_list = leaf.max_repetition == 1,
                     .list_definition = parquet_list_definition(schema, leaf)};
  field.column = std::move(column);
  if (field.is_list && field.is_bytes && field.column.lengths.empty())
    throw Error(fmt::format(
        "{}: the column '{}' has lists of texts or bytes: name a field for their lengths, as in "
        "ParquetColumn(name=\"{}\", lengths=\"{}_lengths\"), or name the columns to be read",
        file, name, name, name));
  if (!field.column.lengths.empty() && !(field.is_list && field.is_bytes))
    throw std::invalid_argument(fmt::format(
        "column '{}': lengths are those of a list's texts or bytes; leave lengths out", name));
  if (!core::can_hold(field.dtype, field.column.default_value))
    throw std::invalid_argument(
        fmt::format("column '{}': default_value = {} is no value of type {}", name,
                    field.column.default_value, name_of(field.dtype)));
  field.spec = {field.column.name, field.dtype, shape_of(field)};
  return field;
}

std::string list_names(std::span<const NamedLeaf> leaves) {
  constexpr std::size_t kMost = 30;
  std::vector<std::string> names;
  for (const NamedLeaf& leaf : leaves) {
    if (names.size() == kMost) {
      names.emplace_back("...");
      break;
    }
    names.push_back(leaf.name);
  }
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

std::uint32_t find_leaf(const NamedColumns& all, const std::string& column,
                        const std::string& file) {
  std::optional<std::uint32_t> found;
  for (const auto* const leaves : {&all.fields, &all.parts}) {
    for (const NamedLeaf& leaf : *leaves) {
      if (leaf.name != column) continue;
      if (found) refuse(file, column, "is there twice");
      found = leaf.leaf;
    }
    if (found) return *found;
  }
  std::vector<NamedLeaf> inside;
  for (const NamedLeaf& leaf : all.fields)
    if (leaf.name.starts_with(column + ".")) inside.push_back(leaf);
  if (!inside.empty())
    throw Error(fmt::format("{}: the column '{}' is a struct; name its parts: {}", file, column,
                            list_names(inside)));
  throw Error(fmt::format("{} has no column '{}'; its columns are {}", file, column,
                          list_names(all.fields)));
}

}  // namespace

std::vector<ParquetColumnName> list_parquet_columns(const ParquetSchema& schema) {
  std::vector<ParquetColumnName> columns;
  for (const NamedLeaf& leaf : name_columns(schema).fields)
    columns.push_back({leaf.name, leaf.is_media});
  return columns;
}

std::vector<ParquetField> resolve_parquet_columns(const ParquetSchema& schema,
                                                  std::span<const ParquetColumn> columns,
                                                  const std::string& file) {
  const NamedColumns all = name_columns(schema);
  std::vector<ParquetField> fields;
  const auto add = [&](ParquetColumn column, std::uint32_t leaf) {
    fields.push_back(make_field(schema, std::move(column), leaf, file));
  };
  if (columns.empty())
    for (const NamedLeaf& leaf : all.fields)
      add({.name = leaf.name, .column = leaf.name}, leaf.leaf);
  for (ParquetColumn column : columns) {
    if (column.column.empty()) column.column = column.name;
    const std::uint32_t leaf = find_leaf(all, column.column, file);
    add(std::move(column), leaf);
  }
  std::vector<FieldSpec> specs;
  for (ParquetField& field : fields) {
    field.at = specs.size();
    specs.push_back(field.spec);
    if (!field.column.lengths.empty())
      specs.push_back({field.column.lengths, DType::i64, {kDynamic}});
  }
  require_names(specs);
  return fields;
}

std::vector<ParquetField> find_parquet_fields(const ParquetSchema& schema,
                                              std::span<const ParquetField> fields,
                                              const std::string& file,
                                              const std::string& first_file) {
  std::vector<ParquetColumn> columns;
  for (const ParquetField& field : fields) columns.push_back(field.column);
  std::vector<ParquetField> own = resolve_parquet_columns(schema, columns, file);
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (own[i].spec == fields[i].spec && own[i].is_list == fields[i].is_list &&
        own[i].is_bytes == fields[i].is_bytes && own[i].file_width == fields[i].file_width)
      continue;
    throw Error(
        fmt::format("{}: the column '{}' is {}, and in {} it is {}: files of one data set must "
                    "have the same types",
                    file, fields[i].column.column, own[i].spec.to_string(), first_file,
                    fields[i].spec.to_string()));
  }
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
  const std::string* const text = footer.find_metadata("huggingface");
  if (text == nullptr) return {};
  const auto all = core::Json::parse(*text, nullptr, false);
  const core::Json* at = &all;
  for (const std::string& key : {std::string("info"), std::string("features"), column}) {
    if (!at->is_object()) return {};
    const auto found = at->find(key);
    if (found == at->end()) return {};
    at = &*found;
  }
  if (!at->is_object() || at->value("_type", core::Json()) != "ClassLabel") return {};
  const auto names = at->find("names");
  if (names == at->end() || !names->is_array()) return {};
  std::vector<std::string> classes;
  for (const core::Json& name : *names) {
    if (!name.is_string()) return {};
    classes.push_back(name.get<std::string>());
  }
  return classes;
}

}  // namespace penstock::source

#include "src/source/tables/table_fields.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <optional>
#include <stdexcept>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <penstock/core/error.hpp>

#include "src/core/can_hold.hpp"
#include "src/core/json_fields.hpp"
#include "src/source/arrays/columns.hpp"

namespace penstock::source {

namespace {

[[noreturn]] void refuse_shape(const TableField& field, const std::string& expected) {
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

// The shape of a list of lists.
Shape nested_shape_of(const TableField& field) {
  const TableValues& values = field.values;
  const Shape& asked = field.column.shape;
  std::vector<std::int64_t> extents{values.list_size == 0 ? kDynamic : values.list_size};
  extents.insert(extents.end(), values.inner_sizes.begin(), values.inner_sizes.end());
  if (asked.rank() == 0) return Shape(extents);
  bool is_same = asked.rank() == extents.size();
  for (std::size_t axis = 0; is_same && axis < extents.size(); ++axis)
    is_same = extents[axis] <= 0 || extents[axis] == asked[axis] ||
              (axis == 0 && asked[axis] == kDynamic);
  if (is_same) return asked;
  std::vector<std::string> texts;
  for (const std::int64_t extent : extents)
    texts.push_back(extent > 0 ? fmt::to_string(extent) : "any");
  refuse_shape(field, fmt::format("the sizes of the lists, ({})", fmt::join(texts, ", ")));
}

// The shape of a list of numbers.
Shape list_shape_of(const TableField& field) {
  if (!field.values.inner_sizes.empty()) return nested_shape_of(field);
  const Shape& asked = field.column.shape;
  if (field.values.list_size == 0) return asked.rank() == 0 ? Shape{kDynamic} : asked;
  const std::int64_t size = field.values.list_size;
  if (asked.rank() == 0) return {size};
  if (!asked.is_dynamic() && asked.elements() != size)
    refuse_shape(field, fmt::format("{} elements, which each list has, or no shape", size));
  return asked;
}

// The field's shape.
Shape shape_of(const TableField& field) {
  const Shape& asked = field.column.shape;
  const TableValues& values = field.values;
  if (asked.rank() > 0 && !has_known_rows(asked))
    refuse_shape(field, "extents above 0, of which the first alone may be None");
  if (values.is_bytes) {
    if (asked.rank() == 0 || asked == Shape{kDynamic}) return {kDynamic};
    if (values.is_list || asked.rank() > 1) refuse_shape(field, "(None,) for texts or bytes");
    return asked;
  }
  if (values.fixed_bytes != 0) {
    const auto width = static_cast<std::int64_t>(values.fixed_bytes);
    if (asked.rank() > 0 && asked != (values.is_list ? Shape{kDynamic, width} : Shape{width}))
      refuse_shape(field, "the size of the column's bytes, or no shape");
    return values.is_list ? Shape{kDynamic, width} : Shape{width};
  }
  if (values.is_list) {
    Shape shape = list_shape_of(field);
    std::int64_t room = std::numeric_limits<std::int32_t>::max();  // so that no product overflows
    for (const std::int64_t extent : shape.extents()) room /= std::max<std::int64_t>(extent, 1);
    if (room == 0)
      throw std::invalid_argument(
          fmt::format("column '{}': expected lists of at most 2^31-1 values, found the shape {}",
                      field.column.column, shape.to_string()));
    return shape;
  }
  if (asked.rank() > 0) refuse_shape(field, "no shape for a column of numbers that are no lists");
  return {};
}

TableField make_field(TableColumn column, const TableLeaf& leaf, const TableValues& values,
                      const std::string& file) {
  TableField field{.leaf = leaf.number, .is_media = leaf.is_media, .values = values};
  field.column = std::move(column);
  const std::string& name = field.column.column;
  const bool has_lengths = values.is_list && values.is_bytes;
  if (has_lengths && field.column.lengths.empty())
    throw Error(fmt::format(
        "{}: the column '{}' has lists of texts or bytes: name a field for their lengths, as in "
        "TableColumn(name=\"{}\", lengths=\"{}_lengths\"), or name the columns to be read",
        file, name, name, name));
  if (field.column.shape.rank() == 0 && std::ranges::count(values.inner_sizes, 0U) != 0)
    throw Error(fmt::format(
        "{}: the column '{}' has lists of lists: say how many values the inner ones have, as in "
        "TableColumn(name=\"{}\", shape=(None{})), or name the columns to be read",
        file, name, name,
        fmt::join(std::vector<std::string>(values.inner_sizes.size(), ", 4"), "")));
  if (!field.column.lengths.empty() && !has_lengths)
    throw std::invalid_argument(fmt::format(
        "column '{}': lengths are those of a list's texts or bytes; leave lengths out", name));
  if (!core::can_hold(values.dtype, field.column.default_value))
    throw std::invalid_argument(
        fmt::format("column '{}': default_value = {} is no value of type {}{}", name,
                    field.column.default_value, name_of(values.dtype),
                    values.dtype == DType::f16 ? ", of which 0 alone is taken" : ""));
  field.spec = {field.column.name, values.dtype, shape_of(field)};
  return field;
}

std::string list_names(std::span<const TableLeaf> leaves) {
  constexpr std::size_t kMost = 30;
  std::vector<std::string> names;
  for (const TableLeaf& leaf : leaves) {
    if (names.size() == kMost) {
      names.emplace_back("...");
      break;
    }
    names.push_back(leaf.name);
  }
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

using LeavesByName = std::unordered_multimap<std::string_view, const TableLeaf*>;

LeavesByName by_name(std::span<const TableLeaf> leaves) {
  LeavesByName names;
  for (const TableLeaf& leaf : leaves) names.emplace(leaf.name, &leaf);
  return names;
}

const TableLeaf& find_leaf(const TableLeaves& all, std::span<const LeavesByName> names,
                           const std::string& column, const std::string& file) {
  for (const LeavesByName& some : names) {
    const auto [first, last] = some.equal_range(column);
    if (first == last) continue;
    if (std::next(first) != last) refuse_table_column(file, column, "is there twice", all.reader);
    return *first->second;
  }
  std::vector<TableLeaf> inside;
  for (const TableLeaf& leaf : all.fields)
    if (leaf.name.starts_with(column + ".")) inside.push_back(leaf);
  if (!inside.empty())
    throw Error(fmt::format("{}: the column '{}' is a struct; name its parts: {}", file, column,
                            list_names(inside)));
  throw Error(fmt::format("{} has no column '{}'; its columns are {}", file, column,
                          list_names(all.fields)));
}

std::string describe_names(std::span<const std::string> names) {
  constexpr std::size_t kMost = 5;
  if (names.empty()) return "not named";
  return fmt::format("{}{}", fmt::join(names.first(std::min(kMost, names.size())), ", "),
                     names.size() > kMost ? fmt::format(", ... ({})", names.size()) : "");
}

// What the metadata say of a column: its feature, null where they say nothing, and the sizes of the lists that it is in.
struct HuggingFaceColumn {
  core::Json feature;
  std::vector<std::uint32_t> list_sizes;
};

std::uint32_t list_size_of(const core::Json& extent) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::int32_t>::max();
  if (!extent.is_number_unsigned() || extent.get<std::uint64_t>() > kMost) return 0;
  return extent.get<std::uint32_t>();
}

// What is in a list, whose size is added; null for what is no list.
const core::Json* enter_list(const core::Json& feature, std::vector<std::uint32_t>& sizes) {
  if (feature.is_array() && feature.size() == 1) {  // as datasets before 4 writes a list
    sizes.push_back(0);
    return &feature[0];
  }
  if (!feature.is_object() || !feature.contains("feature")) return nullptr;
  const core::Json type = feature.value("_type", core::Json());
  if (type != "Sequence" && type != "List" && type != "LargeList") return nullptr;
  sizes.push_back(list_size_of(feature.value("length", core::Json())));
  return &feature["feature"];
}

HuggingFaceColumn find_huggingface_column(const std::string* text, const std::string& column) {
  if (text == nullptr) return {};
  const auto all = core::Json::parse(*text, nullptr, false);
  const core::Json* at = &all;
  for (const char* const key : {"info", "features"}) {
    if (!at->is_object() || !at->contains(key)) return {};
    at = &(*at)[key];
  }
  HuggingFaceColumn found;
  // A part of a struct is below the struct's name; a column may have points in its own.
  for (std::string_view rest = column; !rest.empty();) {
    while (const core::Json* const inside = enter_list(*at, found.list_sizes)) at = inside;
    if (!at->is_object()) return {};
    std::size_t end = rest.size();
    while (end != rest.npos && !at->contains(std::string(rest.substr(0, end))))
      end = rest.substr(0, end).rfind('.');
    if (end == rest.npos) return {};
    at = &(*at)[std::string(rest.substr(0, end))];
    rest.remove_prefix(std::min(rest.size(), end + 1));
  }
  found.feature = *at;
  return found;
}

// The sizes of inner lists that the schema does not have, by Hugging Face's metadata.
void add_huggingface_sizes(const std::string* text, const std::string& column,
                           TableValues& values) {
  HuggingFaceColumn found = find_huggingface_column(text, column);
  std::vector<std::uint32_t>& sizes = found.list_sizes;
  const core::Json* at = &found.feature;
  while (const core::Json* const inside = enter_list(*at, sizes)) at = inside;
  if (at->is_object() && at->contains("shape") && (*at)["shape"].is_array())  // Array2D and so on
    for (const core::Json& extent : (*at)["shape"]) sizes.push_back(list_size_of(extent));
  if (sizes.size() != values.inner_sizes.size() + 1) return;
  if (values.list_size == 0) values.list_size = sizes.front();
  for (std::size_t i = 0; i < values.inner_sizes.size(); ++i)
    if (values.inner_sizes[i] == 0) values.inner_sizes[i] = sizes[i + 1];
}

bool is_integer(DType dtype) noexcept {
  return dtype != DType::boolean && dtype != DType::f16 && dtype != DType::bf16 &&
         dtype != DType::f32 && dtype != DType::f64;
}

}  // namespace

bool TableField::is_label() const noexcept {
  return spec.name == "label" && spec.shape.rank() == 0 && is_integer(spec.dtype);
}

void refuse_table_column(const std::string& file, const std::string& column, const std::string& why,
                         std::string_view reader) {
  throw Error(fmt::format(
      "{}: the column '{}' {}; name the columns to be read in columns, or convert it with pyarrow, "
      "which reads it: {}",
      file, column, why, reader));
}

void throw_table_error(const Fault& fault) {
  throw Error(fmt::format("{}: {}{}", fault.file, fault.reason,
                          fault.offset == 0 ? "" : fmt::format(" (byte {})", fault.offset)));
}

void require_list_depth(std::uint32_t lists, bool is_bytes, const std::string& file,
                        const std::string& column, std::string_view reader) {
  if (lists > Shape::kMaxRank)
    refuse_table_column(file, column, fmt::format("has lists {} deep", lists), reader);
  if (lists > 1 && is_bytes)
    refuse_table_column(file, column, "has lists of lists of texts or bytes", reader);
}

std::vector<TableField> resolve_table_columns(
    const TableLeaves& leaves, std::span<const TableColumn> columns, const std::string& file,
    const std::function<TableValues(std::uint32_t leaf, const std::string& column)>& values_of) {
  std::vector<TableField> fields;
  const auto add = [&](TableColumn column, const TableLeaf& leaf) {
    TableValues values = values_of(leaf.number, column.column);
    if (!values.inner_sizes.empty() && column.shape.rank() == 0)
      add_huggingface_sizes(leaves.huggingface, column.column, values);
    fields.push_back(make_field(std::move(column), leaf, values, file));
  };
  if (columns.empty())
    for (const TableLeaf& leaf : leaves.fields) add({.name = leaf.name, .column = leaf.name}, leaf);
  std::array<LeavesByName, 2> names;
  if (!columns.empty()) names = {by_name(leaves.fields), by_name(leaves.parts)};
  for (TableColumn column : columns) {
    if (column.column.empty()) column.column = column.name;
    const TableLeaf& leaf = find_leaf(leaves, names, column.column, file);
    add(std::move(column), leaf);
  }
  std::vector<FieldSpec> specs;
  for (TableField& field : fields) {
    field.at = specs.size();
    add_specs(field, specs);
  }
  require_names(specs);
  return fields;
}

void require_same_field(const TableField& own, const TableField& field, const std::string& file,
                        const std::string& first_file) {
  const TableValues& one = own.values;
  const TableValues& other = field.values;
  if (own.spec == field.spec && one.is_list == other.is_list && one.is_bytes == other.is_bytes &&
      one.fixed_bytes == other.fixed_bytes && one.list_size == other.list_size &&
      one.inner_sizes.size() == other.inner_sizes.size() && one.unit == other.unit)
    return;
  const auto describe = [](const TableField& some) {
    return some.values.unit.empty()
               ? some.spec.to_string()
               : fmt::format("{}, {}", some.spec.to_string(), some.values.unit);
  };
  throw Error(
      fmt::format("{}: the column '{}' is {}, and in {} it is {}: files of one data set must "
                  "have the same types and units",
                  file, field.column.column, describe(own), first_file, describe(field)));
}

std::string fingerprint_of(const TableField& field) {
  const TableColumn& column = field.column;
  return fmt::format("{} {} {} {} {};", field.spec.to_string(), column.column, column.required,
                     column.default_value, column.lengths);
}

void add_specs(const FieldSpec& field, const std::string& lengths, std::vector<FieldSpec>& specs) {
  specs.push_back(field);
  if (!lengths.empty()) specs.push_back({lengths, DType::i64, {kDynamic}});
}

std::vector<std::string> huggingface_class_names(const std::string* text,
                                                 const std::string& column) {
  const HuggingFaceColumn found = find_huggingface_column(text, column);
  if (!found.list_sizes.empty()) return {};  // of lists of labels
  if (!found.feature.is_object() || found.feature.value("_type", core::Json()) != "ClassLabel")
    return {};
  const auto names = found.feature.find("names");
  if (names == found.feature.end() || !names->is_array()) return {};
  std::vector<std::string> classes;
  for (const core::Json& name : *names) {
    if (!name.is_string()) return {};
    classes.push_back(name.get<std::string>());
  }
  return classes;
}

void require_same_classes(std::span<const std::string> own, std::span<const std::string> classes,
                          const std::string& column, const std::string& file,
                          const std::string& first_file) {
  if (std::ranges::equal(own, classes)) return;
  throw Error(fmt::format(
      "{}: the classes of '{}' are {}, and in {} they are {}: the same number would be two "
      "classes; read the files as two data sets, or write them with the same features",
      file, column, describe_names(own), first_file, describe_names(classes)));
}

}  // namespace penstock::source

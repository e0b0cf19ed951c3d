#include "src/source/mds/fields.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include <penstock/core/error.hpp>

#include "src/core/printable.hpp"
#include "src/source/arrays/columns.hpp"
#include "src/source/tables/table_fields.hpp"

namespace penstock::source {

namespace {

[[noreturn]] void refuse_encoding(const MdsColumnType& type, const std::string& file) {
  const auto how = [&]() -> std::string_view {
    if (type.encoding == "pkl")
      return "reading a pickle runs what is in it: write the column again with MDSWriter as bytes, "
             "json or ndarray";
    if (type.encoding == "pickle")
      return "reading a pickle runs what is in it: write the data again as bytes, texts or arrays";
    if (type.encoding == "pil" || type.encoding == "list[pil]")
      return "its pixels are not encoded: write the column again as png or jpeg";
    return "it is not read here: write the column again in another encoding, such as bytes";
  }();
  throw Error(
      fmt::format("{}: the column '{}' has the encoding '{}', and {}; or name the columns "
                  "to be read in columns",
                  file, core::printable(type.name), core::printable(type.encoding), how));
}

[[noreturn]] void refuse_argument(const MdsColumnType& type, const std::string& what) {
  throw std::invalid_argument(fmt::format("column '{}', whose encoding is {}: {}",
                                          core::printable(type.name),
                                          core::printable(type.encoding), what));
}

// The type of the values.
DType dtype_for(const MdsColumnType& type, const std::optional<DType>& asked,
                const std::string& file) {
  switch (type.kind) {
    case MdsKind::number:
      if (asked && *asked != *type.dtype && !(asked == DType::i64 && is_mds_integer(*type.dtype)))
        refuse_argument(type,
                        fmt::format("expected dtype to be {}, or i64 for an integer, found {}",
                                    name_of(*type.dtype), name_of(*asked)));
      return asked.value_or(*type.dtype);
    case MdsKind::text_integer:
    case MdsKind::text_real: {
      const DType own = type.kind == MdsKind::text_integer ? DType::i64 : DType::f64;
      if (asked && *asked != own)
        refuse_argument(
            type, fmt::format("expected dtype to be {}, found {}", name_of(own), name_of(*asked)));
      return own;
    }
    case MdsKind::array:
      if (!asked && !type.dtype)
        throw Error(
            fmt::format("{}: the column '{}' has arrays, and its encoding, {}, says no type: name "
                        "one, as in MdsColumn(\"{}\", dtype=\"float32\")",
                        file, core::printable(type.name), core::printable(type.encoding),
                        core::printable(type.name)));
      if (asked && type.dtype && *asked != *type.dtype)
        refuse_argument(type, fmt::format("expected dtype to be {}, found {}", name_of(*type.dtype),
                                          name_of(*asked)));
      return asked ? *asked : *type.dtype;
    case MdsKind::bytes:
      if (type.dtype && asked.value_or(*type.dtype) != *type.dtype)
        refuse_argument(type, fmt::format("expected dtype to be {}, found {}", name_of(*type.dtype),
                                          name_of(*asked)));
      if (type.dtype) return *type.dtype;
      if (asked && type.encoding != "bytes")
        refuse_argument(type, "its values are no array; leave dtype out");
      if (asked == DType::boolean)
        refuse_argument(type,
                        "any byte may be in it, and bool has 0 and 1; expected dtype to be u8");
      return asked.value_or(DType::u8);
    default:
      if (asked) refuse_argument(type, "its values are no array; leave dtype out");
      return DType::u8;
  }
}

// Extents above 0, of which the first alone may be None.
bool is_mds_shape(const Shape& shape) {
  const auto extents = shape.extents();
  return std::ranges::all_of(extents.subspan(std::min<std::size_t>(1, extents.size())),
                             [](std::int64_t extent) { return extent > 0; }) &&
         (extents.empty() || extents[0] == kDynamic || extents[0] > 0);
}

Shape shape_for_column(const MdsColumnType& type, const Shape& asked) {
  const auto refuse = [&](const std::string& expected) {
    refuse_argument(type,
                    fmt::format("expected shape to be {}, found {}", expected, asked.to_string()));
  };
  if (!is_mds_shape(asked)) refuse("extents above 0, of which the first alone may be None");
  switch (type.kind) {
    case MdsKind::bytes:
      return asked.rank() == 0 ? Shape{kDynamic} : asked;
    case MdsKind::array:
      if (!type.shape) return asked.rank() == 0 ? Shape{kDynamic} : asked;
      if (asked.rank() > 0 && asked != *type.shape)
        refuse(fmt::format("{}, or left out", type.shape->to_string()));
      return *type.shape;
    case MdsKind::byte_list:
      if (asked.rank() > 0 && asked != Shape{kDynamic}) refuse("left out");
      return {kDynamic};
    default:
      if (asked.rank() > 0) refuse("left out: each row has one number");
      return {};
  }
}

// A text, or an image, is bytes and no array of more dimensions.
void require_flat_bytes(const MdsColumnType& type, const MdsColumn& column) {
  if (type.kind == MdsKind::bytes && !column.dtype && !type.dtype && column.shape.rank() > 1)
    refuse_argument(type, "bytes have one extent; name a dtype where they are an array");
}

MdsField make_mds_field(const MdsColumns& all, MdsColumn column, std::size_t number,
                        const std::string& file) {
  const MdsColumnType& type = all[number];
  if (type.kind == MdsKind::refused) refuse_encoding(type, file);
  MdsField field{.column = std::move(column), .number = number, .kind = type.kind, .spec = {}};
  if (type.kind == MdsKind::byte_list && field.column.lengths.empty())
    throw Error(fmt::format(
        "{}: the column '{}' has lists of images: name a field for their lengths, as in "
        "MdsColumn(\"{}\", lengths=\"{}_lengths\"), or name the columns to be read in columns",
        file, core::printable(type.name), core::printable(type.name), core::printable(type.name)));
  if (type.kind != MdsKind::byte_list && !field.column.lengths.empty())
    refuse_argument(type, "lengths are those of a list's images; leave lengths out");
  require_flat_bytes(type, field.column);
  field.spec = {field.column.name, dtype_for(type, field.column.dtype, file),
                shape_for_column(type, field.column.shape)};
  return field;
}

}  // namespace

bool MdsField::is_integer() const noexcept {
  return (kind == MdsKind::number || kind == MdsKind::text_integer) && is_mds_integer(spec.dtype);
}

std::vector<MdsField> resolve_mds_columns(const MdsColumns& all, std::span<const MdsColumn> columns,
                                          const std::string& file) {
  std::vector<MdsField> fields;
  if (columns.empty())
    for (std::size_t i = 0; i < all.size(); ++i)
      fields.push_back(make_mds_field(all, {.name = all[i].name, .column = all[i].name}, i, file));
  for (MdsColumn column : columns) {
    if (column.column.empty()) column.column = column.name;
    const auto found = all.find(column.column);
    if (!found)
      throw Error(fmt::format("{} has no column '{}'; its columns are {}", file, column.column,
                              describe_mds_columns(all.all())));
    fields.push_back(make_mds_field(all, std::move(column), *found, file));
  }
  std::vector<FieldSpec> specs;
  for (MdsField& field : fields) {
    field.at = specs.size();
    add_specs(field.spec, field.column.lengths, specs);
  }
  require_names(specs);
  return fields;
}

std::vector<FieldSpec> specs_of_mds(std::span<const MdsField> fields) {
  std::vector<FieldSpec> specs;
  for (const MdsField& field : fields) add_specs(field.spec, field.column.lengths, specs);
  return specs;
}

}  // namespace penstock::source

#include "src/source/tables/table_images.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <penstock/core/error.hpp>

namespace penstock::source {

std::vector<TableColumn> choose_image_columns(
    const TableLeaves& leaves, const std::function<bool(const std::string& column)>& has_classes,
    const std::string& file, const std::string& reader) {
  std::vector<std::string> all;
  std::vector<std::string> images;
  std::vector<std::string> labels;
  for (const TableLeaf& leaf : leaves.fields) {
    all.push_back(leaf.name);
    if (leaf.is_media) images.push_back(leaf.name);
    if (has_classes(leaf.name)) labels.push_back(leaf.name);
  }
  // The one of `found`, else `usual` if the table has it.
  const auto choose = [&](const std::vector<std::string>& found, const std::string& usual) {
    if (found.size() == 1) return found.front();
    if (std::ranges::find(all, usual) != all.end()) return usual;
    throw Error(fmt::format(
        "{}: which column is the {}? {}; read it with {}, which takes columns by name: its columns "
        "are {}",
        file, usual,
        found.empty() ? fmt::format("none is called '{}'", usual)
                      : fmt::format("{} are possible", fmt::join(found, " and ")),
        reader, fmt::join(all, ", ")));
  };
  TableColumn label{.name = "label", .column = choose(labels, "label")};
  return {{.name = "image", .column = choose(images, "image")}, label};
}

void set_optional_label(std::vector<TableColumn>& columns, std::optional<std::int64_t> label) {
  if (!label) return;
  columns.back().required = false;
  columns.back().default_value = static_cast<double>(*label);
}

void require_image_field(const TableField& field, const std::string& file,
                         const std::string& reader) {
  const bool is_image = field.at == 0;
  const FieldSpec expected{field.spec.name, is_image ? DType::u8 : DType::i64,
                           is_image ? Shape{kDynamic} : Shape{}};
  if (field.spec == expected) return;
  throw Error(fmt::format("{}: expected the column '{}' to be {}, found {}; read it with {}", file,
                          field.column.column, expected.to_string(), field.spec.to_string(),
                          reader));
}

}  // namespace penstock::source

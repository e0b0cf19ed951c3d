// source/tables/table_images: which columns of a table are the images and their labels.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/source/tables/table_fields.hpp"

namespace penstock::source {

/// The fields "image" and "label" of labelled images, whose columns have names of their own: the only one of images and the
/// only one with class names, else those called "image" and "label". `has_classes` says whether a column has class names,
/// and `reader` is the call that takes columns by name, "parquet()".
///
/// Errors  Error  there is not one such column each
[[nodiscard]] std::vector<TableColumn> choose_image_columns(
    const TableLeaves& leaves, const std::function<bool(const std::string& column)>& has_classes,
    const std::string& file, const std::string& reader);

/// Where `label` is given, it is the label of rows that have none. `columns` are those of choose_image_columns().
void set_optional_label(std::vector<TableColumn>& columns, std::optional<std::int64_t> label);

/// Errors  Error  a field that such columns became is no image, or no label
void require_image_field(const TableField& field, const std::string& file,
                         const std::string& reader);

}  // namespace penstock::source

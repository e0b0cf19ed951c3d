#include "src/source/mds/mds_images.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <penstock/core/error.hpp>

#include "src/source/mds/columns.hpp"
#include "src/source/mds/index_json.hpp"

namespace penstock::source {

namespace {

[[noreturn]] void refuse_images(const MdsIndex& index, std::string_view what) {
  throw Error(
      fmt::format("{}: which column is the {}? Read it with mds(), which takes columns by "
                  "name: its columns are {}",
                  index.file, what, describe_mds_columns(index.columns.all())));
}

std::string find_image_column(const MdsIndex& index) {
  const auto all = index.columns.all();
  if (std::ranges::count_if(all, &MdsColumnType::is_image) == 1)
    return std::ranges::find_if(all, &MdsColumnType::is_image)->name;
  const auto found = index.columns.find("image");
  const bool may_be = found && (all[*found].is_image || all[*found].encoding == "bytes");
  if (!may_be) refuse_images(index, "image");
  return "image";
}

std::string find_label_column(const MdsIndex& index) {
  for (const char* name : {"label", "y", "class", "cls"}) {
    const auto found = index.columns.find(name);
    if (!found) continue;
    const MdsColumnType& type = index.columns[*found];
    if (type.kind == MdsKind::text_integer ||
        (type.kind == MdsKind::number && is_mds_integer(*type.dtype)))
      return name;
  }
  refuse_images(index, "label");
}

}  // namespace

SourcePtr mds_images(const ShardPaths& folders, MdsOptions options) {
  const MdsIndex index = open_mds_indexes(folders.as_given(), storage::Storage(options.storage));
  options.columns = {{.name = "image", .column = find_image_column(index)},
                     {.name = "label", .column = find_label_column(index), .dtype = DType::i64}};
  return mds(folders, std::move(options));
}

}  // namespace penstock::source

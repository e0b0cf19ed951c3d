#include "src/source/parquet/parquet_images.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <penstock/core/error.hpp>

#include "src/source/parquet/table_file.hpp"
#include "src/source/shards/shard_names.hpp"
#include "src/source/shards/shard_paths.hpp"

namespace penstock::source {

namespace {

// The one of `found`, else `usual` if the table has it.
std::string choose(const std::vector<std::string>& found, const std::string& usual,
                   const std::vector<std::string>& all, const std::string& file) {
  if (found.size() == 1) return found.front();
  if (std::ranges::find(all, usual) != all.end()) return usual;
  throw Error(fmt::format(
      "{}: which column is the {}? {}; read it with parquet(), which takes columns by name: its "
      "columns are {}",
      file, usual,
      found.empty() ? fmt::format("none is called '{}'", usual)
                    : fmt::format("{} are possible", fmt::join(found, " and ")),
      fmt::join(all, ", ")));
}

}  // namespace

SourcePtr parquet_images(const ShardPaths& files, ParquetOptions options,
                         std::optional<std::int64_t> optional_label) {
  const storage::Storage storage(options.storage);
  const std::string file = find_shards(files, is_parquet_name, "*.parquet", storage).front();
  const ParquetFooter footer = read_first_footer(file, storage);
  const std::vector<ParquetColumnName> columns = list_parquet_columns(footer.schema);
  std::vector<std::string> all;
  std::vector<std::string> images;
  std::vector<std::string> labels;
  for (const ParquetColumnName& column : columns) {
    all.push_back(column.name);
    if (column.is_media) images.push_back(column.name);
    if (!parquet_class_names(footer, column.name).empty()) labels.push_back(column.name);
  }
  ParquetColumn label{.name = "label", .column = choose(labels, "label", all, file)};
  if (optional_label) {
    label.required = false;
    label.default_value = static_cast<double>(*optional_label);
  }
  options.columns = {{.name = "image", .column = choose(images, "image", all, file)}, label};
  for (const ParquetField& field : resolve_parquet_columns(footer.schema, options.columns, file)) {
    const FieldSpec expected{field.spec.name, field.at == 0 ? DType::u8 : DType::i64,
                             field.at == 0 ? Shape{kDynamic} : Shape{}};
    if (field.spec != expected)
      throw Error(
          fmt::format("{}: expected the column '{}' to be {}, found {}; read it with "
                      "parquet()",
                      file, field.column.column, expected.to_string(), field.spec.to_string()));
  }
  return parquet(files, std::move(options));
}

}  // namespace penstock::source

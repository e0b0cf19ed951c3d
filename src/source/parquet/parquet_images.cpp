#include "src/source/parquet/parquet_images.hpp"

#include <string>
#include <utility>

#include "src/source/parquet/parquet_fields.hpp"
#include "src/source/parquet/table_scan.hpp"
#include "src/source/shards/shard_names.hpp"
#include "src/source/shards/shard_paths.hpp"
#include "src/source/tables/table_images.hpp"

namespace penstock::source {

SourcePtr parquet_images(const ShardPaths& files, ParquetOptions options,
                         std::optional<std::int64_t> optional_label) {
  constexpr const char* kReader = "parquet()";
  const storage::Storage storage(options.storage);
  const std::string file = find_shards(files, is_parquet_name, "*.parquet", storage).paths.front();
  const ParquetFooter footer = read_first_footer(file, storage);
  const auto has_classes = [&](const std::string& column) {
    return !parquet_class_names(footer, column).empty();
  };
  options.columns = choose_image_columns(list_parquet_columns(footer), has_classes, file, kReader);
  for (const ParquetField& field : resolve_parquet_columns(footer, options.columns, file))
    require_image_field(field, file, kReader);
  set_optional_label(options.columns, optional_label);
  return parquet(files, std::move(options));
}

}  // namespace penstock::source

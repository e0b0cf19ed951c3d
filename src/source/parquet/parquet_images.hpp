// source/parquet/parquet_images: labelled images of Parquet files whose columns have names of their own.
#pragma once

#include <cstdint>
#include <optional>

#include <penstock/source/tables.hpp>

namespace penstock::source {

/// parquet() with the fields "image" and "label" i64, of the columns that images() says; `options.columns` is empty. Where
/// `optional_label` is given, it is the label of rows that have none.
///
/// Errors  Error  there is not one such column each; and as parquet()
[[nodiscard]] SourcePtr parquet_images(const ShardPaths& files, ParquetOptions options,
                                       std::optional<std::int64_t> optional_label = {});

}  // namespace penstock::source

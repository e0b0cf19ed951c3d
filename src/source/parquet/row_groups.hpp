// source/parquet/row_groups: a footer's row groups and column chunks, each offset checked against the file's size.
#pragma once

#include "src/source/parquet/footer.hpp"

namespace penstock::source {

/// Reads one RowGroup; pages lie before `pages_end`.
///
/// Errors  DataError  its chunks are not those of the schema's leaves, or do not fit in the file
[[nodiscard]] ParquetRowGroup read_parquet_row_group(ThriftReader& reader,
                                                     const ParquetSchema& schema,
                                                     std::uint64_t pages_end);

}  // namespace penstock::source

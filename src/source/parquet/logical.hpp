// source/parquet/logical: what the values of a field mean, read from its logical or converted type.
#pragma once

#include "src/source/parquet/schema.hpp"

namespace penstock::source {

/// Reads a LogicalType.
[[nodiscard]] ParquetLogical read_logical_type(ThriftReader& reader);
/// Of a ConvertedType, whose decimal has its scale and precision in the schema's element.
[[nodiscard]] ParquetLogical converted_logical(std::int64_t converted, std::int32_t scale,
                                               std::int32_t precision);

}  // namespace penstock::source

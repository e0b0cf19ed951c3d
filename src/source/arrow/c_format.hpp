// source/arrow/c_format: types and metadata as the C data interface writes them.
#pragma once

#include <string>
#include <string_view>

#include "src/source/arrow/schema.hpp"

namespace penstock::source {

/// The type that a format such as "tsu:UTC" names. Of unions it reads the mode only.
///
/// Errors  DataError  the interface has no such format
[[nodiscard]] ArrowType parse_arrow_format(std::string_view format, const std::string& field,
                                           const ArrowOrigin& origin);

/// The keys and values of a schema. The interface does not say how many bytes `metadata` has: the lengths in it must be true.
///
/// Errors  DataError  a length is negative, or the whole larger than is read
[[nodiscard]] ArrowMetadata read_arrow_c_metadata(const char* metadata, const ArrowOrigin& origin,
                                                  const ArrowLimits& limits);

}  // namespace penstock::source

// source/arrow/c_format: types and metadata as the C data interface writes them.
#pragma once

#include <string>
#include <string_view>

#include "src/source/arrow/schema.hpp"

namespace penstock::source {

/// The type that a format such as "tsu:UTC" names; of others than "vz", "+m" and so on, all that it takes to read them.
///
/// Errors  DataError  the interface has no such format
[[nodiscard]] ArrowType parse_arrow_format(std::string_view format, const std::string& field,
                                           const ArrowOrigin& origin);

/// The keys and values that a schema's metadata has: a count, and each length, in 4 bytes; its own size is not known.
///
/// Errors  DataError  a length is negative, or the whole larger than is read
[[nodiscard]] ArrowMetadata read_arrow_c_metadata(const char* metadata, const ArrowOrigin& origin,
                                                  const ArrowLimits& limits);

}  // namespace penstock::source

// source/folder/known_stamp: what the listing of a bucket said of an image.
#pragma once

#include <cstdint>
#include <optional>

#include <penstock/source/source.hpp>

#include "src/storage/stored_file.hpp"

namespace penstock::source {

/// Of record `number` of an image folder in a bucket, whose listing told it; nothing for all others.
[[nodiscard]] std::optional<storage::FileStamp> known_stamp(const Source& source,
                                                            std::uint64_t number);

}  // namespace penstock::source

// source/arrow/compression: buffers of a compressed body.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "src/source/arrow/message.hpp"

namespace penstock::source {

/// Bytes in front of each compressed buffer: its decompressed length, or -1 for one that is stored as it is.
inline constexpr std::uint64_t kArrowUnpackedLength = 8;

struct ArrowUnpacked {
  std::span<const std::byte> bytes;
  std::shared_ptr<const std::byte[]> owner;  ///< none, where the bytes were stored as they are
};

/// Errors  DataError  buffers of the codec are not read, or this build has no library of it
void require_arrow_codec(ArrowCompression compression, const ArrowOrigin& origin);

/// Decompresses one buffer, of `most` bytes at most.
///
/// Errors  DataError  it is damaged or larger, or this build has no library of the codec
[[nodiscard]] ArrowUnpacked unpack_arrow_buffer(ArrowCompression compression,
                                                std::span<const std::byte> packed,
                                                std::uint64_t most, const ArrowOrigin& origin);

}  // namespace penstock::source

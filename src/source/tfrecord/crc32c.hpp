// source/tfrecord/crc32c: the checksum of TFRecord files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace penstock::source {

/// CRC-32C (Castagnoli) of the bytes, or of what `before` stands for with them behind it. With the
/// processor's own instruction where it has one (SSE 4.2, ARM's CRC extension), else by tables.
///
/// Source  RFC 3720, appendix B.4; slicing by 8: Kounavis, Berry (Intel, 2005).
[[nodiscard]] std::uint32_t crc32c(std::span<const std::byte> bytes,
                                   std::uint32_t before = 0) noexcept;

/// The same by tables alone, on every processor.
[[nodiscard]] std::uint32_t crc32c_by_tables(std::span<const std::byte> bytes,
                                             std::uint32_t before = 0) noexcept;

/// As TFRecord stores it: a checksum of bytes that hold their own checksum tells little, so it is
/// turned and moved.
[[nodiscard]] constexpr std::uint32_t masked_crc(std::uint32_t crc) noexcept {
  return (crc >> 15 | crc << 17) + 0xA282EAD8U;
}

}  // namespace penstock::source

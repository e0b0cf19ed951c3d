// source/tfrecord/tfrecord_scan: the records of a TFRecord file, by their headers alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "src/source/shards/index_files.hpp"

namespace penstock::source {

/// A record is u64 length, u32 masked CRC-32C of the length, the data, u32 masked CRC-32C of it.
inline constexpr std::size_t kFrameHeader = 12;
inline constexpr std::size_t kFrameFooter = 4;

/// What a frame's header says; nothing if its checksum is wrong.
[[nodiscard]] std::optional<std::uint64_t> parse_frame_header(
    std::span<const std::byte, kFrameHeader> header) noexcept;

/// The records of an open TFRecord file. `labels` names features, alternatives separated by line
/// ends, whose one integer is taken.
///
/// A record with a damaged header is one damaged record, and the scan continues at the next good
/// header; what is cut off is one damaged record.
///
/// Errors  Error  the file cannot be read, or is compressed
[[nodiscard]] ScannedShard scan_tfrecord(const storage::StoredFile& file, const std::string& path,
                                         std::span<const std::string> labels);

/// What is damaged, in words.
[[nodiscard]] std::string describe_tfrecord_damage(const Damage& damage);

/// "a\nb" is {"a", "b"}.
[[nodiscard]] std::vector<std::string> split_lines(std::string_view text);

}  // namespace penstock::source

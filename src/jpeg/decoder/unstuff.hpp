// jpeg/decoder/unstuff: the entropy-coded bytes of a scan without what JPEG puts between them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <penstock/core/export.hpp>

#include "src/jpeg/decoder/chunk.hpp"
#include "src/jpeg/decoder/huffman.hpp"

namespace PENSTOCK_EXPORT penstock {
namespace jpeg {

/// Zero bytes behind the data. Readers load whole words, and look at where they are once a chunk at
/// least, which has no more symbols than coefficients.
inline constexpr std::size_t kUnstuffSlack =
    static_cast<std::size_t>(kChunkBlocks * kBlockSize) * symbol::kMostBits / 8 + 64;

/// What ended a segment of entropy-coded bytes.
enum class SegmentEnd : std::uint8_t {
  marker,   ///< any but those that follow
  restart,  ///< RST0 to RST7
  file,     ///< the file, or what may be its end
};

/// Bytes between two markers.
struct Segment {
  std::uint32_t begin = 0;  ///< in Unstuffed::bytes
  std::uint32_t end = 0;
  SegmentEnd ended_by = SegmentEnd::file;
  std::uint8_t restart = 0;  ///< 0 to 7, where a restart marker ended it
};

/// Part of a scan, copied without the zero byte after every 0xFF.
///
/// Threads  one caller at a time; keeps its memory.
class Unstuffed {
 public:
  /// Copies up to the first marker; with `restarts`, up to the first that is none of those.
  /// `bytes` begins after the scan's header, or at a byte that is data.
  void read(std::span<const std::uint8_t> bytes, bool restarts);
  /// The same in parts: what read() makes of each of them, one after another. For such data,
  /// positions cannot be asked for. `most`: the bytes of all parts together, at most.
  void begin(std::size_t most);
  void add(std::span<const std::uint8_t> bytes, bool restarts);
  void end();

  [[nodiscard]] const std::uint8_t* data() const noexcept { return bytes_.data(); }
  /// Bytes of data; kUnstuffSlack zero bytes follow.
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  /// At least one.
  [[nodiscard]] std::span<const Segment> segments() const noexcept { return segments_; }

  /// Where in read()'s bytes the data byte `position` is. Cheap where positions ascend.
  [[nodiscard]] std::size_t raw_position(std::size_t position) noexcept;
  /// The reverse, for positions of data bytes; of others, some position near.
  [[nodiscard]] std::size_t position_of(std::size_t raw) noexcept;

  void trim();

 private:
  std::vector<std::uint8_t> bytes_;
  std::size_t size_ = 0;
  std::vector<Segment> segments_;
  // For every byte that was left out, the position behind the data byte before it; ascending.
  std::vector<std::uint32_t> left_out_;
  std::size_t cursor_ = 0;  // into left_out_, where the last question ended
};

/// Notes in `at` where the first markers in `bytes` are, the first of each one's two bytes; no more
/// than `at` holds. Returns how many there are. 0xFF that a zero byte follows is none.
[[nodiscard]] std::size_t find_markers(std::span<const std::uint8_t> bytes,
                                       std::span<std::uint32_t> at);

}  // namespace jpeg
}  // namespace penstock

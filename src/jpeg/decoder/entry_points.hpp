// jpeg/decoder/entry_points: from checkpoints to an index, and from an index to checkpoints.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <penstock/core/export.hpp>
#include <penstock/jpeg/jpeg_index.hpp>

#include "src/jpeg/decoder/header.hpp"
#include "src/jpeg/decoder/plan.hpp"
#include "src/jpeg/decoder/scan.hpp"
#include "src/jpeg/decoder/unstuff.hpp"

namespace PENSTOCK_EXPORT penstock {
namespace jpeg {

/// The index of an image: of `points`, which go as far as its data are valid, the last one before
/// every MCU row; where restart markers divide the rows, only the first: these are found quickly. With `entry_bits`, of all
/// points that are about so many bits apart, wherever markers are.
/// `unstuffed` holds the whole scan, of `scan_bytes` bytes in the file. Nothing where no part of it
/// is valid.
[[nodiscard]] std::optional<JpegIndex> make_index(const JpegHeader& header,
                                                  std::span<const Checkpoint> points,
                                                  Unstuffed& unstuffed, std::size_t scan_bytes,
                                                  std::uint32_t entry_bits = 0);

/// Copies the part of a scan that `plan` needs into `unstuffed`, and sets `points` to the
/// checkpoints there. `markers` is scratch. False where the index cannot be this image's, or does
/// not go as far as libjpeg-turbo would read.
[[nodiscard]] bool use_index(const JpegIndex& index, const JpegHeader& header,
                             const RegionPlan& plan, std::span<const std::uint8_t> scan,
                             Unstuffed& unstuffed, std::vector<Checkpoint>& points,
                             std::vector<std::uint32_t>& markers);

/// libjpeg-turbo reads some bytes ahead of its bits, and has a warning where the file ends there.
/// True where it will not come to that: `bit` is as far as it decodes, within `segment`.
[[nodiscard]] bool ends_before_file(const Segment& segment, std::uint64_t bit) noexcept;

}  // namespace jpeg
}  // namespace penstock

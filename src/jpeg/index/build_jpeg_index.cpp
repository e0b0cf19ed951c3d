#include <memory>
#include <utility>

#include <penstock/jpeg/jpeg_index.hpp>

#include "src/jpeg/decoder/region.hpp"

namespace penstock {

std::optional<JpegIndex> build_jpeg_index(std::span<const std::byte> jpeg,
                                          const JpegIndexOptions& options) {
  const auto region = std::make_unique<jpeg::JpegRegion>();
  if (region->open(jpeg)) return std::nullopt;
  const jpeg::JpegHeader& header = region->header();
  if (header.width < 1 || header.height < 1) return std::nullopt;
  // Whatever comes of this pixel, the scan was gone through.
  (void)region->begin({.x = 0, .y = 0, .width = 1, .height = 1}, 1, jpeg::Chroma::repeated, 1,
                      {.build_index = true, .entry_bits = options.entry_bits});
  return region->take_index();
}

}  // namespace penstock

// An image of 67 million pixels: places far inside it, by every instruction set and by an index.
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <penstock/jpeg/jpeg_index.hpp>

#include "src/jpeg/decoder/region.hpp"
#include "tests/jpeg/jpeg_decoders.hpp"

namespace penstock::jpeg {
namespace {

using namespace testing_images;

constexpr int kSide = 8192;

// Nothing in it repeats itself where a block, a row or a power of two would.
Pixels large_picture() {
  constexpr int kTile = 509;
  const Pixels tile = picture(kTile, kTile);
  Pixels pixels(kSide, kSide, 3);
  for (int y = 0; y < kSide; ++y) {
    for (int x = 0; x < kSide; ++x) {
      const std::uint8_t* from = tile.at(x % kTile, y % kTile);
      const int more = 5 * (x / kTile) + 11 * (y / kTile);
      for (int c = 0; c < 3; ++c)
        pixels.at(x, y)[c] = static_cast<std::uint8_t>(from[c] / 2 + more % 128);
    }
  }
  return pixels;
}

TEST(JpegRegion, DecodesPlacesFarInsideAVeryLargeImage) {
  const Pixels pixels = large_picture();
  for (const int restart : {0, 64}) {
    SCOPED_TRACE("restart " + std::to_string(restart));
    const Bytes bytes =
        jpeg_of(pixels, {.sampling = {{2, 2}, {1, 1}, {1, 1}}, .restart = restart, .quality = 75});
    JpegRegion region;
    const std::optional<JpegIndex> index = build_jpeg_index(bytes);
    ASSERT_TRUE(index);
    for (const Chroma upsampling : kChromas) {
      const Pixels whole = libjpeg_whole(bytes, upsampling == Chroma::smooth);
      std::vector<std::pair<PixelRect, std::vector<std::uint8_t>>> places;
      for (const PixelRect& rect : {PixelRect{4'321, 4'567, 700, 300},
                                    {8'000, 8'100, 192, 92},
                                    {8'191, 8'191, 1, 1},
                                    {0, 7'003, kSide, 3}})
        places.emplace_back(rect, part_of(whole, rect));
      for_every_target([&] {
        for (const auto& [rect, expected] : places) {
          SCOPED_TRACE(text_of(rect) + (upsampling == Chroma::smooth ? " smooth" : " plain"));
          ASSERT_TRUE(by_own(region, bytes, rect, upsampling) == expected);
          ASSERT_TRUE(by_own(region, bytes, rect, upsampling, 3, 1, {.index = &*index}) == expected)
              << "by index";
          ASSERT_TRUE(region.used_index());
        }
      });
      if (HasFatalFailure()) return;
    }
  }
}

}  // namespace
}  // namespace penstock::jpeg

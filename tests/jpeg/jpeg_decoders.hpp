// Penstock's JPEG decoder and libjpeg-turbo's, side by side.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include "src/jpeg/decoder/region.hpp"
#include "src/jpeg/libjpeg/libjpeg_reader.hpp"
#include "tests/jpeg/images.hpp"

namespace penstock::testing_images {

using jpeg::Chroma;
using jpeg::JpegReader;
using jpeg::JpegRegion;

// With `always` or `never` while it lives.
class UsingLockstep {
 public:
  explicit UsingLockstep(bool always) {
    jpeg::Lockstep::use(always ? jpeg::Lockstep::When::always : jpeg::Lockstep::When::never);
  }
  ~UsingLockstep() { jpeg::Lockstep::use(jpeg::Lockstep::When::faster); }
  UsingLockstep(const UsingLockstep&) = delete;
  UsingLockstep& operator=(const UsingLockstep&) = delete;
};

// Runs what follows with one instruction set after another, the best one first.
template <class Run>
void for_every_target(const Run& run) {
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    SCOPED_TRACE(hwy::TargetName(target));
    run();
    hwy::SetSupportedTargetsForTest(0);
    if (testing::Test::HasFatalFailure()) return;
  }
  for (const bool always : {false, true}) {
    SCOPED_TRACE(always ? "in lockstep" : "not in lockstep");
    const UsingLockstep lockstep(always);
    run();
    if (testing::Test::HasFatalFailure()) return;
  }
}

class Dice {
 public:
  explicit Dice(unsigned seed) : random_(seed) {}
  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  template <class T>
  const T& one_of(const std::vector<T>& values) {
    return values[static_cast<std::size_t>(below(static_cast<int>(values.size())))];
  }
  PixelRect part_of(int width, int height) {
    PixelRect rect{.x = below(width), .y = below(height)};
    rect.width = 1 + below(width - rect.x);
    rect.height = 1 + below(height - rect.y);
    return rect;
  }

 private:
  std::mt19937 random_;
};

inline std::string text_of(const PixelRect& rect) {
  return std::to_string(rect.x) + "," + std::to_string(rect.y) + " " + std::to_string(rect.width) +
         "x" + std::to_string(rect.height);
}

// The rectangle's pixels, 3 bytes each; empty where the decoder gives up.
template <class Reader>
std::vector<std::uint8_t> pixels_of(Reader& reader, const PixelRect& rect, int span) {
  std::vector<std::uint8_t> pixels;
  for (int y = rect.y; y < rect.y + rect.height; ++y) {
    // As a resize does: a few rows, most of them seen before.
    const int first = std::max(rect.y, y - span + 1);
    const std::uint8_t* const* rows = reader.rows(first, y + 1);
    if (rows == nullptr) return {};
    const std::uint8_t* row = rows[y - first];
    for (int x = 0; x < rect.width; ++x)
      pixels.insert(pixels.end(), row + std::ptrdiff_t{4} * x, row + std::ptrdiff_t{4} * x + 3);
  }
  return pixels;
}

inline std::vector<std::uint8_t> by_own(JpegRegion& region, const Bytes& bytes,
                                        const PixelRect& rect, Chroma upsampling, int span = 3,
                                        int scale = 1, const jpeg::IndexUse& use = {}) {
  std::vector<std::uint8_t> pixels;
  if (!region.open(bytes) && region.begin(rect, span, upsampling, scale, use))
    pixels = pixels_of(region, rect, span);
  region.close();
  return pixels;
}

inline std::vector<std::uint8_t> by_libjpeg(JpegReader& reader, const Bytes& bytes,
                                            const PixelRect& rect, Chroma upsampling,
                                            int scale = 1) {
  std::vector<std::uint8_t> pixels;
  if (reader.open(bytes) && reader.begin(rect, 3, upsampling, scale))
    pixels = pixels_of(reader, rect, 3);
  reader.close();
  return pixels;
}

inline std::vector<std::uint8_t> part_of(const Pixels& whole, const PixelRect& rect) {
  std::vector<std::uint8_t> pixels;
  for (int y = rect.y; y < rect.y + rect.height; ++y)
    pixels.insert(pixels.end(), whole.at(rect.x, y), whole.at(rect.x, y) + 3 * rect.width);
  return pixels;
}

inline constexpr std::array kChromas{Chroma::repeated, Chroma::smooth};

inline Bytes damaged(Bytes bytes, Dice& dice, std::size_t from = 0) {
  const auto size = static_cast<int>(bytes.size() - from);
  for (int n = 1 + dice.below(4); n > 0; --n) {
    const auto at = from + static_cast<std::size_t>(dice.below(size));
    switch (dice.below(5)) {
      case 0:
        bytes[at] = static_cast<std::byte>(dice.below(256));
        break;
      case 1:
        bytes[at] ^= static_cast<std::byte>(1U << static_cast<unsigned>(dice.below(8)));
        break;
      case 2:
        bytes.erase(
            bytes.begin() + static_cast<std::ptrdiff_t>(at),
            bytes.begin() + static_cast<std::ptrdiff_t>(std::min(
                                at + 1 + static_cast<std::size_t>(dice.below(9)), bytes.size())));
        return bytes;
      case 3:
        bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                     static_cast<std::byte>(dice.below(4) == 0 ? 0xFF : dice.below(256)));
        break;
      default:
        if (at + 1 < bytes.size()) {
          bytes[at] = std::byte{0xFF};
          bytes[at + 1] =
              static_cast<std::byte>(dice.below(2) == 0 ? 0xD0 + dice.below(10) : dice.below(256));
        }
    }
  }
  return bytes;
}

}  // namespace penstock::testing_images

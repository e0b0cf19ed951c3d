// What Penstock's decoder takes, libjpeg-turbo takes without a warning, and makes the same of it.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "src/jpeg/decoder/plan.hpp"
#include "src/jpeg/decoder/region.hpp"
#include "src/jpeg/libjpeg/libjpeg_reader.hpp"

namespace {

using namespace penstock;
using namespace penstock::jpeg;

constexpr std::int64_t kMostPixels = 1 << 17;

// Empty where there is something wrong.
template <class Reader>
std::vector<std::uint8_t> decode(Reader& reader, const PixelRect& rect, Chroma upsampling,
                                 int scale, const auto&... use) {
  std::vector<std::uint8_t> pixels;
  if (!reader.begin(rect, 2, upsampling, scale, use...)) return {};
  for (int y = rect.y; y < rect.y + rect.height; ++y) {
    const std::uint8_t* const* rows = reader.rows(y, y + 1);
    if (rows == nullptr) return {};
    for (int x = 0; x < rect.width; ++x)
      pixels.insert(pixels.end(), rows[0] + 4 * x, rows[0] + 4 * x + 3);
  }
  return pixels;
}

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto kOwn = std::make_unique<JpegRegion>();
  static const auto kLibjpeg = std::make_unique<JpegReader>();
  const std::span bytes(reinterpret_cast<const std::byte*>(data), size);
  if (size < 5 || kOwn->open(bytes)) return 0;
  const int width = kOwn->header().width;
  const int height = kOwn->header().height;
  const int orientation = kOwn->header().orientation;
  if (std::int64_t{width} * height > kMostPixels) return 0;
  const int scale = data[size - 5] < 128 ? 1 : 2 << data[size - 5] % 3;
  const int scaled_width = scaled_down(width, scale);
  const int scaled_height = scaled_down(height, scale);
  PixelRect rect{.x = data[size - 1] * scaled_width / 256,
                 .y = data[size - 2] * scaled_height / 256};
  rect.width = 1 + data[size - 3] * (scaled_width - rect.x) / 256;
  rect.height = 1 + data[size - 4] * (scaled_height - rect.y) / 256;
  const Chroma upsampling = data[size - 1] % 2 == 0 ? Chroma::repeated : Chroma::smooth;

  std::vector<std::uint8_t> expected;
  const auto check = [&](const std::vector<std::uint8_t>& own) {
    if (own.empty()) return;
    if (expected.empty()) {
      if (!kLibjpeg->open(bytes)) fail("libjpeg-turbo: " + std::string(kLibjpeg->message()));
      if (kLibjpeg->width() != width || kLibjpeg->height() != height) fail("another size");
      if (kLibjpeg->orientation() != orientation) fail("another orientation");
      expected = decode(*kLibjpeg, rect, upsampling, scale);
      if (expected.empty()) fail("libjpeg-turbo: " + std::string(kLibjpeg->message()));
      kLibjpeg->close();
    }
    if (own != expected) fail("other pixels");
  };
  Lockstep::use(Lockstep::When::always);
  check(decode(*kOwn, rect, upsampling, scale));
  kOwn->close();

  // What libjpeg-turbo only warns about: the region is that of the whole image all the same.
  static const auto kTolerant = std::make_unique<JpegReader>();
  kTolerant->be_tolerant(true);
  const auto tolerated = [&](const PixelRect& of) {
    std::vector<std::uint8_t> pixels;
    if (kTolerant->open(bytes) && kTolerant->width() == width && kTolerant->height() == height)
      pixels = decode(*kTolerant, of, upsampling, scale);
    kTolerant->close();
    return pixels;
  };
  if (const auto part = tolerated(rect); !part.empty()) {
    if (part.size() != std::size_t{3} * static_cast<std::size_t>(rect.width) *
                           static_cast<std::size_t>(rect.height))
      fail("another number of pixels");
    if (!expected.empty() && part != expected) fail("other pixels where they are tolerated");
  }

  // Once more, learning an index, and by it.
  Lockstep::use(Lockstep::When::never);
  if (kOwn->open(bytes)) fail("another header");
  check(decode(*kOwn, rect, upsampling, scale, IndexUse{.build_index = true}));
  const auto index = kOwn->take_index();
  kOwn->close();
  if (!index) return 0;
  Lockstep::use(Lockstep::When::always);
  if (kOwn->open(bytes)) fail("another header");
  check(decode(*kOwn, rect, upsampling, scale, IndexUse{.index = &*index}));
  kOwn->close();
  return 0;
}

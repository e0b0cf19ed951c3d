// What Penstock's decoder takes, libjpeg-turbo takes without a warning, and makes the same of it.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "src/transform/jpeg.hpp"
#include "src/transform/jpeg/region.hpp"

namespace {

using namespace penstock::detail;

constexpr std::int64_t kMostPixels = 1 << 17;

// Empty where there is something wrong.
template <class Reader>
std::vector<std::uint8_t> decode(Reader& reader, const PixelRect& rect, Upsampling upsampling) {
  std::vector<std::uint8_t> pixels;
  if (!reader.begin(rect, 2, upsampling)) return {};
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
  if (size < 4 || kOwn->open(bytes)) return 0;
  const int width = kOwn->header().width;
  const int height = kOwn->header().height;
  if (std::int64_t{width} * height > kMostPixels) return 0;
  PixelRect rect{.x = data[size - 1] * width / 256, .y = data[size - 2] * height / 256};
  rect.width = 1 + data[size - 3] * (width - rect.x) / 256;
  rect.height = 1 + data[size - 4] * (height - rect.y) / 256;
  const Upsampling upsampling = data[size - 1] % 2 == 0 ? Upsampling::plain : Upsampling::smooth;
  const auto own = decode(*kOwn, rect, upsampling);
  const int orientation = kOwn->header().orientation;
  kOwn->close();
  if (own.empty()) return 0;

  if (!kLibjpeg->open(bytes)) fail("libjpeg-turbo: " + std::string(kLibjpeg->message()));
  if (kLibjpeg->width() != width || kLibjpeg->height() != height) fail("another size");
  if (kLibjpeg->orientation() != orientation) fail("another orientation");
  const auto expected = decode(*kLibjpeg, rect, upsampling);
  if (expected.empty()) fail("libjpeg-turbo: " + std::string(kLibjpeg->message()));
  if (own != expected) fail("other pixels");
  kLibjpeg->close();
  return 0;
}

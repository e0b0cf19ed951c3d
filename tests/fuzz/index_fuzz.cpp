// An index from anywhere, used for one of a few images.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <vector>

#include "src/jpeg/decoder/region.hpp"
#include "tests/fuzz/index_image.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace penstock;
  using namespace penstock::jpeg;
  static const auto kRegion = std::make_unique<JpegRegion>();
  static const auto kImages = [] {
    std::vector<testing_images::Bytes> images;
    for (int i = 0; i < fuzz::kIndexImages; ++i) images.push_back(fuzz::index_image(i));
    return images;
  }();
  if (size < 2) return 0;
  const auto index =
      JpegIndex::from_bytes({reinterpret_cast<const std::byte*>(data) + 2, size - 2});
  if (!index) return 0;
  if (JpegIndex::from_bytes(index->to_bytes()) != index) std::abort();
  if (kRegion->open(kImages[data[0] % fuzz::kIndexImages])) std::abort();
  const JpegHeader& header = kRegion->header();
  const int x = (data[1] & 15) * header.width / 16;
  const int y = (data[1] >> 4) * header.height / 16;
  const PixelRect rect{x, y, 1 + (header.width - x) / 2, 1 + (header.height - y) / 2};
  if (kRegion->begin(rect, 1, Chroma::repeated, 1, {.index = &*index}))
    for (int row = rect.y; row < rect.y + rect.height; ++row)
      if (kRegion->rows(row, row + 1) == nullptr) break;
  kRegion->close();
  return 0;
}

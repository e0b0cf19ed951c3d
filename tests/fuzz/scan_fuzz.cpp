// A whole decoding, of a region that the input's last bytes choose; with an index built and used.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "src/jpeg/decoder/region.hpp"

namespace {

using namespace penstock;
using namespace penstock::jpeg;

constexpr std::int64_t kMostPixels = 1 << 18;

std::vector<std::uint8_t> decode(JpegRegion& region, const PixelRect& rect, Chroma upsampling,
                                 const IndexUse& use = {}) {
  std::vector<std::uint8_t> pixels;
  if (!region.begin(rect, 2, upsampling, 1, use)) return {};
  for (int y = rect.y; y < rect.y + rect.height; ++y) {
    const std::uint8_t* const* rows = region.rows(y, y + 1);
    if (rows == nullptr) return {};
    for (int x = 0; x < rect.width; ++x)
      pixels.insert(pixels.end(), rows[0] + 4 * x, rows[0] + 4 * x + 3);
  }
  return pixels;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto kRegion = std::make_unique<JpegRegion>();
  const std::span bytes(reinterpret_cast<const std::byte*>(data), size);
  const auto open = [&] { return !kRegion->open(bytes); };
  if (size < 4 || !open()) return 0;
  const JpegHeader& header = kRegion->header();
  const int width = header.width;
  const int height = header.height;
  if (std::int64_t{width} * height > kMostPixels) return 0;
  PixelRect rect{.x = data[size - 1] * width / 256, .y = data[size - 2] * height / 256};
  rect.width = 1 + data[size - 3] * (width - rect.x) / 256;
  rect.height = 1 + data[size - 4] * (height - rect.y) / 256;
  const Chroma upsampling = data[size - 1] % 2 == 0 ? Chroma::repeated : Chroma::smooth;
  Lockstep::use(Lockstep::When::never);
  const auto plain = decode(*kRegion, rect, upsampling);
  kRegion->close();

  // Near the end of a cut file, one may give up where another need not.
  const auto agree = [&](const std::vector<std::uint8_t>& pixels) {
    if (!pixels.empty() && !plain.empty() && pixels != plain) std::abort();
  };
  Lockstep::use(Lockstep::When::always);
  if (!open()) std::abort();
  agree(decode(*kRegion, rect, upsampling, {.build_index = true}));
  const std::optional<JpegIndex> index = kRegion->take_index();
  kRegion->close();
  if (!index) return 0;

  if (JpegIndex::from_bytes(index->to_bytes()) != index || !open()) std::abort();
  agree(decode(*kRegion, rect, upsampling, {.index = &*index}));
  kRegion->close();
  return 0;
}

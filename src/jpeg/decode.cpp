#include <algorithm>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include <penstock/jpeg/decoder.hpp>

#include "src/jpeg/decoder/plan.hpp"
#include "src/jpeg/image.hpp"
#include "src/jpeg/pixels/exif.hpp"

namespace penstock::jpeg {

namespace {

constexpr std::size_t kChannels = 3;

// Pixels have a fourth byte here that callers do not want.
void copy_row(const std::uint8_t* from, int width, std::uint8_t* to) noexcept {
  for (int x = 0; x < width; ++x, from += kPixelBytes, to += kChannels) {
    to[0] = from[0];
    to[1] = from[1];
    to[2] = from[2];
  }
}

void require_fits(const PixelRect& rect, int width, int height, std::size_t bytes,
                  std::size_t row_bytes) {
  if (rect.x < 0 || rect.y < 0 || rect.width < 1 || rect.height < 1 ||
      rect.width > width - rect.x || rect.height > height - rect.y)
    throw std::invalid_argument(
        fmt::format("a region of {}x{} pixels at ({}, {}) is not within the image, which has {}x{} "
                    "at this scale",
                    rect.width, rect.height, rect.x, rect.y, width, height));
  const std::size_t least = kChannels * static_cast<std::size_t>(rect.width);
  const auto rows = static_cast<std::size_t>(rect.height);
  const bool fits = bytes >= least && (rows == 1 || row_bytes <= (bytes - least) / (rows - 1));
  if (row_bytes < least || !fits)
    throw std::invalid_argument(
        fmt::format("{} rows of {} pixels need {} bytes a row and {} in all, found {} and {}",
                    rect.height, rect.width, least,
                    static_cast<double>(std::max(row_bytes, least)) * (rect.height - 1) +
                        static_cast<double>(least),
                    row_bytes, bytes));
}

}  // namespace

ImageSize Info::upright() const noexcept {
  return Orientation(orientation).transposed ? ImageSize(width, height) : ImageSize(height, width);
}

struct Decoder::State {
  DecoderOptions options;
  Image image;
  std::optional<Info> info;  // of the image that is open
};

Decoder::Decoder(DecoderOptions options) : state_(std::make_unique<State>()) {
  state_->options = std::move(options);
}
Decoder::Decoder(Decoder&&) noexcept = default;
Decoder& Decoder::operator=(Decoder&&) noexcept = default;
Decoder::~Decoder() = default;

Result<Info> Decoder::open(std::span<const std::byte> bytes) {
  close();
  Result<Info> info = state_->image.open(bytes, {}, state_->options.stats.get());
  if (info && (info->width < 1 || info->height < 1))
    return Fault{.reason = fmt::format("the header says {}x{}: there are no pixels", info->width,
                                       info->height)};
  if (info) state_->info = *info;
  return info;
}

Result<void> Decoder::decode(const DecodeOptions& options, std::span<std::uint8_t> pixels,
                             std::size_t row_bytes) {
  if (!state_->info) throw std::logic_error("no JPEG is open: call open() first");
  const int scale = options.scale;
  if (scale != 1 && scale != 2 && scale != 4 && scale != 8)
    throw std::invalid_argument(fmt::format("the scale is 1, 2, 4 or 8, found {}", scale));
  const int width = scaled_down(state_->info->width, scale);
  const int height = scaled_down(state_->info->height, scale);
  const PixelRect rect =
      options.region.value_or(PixelRect{.x = 0, .y = 0, .width = width, .height = height});
  require_fits(rect, width, height, pixels.size(), row_bytes);
  const auto take = [&](RowSource& rows) {
    std::uint8_t* to = pixels.data();
    for (int y = rect.y; y < rect.y + rect.height; ++y, to += row_bytes) {
      const std::uint8_t* const* row = rows.rows(y, y + 1);
      if (row == nullptr) return false;
      copy_row(row[0], rect.width, to);
    }
    return true;
  };
  return state_->image.decode({.rect = rect, .span = 1, .chroma = options.chroma, .scale = scale},
                              TakeRows(take), state_->options.index.get(),
                              state_->options.stats.get());
}

void Decoder::close() noexcept {
  state_->image.close();
  state_->info.reset();
}

}  // namespace penstock::jpeg

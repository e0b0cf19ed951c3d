#include "src/transform/formats/bmp.hpp"

#include <algorithm>
#include <bit>
#include <climits>

#include <fmt/format.h>

namespace penstock::transform {

namespace {

constexpr std::size_t kFileHeader = 14;
constexpr std::size_t kCoreHeader = 12;  // OS/2's first
constexpr std::size_t kInfoHeader = 40;
constexpr std::size_t kOs2Header = 64;

constexpr std::uint32_t kRle8 = 1;
constexpr std::uint32_t kRle4 = 2;
constexpr std::uint32_t kMasks = 3;
constexpr std::uint32_t kMasksWithAlpha = 6;

Fault ends_early() { return Fault{.reason = "premature end of BMP file"}; }

}  // namespace

BmpReader::Channel BmpReader::Channel::of(std::uint32_t mask) noexcept {
  if (mask == 0) return {};
  const int shift = std::countr_zero(mask);
  return {.mask = mask, .shift = shift, .max = mask >> shift};
}

std::uint8_t BmpReader::Channel::level(std::uint32_t pixel) const noexcept {
  if (max == 0) return 0;
  return static_cast<std::uint8_t>(std::uint64_t{255} * ((pixel & mask) >> shift) / max);
}

// Little-endian; bytes behind the end are 0.
std::uint32_t BmpReader::number(std::size_t at, std::size_t bytes) const noexcept {
  std::uint32_t value = 0;
  for (std::size_t k = 0; k < bytes && at + k < bytes_.size(); ++k)
    value |= std::to_integer<std::uint32_t>(bytes_[at + k]) << (8 * k);
  return value;
}

Result<void> BmpReader::open(std::span<const std::byte> bytes) {
  bytes_ = bytes;
  if (bytes.size() < kFileHeader + kCoreHeader) return ends_early();
  const std::size_t header = number(kFileHeader, 4);
  const bool is_core = header == kCoreHeader;
  if (!is_core && (header < kInfoHeader || header > 1024))
    return Fault{.reason = fmt::format("corrupt BMP data: a header of {} bytes", header)};
  if (bytes.size() < kFileHeader + header) return ends_early();
  data_ = number(10, 4);
  constexpr std::size_t kBody = kFileHeader + 4;
  std::uint32_t compression = 0;
  std::uint32_t colors = 0;
  if (is_core) {
    width_ = static_cast<int>(number(kBody, 2));
    height_ = static_cast<int>(number(kBody + 2, 2));
    bits_ = static_cast<int>(number(kBody + 6, 2));
  } else {
    width_ = static_cast<int>(number(kBody, 4));
    height_ = static_cast<int>(number(kBody + 4, 4));
    bits_ = static_cast<int>(number(kBody + 10, 2));
    compression = number(kBody + 12, 4);
    colors = number(kBody + 28, 4);
    if (height_ == INT_MIN) height_ = 0;
    is_top_down_ = height_ < 0;
    height_ = std::abs(height_);
  }
  const bool is_packed = header != kOs2Header || compression < kMasks;
  has_runs_ = (compression == kRle8 && bits_ == 8) || (compression == kRle4 && bits_ == 4);
  const bool has_masks = is_packed && (compression == kMasks || compression == kMasksWithAlpha) &&
                         (bits_ == 16 || bits_ == 32);
  const bool is_known =
      bits_ == 1 || bits_ == 4 || bits_ == 8 || bits_ == 16 || bits_ == 24 || bits_ == 32;
  if (!is_known || (compression != 0 && !has_runs_ && !has_masks))
    return Fault{.reason = fmt::format("a BMP of {} bits a pixel with compression {}, which is not "
                                       "decoded",
                                       bits_, compression)};
  std::size_t palette = kFileHeader + header;
  if (has_masks) {
    if (auto masks = read_masks(header, compression); !masks) return masks;
    if (header == kInfoHeader) palette += compression == kMasks ? 12 : 16;
  } else if (bits_ == 16) {
    channels_ = {Channel::of(0x7C00), Channel::of(0x03E0), Channel::of(0x001F), Channel{}};
  } else if (bits_ == 32) {
    channels_ = {Channel::of(0x00FF0000), Channel::of(0x0000FF00), Channel::of(0x000000FF),
                 Channel{}};
  }
  if (bits_ <= 8) {
    const std::uint32_t most = 1U << bits_;
    const std::size_t entry_bytes = is_core ? 3 : 4;
    if (colors == 0 || colors > most) colors = most;
    read_palette(palette, entry_bytes, colors);
    // Some programs write the palette, and leave it out of the offset.
    if (data_ == palette) data_ += colors * entry_bytes;
  }
  return {};
}

Result<void> BmpReader::read_masks(std::size_t header, std::uint32_t compression) {
  constexpr std::size_t kAt = kFileHeader + kInfoHeader;  // in all headers, or behind the shortest
  constexpr std::size_t kHeaderWithAlpha = 56;
  const bool has_alpha = header >= kHeaderWithAlpha || compression == kMasksWithAlpha;
  if (bytes_.size() < kAt + (has_alpha ? 16 : 12)) return ends_early();
  for (std::size_t k = 0; k < (has_alpha ? 4 : 3); ++k) {
    const std::uint32_t mask = number(kAt + 4 * k, 4);
    channels_[k] = Channel::of(mask);
    if (!std::has_single_bit(std::uint64_t{channels_[k].max} + 1))
      return Fault{.reason = fmt::format("corrupt BMP data: the mask {:#x} has gaps", mask)};
  }
  return {};
}

void BmpReader::read_palette(std::size_t at, std::size_t entry_bytes, std::uint32_t count) {
  palette_.assign(256, Rgba{0, 0, 0, 255});
  for (std::uint32_t k = 0; k < count; ++k) {
    const std::size_t entry = at + entry_bytes * k;
    // Some files say more colours than stand before their pixels.
    if (data_ > at && entry + 3 > data_) return;
    palette_[k] = {static_cast<std::uint8_t>(number(entry + 2, 1)),
                   static_cast<std::uint8_t>(number(entry + 1, 1)),
                   static_cast<std::uint8_t>(number(entry, 1)), 255};
  }
}

Result<void> BmpReader::read(std::uint8_t* rgba) {
  return has_runs_ ? read_runs(rgba) : read_rows(rgba);
}

Result<void> BmpReader::read_rows(std::uint8_t* rgba) const {
  const std::size_t row_bits = static_cast<std::size_t>(width_) * static_cast<std::size_t>(bits_);
  const std::size_t row_bytes = (row_bits + 7) / 8;
  const std::size_t stride = (row_bits + 31) / 32 * 4;
  const auto rows = static_cast<std::size_t>(height_);
  // The last row's padding is often left out.
  if (data_ > bytes_.size() || bytes_.size() - data_ < stride * (rows - 1) + row_bytes)
    return ends_early();
  for (std::size_t y = 0; y < rows; ++y)
    convert_row(bytes_.data() + data_ + stride * (is_top_down_ ? y : rows - 1 - y),
                rgba + 4 * static_cast<std::size_t>(width_) * y);
  return {};
}

void BmpReader::convert_row(const std::byte* row, std::uint8_t* rgba) const noexcept {
  const auto byte = [row](std::size_t at) { return std::to_integer<std::uint32_t>(row[at]); };
  const auto width = static_cast<std::size_t>(width_);
  for (std::size_t x = 0; x < width; ++x, rgba += 4) {
    Rgba pixel{0, 0, 0, 255};
    if (bits_ <= 8) {
      const std::size_t bit = x * static_cast<std::size_t>(bits_);
      const auto shift = 8 - static_cast<std::size_t>(bits_) - bit % 8;
      pixel = palette_[byte(bit / 8) >> shift & ((1U << bits_) - 1)];
    } else if (bits_ == 24) {
      pixel = {static_cast<std::uint8_t>(byte(3 * x + 2)),
               static_cast<std::uint8_t>(byte(3 * x + 1)), static_cast<std::uint8_t>(byte(3 * x)),
               255};
    } else {
      const std::uint32_t value = bits_ == 16 ? byte(2 * x) | byte(2 * x + 1) << 8
                                              : byte(4 * x) | byte(4 * x + 1) << 8 |
                                                    byte(4 * x + 2) << 16 | byte(4 * x + 3) << 24;
      for (std::size_t k = 0; k < 3; ++k) pixel[k] = channels_[k].level(value);
      if (channels_[3].max != 0) pixel[3] = channels_[3].level(value);
    }
    std::ranges::copy(pixel, rgba);
  }
}

Result<void> BmpReader::read_runs(std::uint8_t* rgba) const {
  const auto width = static_cast<std::size_t>(width_);
  const auto rows = static_cast<std::size_t>(height_);
  for (std::size_t k = 0; k < pixels(); ++k) std::ranges::copy(palette_[0], rgba + 4 * k);
  std::size_t x = 0;
  std::size_t y = 0;  // in the order of the file
  // Some programs write a row's padding, to a multiple of four bytes, as pixels.
  const std::size_t multiple = bits_ == 8 ? 4 : 8;
  const std::size_t padded = (width + multiple - 1) / multiple * multiple;
  const auto put = [&](std::uint32_t number) {
    if (x < width) {
      const std::size_t row = is_top_down_ ? y : rows - 1 - y;
      std::ranges::copy(palette_[number], rgba + 4 * (width * row + x));
    }
    ++x;
  };
  const auto damaged = [&](const char* what) {
    return Fault{.reason = fmt::format("corrupt BMP data: {} in row {} of {}", what, y + 1, rows)};
  };
  const auto is_whole = [&] { return y + 1 == rows && x >= width; };
  std::size_t at = data_;
  const auto byte = [&](std::size_t k) { return std::to_integer<std::uint32_t>(bytes_[k]); };
  while (y < rows) {
    if (at > bytes_.size() || bytes_.size() - at < 2) {
      if (is_whole()) return {};
      return ends_early();
    }
    const std::uint32_t count = byte(at);
    const std::uint32_t value = byte(at + 1);
    at += 2;
    if (count > 0) {
      if (count > padded - x) return damaged("a run leaves the picture");
      for (std::uint32_t k = 0; k < count; ++k)
        put(bits_ == 8 ? value : (k % 2 == 0 ? value >> 4 : value & 15));
    } else if (value == 0) {  // the row ends
      x = 0;
      ++y;
    } else if (value == 1) {  // the bitmap ends
      if (is_whole()) return {};
      return damaged("the runs end");
    } else if (value == 2) {  // a jump
      if (bytes_.size() - at < 2) return ends_early();
      if (byte(at) > padded - x || byte(at + 1) >= rows - y)
        return damaged("a jump leaves the picture");
      x += byte(at);
      y += byte(at + 1);
      at += 2;
    } else {  // pixels one by one, padded to an even number of bytes
      const std::size_t stored = bits_ == 8 ? value : (value + 1) / 2;
      if (bytes_.size() - at < stored) return ends_early();
      if (value > padded - x) return damaged("a run leaves the picture");
      for (std::uint32_t k = 0; k < value; ++k) {
        const std::uint32_t pair = byte(at + (bits_ == 8 ? k : k / 2));
        put(bits_ == 8 ? pair : (k % 2 == 0 ? pair >> 4 : pair & 15));
      }
      at += stored + stored % 2;
    }
  }
  return {};
}

}  // namespace penstock::transform

#include "src/jpeg/decoder/header.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "src/jpeg/pixels/exif.hpp"

namespace penstock::jpeg {
namespace {

constexpr int kMaxDimension = 65500;  // libjpeg's

enum Marker : unsigned {
  kSof0 = 0xC0,
  kSof1 = 0xC1,
  kSof2 = 0xC2,
  kDht = 0xC4,
  kJpg = 0xC8,
  kSof9 = 0xC9,
  kSof10 = 0xCA,
  kDac = 0xCC,
  kSof15 = 0xCF,
  kSos = 0xDA,
  kDqt = 0xDB,
  kDri = 0xDD,
  kApp0 = 0xE0,
  kApp1 = 0xE1,
  kApp14 = 0xEE,
  kApp15 = 0xEF,
  kCom = 0xFE,
};

using Payload = std::span<const std::uint8_t>;
using Refusal = std::optional<JpegFallback>;

unsigned word(Payload bytes, std::size_t at) {
  return static_cast<unsigned>(bytes[at]) << 8 | bytes[at + 1];
}

bool starts_with(Payload payload, std::string_view text) {
  return payload.size() >= text.size() &&
         std::memcmp(payload.data(), text.data(), text.size()) == 0;
}

class HeaderReader {
 public:
  HeaderReader(Payload bytes, JpegHeader& header) : bytes_(bytes), header_(header) {}

  Refusal read() {
    if (bytes_.size() < 4 || bytes_[0] != 0xFF || bytes_[1] != 0xD8) return JpegFallback::header;
    std::size_t at = 2;
    for (;;) {
      if (at + 4 > bytes_.size() || bytes_[at] != 0xFF) return JpegFallback::header;
      const unsigned marker = bytes_[at + 1];
      if (marker == 0xFF) {  // padding
        ++at;
        continue;
      }
      // Only markers with a length are read here, so that its two bytes are one.
      const std::size_t length = word(bytes_, at + 2);
      if (length < 2 || length > bytes_.size() - at - 2) return JpegFallback::header;
      const Payload payload = bytes_.subspan(at + 4, length - 2);
      at += 2 + length;
      if (marker == kSos) {
        header_.scan = at;
        return start_scan(payload);
      }
      if (const Refusal refusal = segment(marker, payload)) return refusal;
    }
  }

 private:
  Refusal segment(unsigned marker, Payload payload) {
    switch (marker) {
      case kSof0:
      case kSof1:
        return frame(payload);
      case kSof2:
        return JpegFallback::progressive;
      case kSof9:
      case kSof10:
      case kDac:
        return JpegFallback::arithmetic;
      case kDht:
        return huffman_tables(payload);
      case kDqt:
        return quantization_tables(payload);
      case kDri:
        if (payload.size() != 2) return JpegFallback::header;
        header_.restart_interval = static_cast<int>(word(payload, 0));
        return std::nullopt;
      case kCom:
        return std::nullopt;
      default:
        break;
    }
    if (marker >= kApp0 && marker <= kApp15) {
      application(marker, payload);
      return std::nullopt;
    }
    if (marker > kSof2 && marker <= kSof15 && marker != kJpg) return JpegFallback::coding;
    return JpegFallback::header;
  }

  void application(unsigned marker, Payload payload) {
    if (marker == kApp0 && payload.size() >= 14 && starts_with(payload, {"JFIF\0", 5}))
      jfif_ = true;
    if (marker == kApp14 && payload.size() >= 12 && starts_with(payload, "Adobe")) {
      adobe_ = true;
      adobe_transform_ = payload[11];
    }
    if (marker == kApp1 && !oriented_) {
      if (const int orientation = exif_orientation(payload)) {
        header_.orientation = orientation;
        oriented_ = true;
      }
    }
  }

  Refusal frame(Payload payload) {
    if (framed_ || payload.size() < 6) return JpegFallback::header;
    framed_ = true;
    if (payload[0] != 8) return JpegFallback::precision;
    header_.height = static_cast<int>(word(payload, 1));
    header_.width = static_cast<int>(word(payload, 3));
    header_.components = payload[5];
    if (header_.width < 1 || header_.height < 1 || header_.width > kMaxDimension ||
        header_.height > kMaxDimension)
      return JpegFallback::header;
    if (header_.components != 1 && header_.components != 3) return JpegFallback::components;
    const auto components = static_cast<std::size_t>(header_.components);
    if (payload.size() != 6 + 3 * components) return JpegFallback::header;
    for (std::size_t c = 0; c < components; ++c) {
      header_.component[c].id = payload[6 + 3 * c];
      factors_[c] = payload[7 + 3 * c];
      header_.component[c].quant = payload[8 + 3 * c];
      const int h = factors_[c] >> 4;
      const int v = factors_[c] & 15;
      if (h < 1 || h > 4 || v < 1 || v > 4) return JpegFallback::header;
    }
    if (components == 1) {
      header_.rows_together = factors_[0] & 15;
      return std::nullopt;
    }
    constexpr std::array kLuma{0x11, 0x21, 0x12, 0x22, 0x41};
    if (std::ranges::find(kLuma, factors_[0]) == kLuma.end() || factors_[1] != 0x11 ||
        factors_[2] != 0x11)
      return JpegFallback::sampling;
    header_.h = factors_[0] >> 4;
    header_.v = factors_[0] & 15;
    return std::nullopt;
  }

  Refusal quantization_tables(Payload payload) {
    std::size_t at = 0;
    while (at < payload.size()) {
      const unsigned number = payload[at] & 15U;
      const std::size_t width = payload[at] < 16 ? 1 : 2;
      ++at;
      if (number > 3 || payload[at - 1] >= 32 || payload.size() - at < 64 * width)
        return JpegFallback::header;
      for (std::size_t k = 0; k < 64; ++k)
        header_.quant[number][k] =
            static_cast<std::uint16_t>(width == 1 ? payload[at + k] : word(payload, at + 2 * k));
      header_.quant_defined[number] = true;
      at += 64 * width;
    }
    return std::nullopt;
  }

  Refusal huffman_tables(Payload payload) {
    std::size_t at = 0;
    while (at < payload.size()) {
      if (payload.size() - at < 17) return JpegFallback::header;
      const unsigned number = payload[at] & 15U;
      const unsigned kind = payload[at] >> 4U;
      if (number > 3 || kind > 1) return JpegFallback::header;
      HuffmanSpec& spec = kind == 0 ? header_.dc[number] : header_.ac[number];
      std::size_t symbols = 0;
      for (std::size_t length = 1; length <= 16; ++length) {
        spec.counts[length] = payload[at + length];
        symbols += payload[at + length];
      }
      at += 17;
      if (symbols > 256 || payload.size() - at < symbols) return JpegFallback::header;
      const Payload list = payload.subspan(at, symbols);
      std::ranges::fill(std::ranges::copy(list, spec.symbols.begin()).out, spec.symbols.end(), 0);
      spec.defined = true;
      at += symbols;
    }
    return std::nullopt;
  }

  Refusal start_scan(Payload payload) {
    if (!framed_ || payload.empty()) return JpegFallback::header;
    const auto components = static_cast<std::size_t>(header_.components);
    const std::size_t scanned = payload[0];
    if (payload.size() != 4 + 2 * scanned) return JpegFallback::header;
    if (scanned < components) return JpegFallback::scans;
    if (scanned > components) return JpegFallback::header;
    for (std::size_t c = 0; c < components; ++c) {
      JpegComponent& component = header_.component[c];
      if (payload[1 + 2 * c] != component.id) return JpegFallback::header;
      component.dc = payload[2 + 2 * c] >> 4;
      component.ac = payload[2 + 2 * c] & 15;
      if (component.dc > 3 || component.ac > 3 || component.quant > 3) return JpegFallback::header;
      if (!header_.dc[component.dc].defined || !header_.ac[component.ac].defined ||
          !header_.quant_defined[component.quant])
        return JpegFallback::header;
    }
    const Payload selection = payload.last(3);
    if (selection[0] != 0 || selection[1] != 63 || selection[2] != 0) return JpegFallback::header;
    return choose_color();
  }

  Refusal choose_color() {
    if (header_.components == 1) return std::nullopt;
    bool rgb = false;
    if (!jfif_) {
      if (adobe_) {
        rgb = adobe_transform_ == 0;
      } else {
        rgb = header_.component[0].id == 'R' && header_.component[1].id == 'G' &&
              header_.component[2].id == 'B';
      }
    }
    header_.color = rgb ? JpegColor::rgb : JpegColor::ycc;
    if (rgb && header_.h * header_.v != 1) return JpegFallback::sampling;
    return std::nullopt;
  }

  Payload bytes_;
  JpegHeader& header_;
  std::array<int, 3> factors_{};
  bool framed_ = false;
  bool jfif_ = false;
  bool adobe_ = false;
  bool oriented_ = false;
  unsigned adobe_transform_ = 0;
};

}  // namespace

std::optional<JpegFallback> read_jpeg_header(std::span<const std::byte> bytes, JpegHeader& header) {
  header.rows_together = 1;
  header.h = header.v = 1;
  header.color = JpegColor::grey;
  header.restart_interval = 0;
  header.orientation = 1;
  header.quant_defined = {};
  for (auto* specs : {&header.dc, &header.ac})
    for (HuffmanSpec& spec : *specs) spec.defined = false;
  return HeaderReader({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()}, header)
      .read();
}

}  // namespace penstock::jpeg

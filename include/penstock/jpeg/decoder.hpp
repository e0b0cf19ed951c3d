// jpeg/decoder: the pixels of a JPEG, or of a part of it, in the caller's memory. Needs penstock::jpeg alone.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include <penstock/core/error.hpp>
#include <penstock/core/export.hpp>
#include <penstock/core/fields.hpp>
#include <penstock/core/tensor.hpp>

namespace PENSTOCK_EXPORT penstock {

/// Why a JPEG was decoded by libjpeg-turbo rather than by Penstock's own decoder.
enum class JpegFallback : std::uint8_t {
  chosen,  ///< as DecodeImageOptions::decoder says
  progressive,
  arithmetic,
  coding,      ///< lossless or hierarchical
  precision,   ///< not 8 bits
  components,  ///< neither one nor three: CMYK
  sampling,    ///< chroma stored in a way that no encoder of photographs uses
  scans,       ///< components in scans of their own; transcode_jpeg() makes one scan of them
  header,      ///< tables missing, unusual markers, or damage
  data,        ///< damaged data: most of these become faults
};
inline constexpr std::size_t kJpegFallbacks = 10;

/// "progressive", "several scans", ...
[[nodiscard]] std::string_view to_string(JpegFallback fallback) noexcept;

struct JpegCounts {
  std::uint64_t own = 0;        ///< by Penstock's own decoder
  std::uint64_t indexed = 0;    ///< of these, those decoded with an index
  std::uint64_t tolerated = 0;  ///< of all, those with a warning that was tolerated
  std::uint64_t on_gpu = 0;     ///< decoded on a GPU, beside these
  std::array<std::uint64_t, kJpegFallbacks> libjpeg{};  ///< by libjpeg-turbo, per JpegFallback

  friend bool operator==(const JpegCounts&, const JpegCounts&) = default;
};

/// Counts the JPEGs that a decode_image takes; give it one in DecodeImageOptions::stats.
///
/// Threads  any number
class JpegStats {
 public:
  void count_own(bool indexed) noexcept {
    own_.fetch_add(1, std::memory_order_relaxed);
    if (indexed) indexed_.fetch_add(1, std::memory_order_relaxed);
  }
  void count_tolerated() noexcept { tolerated_.fetch_add(1, std::memory_order_relaxed); }
  void count_on_gpu() noexcept { on_gpu_.fetch_add(1, std::memory_order_relaxed); }
  void count(JpegFallback fallback) noexcept {
    libjpeg_[static_cast<std::size_t>(fallback)].fetch_add(1, std::memory_order_relaxed);
  }
  [[nodiscard]] JpegCounts counts() const noexcept;

 private:
  std::atomic<std::uint64_t> own_{0};
  std::atomic<std::uint64_t> indexed_{0};
  std::atomic<std::uint64_t> tolerated_{0};
  std::atomic<std::uint64_t> on_gpu_{0};
  std::array<std::atomic<std::uint64_t>, kJpegFallbacks> libjpeg_{};
};

class JpegIndexStore;
class JpegStats;

namespace jpeg {

/// What a JPEG says about itself before its pixels.
struct Info {
  int width = 0;  ///< as stored, in pixels
  int height = 0;
  int orientation = 1;  ///< EXIF's, 1 to 8; 1 where the file has none
  int components = 3;   ///< 1 grey, 3 colour, 4 CMYK
  bool progressive = false;

  /// The size once it is turned as its orientation says.
  [[nodiscard]] ImageSize upright() const noexcept;
};

/// How subsampled chroma is upsampled to the size of the image.
enum class Chroma : std::uint8_t {
  repeated,  ///< every sample is repeated: faster
  smooth,    ///< neighbours are blended, as libjpeg does by default
};
}  // namespace jpeg
template <>
struct EnumNames<jpeg::Chroma> {
  static constexpr std::pair<jpeg::Chroma, const char*> kNames[] = {
      {jpeg::Chroma::repeated, "repeated"}, {jpeg::Chroma::smooth, "smooth"}};
};
namespace jpeg {

struct DecodeOptions {
  /// Which pixels, of the image at 1/scale of its size; all of them where it is left out.
  std::optional<PixelRect> region{};
  Chroma chroma = Chroma::repeated;
  int scale = 1;  ///< decode at 1/1, 1/2, 1/4 or 1/8 of the size, rounded up
};

struct DecoderOptions {
  /// When given: filled when an image is first decoded, so that later only the region's own data
  /// are decoded. The pixels do not depend on it.
  std::shared_ptr<JpegIndexStore> index{};
  std::shared_ptr<JpegStats> stats{};  ///< when given, counts which decoder took the images
};

/// Decodes one JPEG after another. Baseline images in one scan go through Penstock's own decoder,
/// which decodes little but the region; all others (progressive, CMYK and the like) through
/// libjpeg-turbo, as do those in which the own decoder finds an error. The pixels are, bit for
/// bit, those of libjpeg-turbo's accurate DCT of the whole image.
///
///   penstock::jpeg::Decoder decoder;
///   auto info = decoder.open(bytes);
///   if (!info) return info.fault();
///   std::vector<std::uint8_t> pixels(std::size_t(info->width) * info->height * 3);
///   auto decoded = decoder.decode({}, pixels, std::size_t(info->width) * 3);
///
/// Threads  one at a time per Decoder; as many of them as there are threads.
class Decoder {
 public:
  explicit Decoder(DecoderOptions options = {});
  Decoder(Decoder&&) noexcept;
  Decoder& operator=(Decoder&&) noexcept;
  ~Decoder();

  /// Reads the header. The image that was open before is closed.
  ///
  /// Owns    nothing: `bytes` must live until close() or the next open().
  /// Errors  Fault  no JPEG, or a header that libjpeg-turbo refuses
  [[nodiscard]] Result<Info> open(std::span<const std::byte> bytes);
  /// The pixels of the image that is open, as they are stored: not turned by the orientation. May
  /// be called again, for another region.
  ///
  /// Shapes  pixels: u8 [H,W,3] RGB, of the region, or of the whole image at 1/scale
  /// Units   `row_bytes` from the beginning of a row to that of the next: 3*W at least
  /// Errors  Fault                  truncated or corrupt data: whatever libjpeg-turbo has an error or
  ///                                a warning for, up to the region's last rows. `pixels` then
  ///                                holds anything
  ///         std::logic_error       no image is open
  ///         std::invalid_argument  a region outside the image, rows that do not fit, another scale
  [[nodiscard]] Result<void> decode(const DecodeOptions& options, std::span<std::uint8_t> pixels,
                                    std::size_t row_bytes);
  void close() noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace jpeg
}  // namespace penstock

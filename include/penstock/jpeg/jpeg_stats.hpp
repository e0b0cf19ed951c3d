// jpeg/jpeg_stats: which decoder took the JPEGs.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace penstock {

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
  std::uint64_t own = 0;                                ///< by Penstock's own decoder
  std::uint64_t indexed = 0;                            ///< of these, those decoded with an index
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
  void count(JpegFallback fallback) noexcept {
    libjpeg_[static_cast<std::size_t>(fallback)].fetch_add(1, std::memory_order_relaxed);
  }
  [[nodiscard]] JpegCounts counts() const noexcept;

 private:
  std::atomic<std::uint64_t> own_{0};
  std::atomic<std::uint64_t> indexed_{0};
  std::array<std::atomic<std::uint64_t>, kJpegFallbacks> libjpeg_{};
};

}  // namespace penstock

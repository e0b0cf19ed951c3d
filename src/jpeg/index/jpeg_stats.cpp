#include <penstock/jpeg/decoder.hpp>

namespace penstock {

std::string_view to_string(JpegFallback fallback) noexcept {
  switch (fallback) {
    case JpegFallback::chosen:
      return "chosen";
    case JpegFallback::progressive:
      return "progressive";
    case JpegFallback::arithmetic:
      return "arithmetic coding";
    case JpegFallback::coding:
      return "lossless or hierarchical";
    case JpegFallback::precision:
      return "not 8 bits";
    case JpegFallback::components:
      return "neither one nor three components";
    case JpegFallback::sampling:
      return "unusual sampling";
    case JpegFallback::scans:
      return "several scans";
    case JpegFallback::header:
      return "unusual or damaged header";
    case JpegFallback::data:
      return "damaged data";
  }
  return "unknown";
}

JpegCounts JpegStats::counts() const noexcept {
  JpegCounts counts{.own = own_.load(std::memory_order_relaxed),
                    .indexed = indexed_.load(std::memory_order_relaxed),
                    .tolerated = tolerated_.load(std::memory_order_relaxed),
                    .on_gpu = on_gpu_.load(std::memory_order_relaxed),
                    .libjpeg = {}};
  for (std::size_t i = 0; i < kJpegFallbacks; ++i)
    counts.libjpeg[i] = libjpeg_[i].load(std::memory_order_relaxed);
  return counts;
}

}  // namespace penstock

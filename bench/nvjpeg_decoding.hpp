// NVIDIA's nvJPEG, to measure beside ours: whole images, which it does not crop.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace penstock::bench {

enum class NvjpegBackend { gpu, hardware };

/// Decodes one batch again and again, into memory of its own.
class NvjpegDecoding {
 public:
  /// Null where this GPU or library has no such backend, or does not take one of the images.
  [[nodiscard]] static std::unique_ptr<NvjpegDecoding> make(
      NvjpegBackend backend, std::vector<std::span<const std::byte>> images);
  virtual ~NvjpegDecoding() = default;
  /// Queues it on the default stream.
  virtual void decode() = 0;
};

}  // namespace penstock::bench

// gpu_jpeg/batch_decoder: JPEGs from memory to a batch on a GPU, decoded there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <penstock/core/error.hpp>
#include <penstock/core/geometry.hpp>
#include <penstock/device/device.hpp>
#include <penstock/jpeg/decoder.hpp>
#include <penstock/jpeg/jpeg_index.hpp>
#include <penstock/transform/crop.hpp>

namespace penstock::gpu_jpeg {

/// One image of a batch.
struct BatchImage {
  std::span<const std::byte> bytes;
  Region box;           ///< of the image as it is stored, in its pixels; empty: all of it
  bool mirror = false;  ///< left to right
};

struct BatchDecoderOptions {
  Device device{.kind = Device::Kind::cuda};
  ImageSize size;  ///< of every image of a batch
  ResizeFilter filter = ResizeFilter::bilinear;
  jpeg::Chroma chroma = jpeg::Chroma::smooth;
  /// Says where decoding can begin: loaded from what penstock-prepare wrote, or filled as images are first seen, which the
  /// CPU decodes.
  std::shared_ptr<JpegIndexStore> index = std::make_shared<MemoryJpegIndex>();
};

/// What became of a batch's images.
struct BatchReport {
  std::size_t on_gpu = 0;
  std::size_t on_host = 0;                    ///< no index yet, progressive, and what else Penstock's own decoder does not take
  std::vector<std::optional<Fault>> faults;   ///< of each image; its row is zeros then
};

/// Decodes JPEGs on a GPU: the CPU finds the parts of each scan that its crop needs, and copies these; the rest is done by the GPU.
/// The pixels are, bit for bit, those of jpeg::Decoder with Penstock's resize, whoever decodes an image.
///
/// Threads  one at a time; each thread may have a decoder of its own.
/// Stream   the caller's: the batch is in `out` when what is queued there has run. The CPU waits for the batch before the last
///          one only, whose memory it uses again.
class BatchDecoder {
 public:
  /// Errors  std::invalid_argument  no cuda device, an empty size, a filter other than bilinear and bicubic
  ///         CudaError              no such device
  explicit BatchDecoder(BatchDecoderOptions options);
  BatchDecoder(BatchDecoder&&) noexcept;
  BatchDecoder& operator=(BatchDecoder&&) noexcept;
  /// Waits for what it has queued.
  ~BatchDecoder();

  /// Queues the decoding of a batch. The images' bytes are not needed afterwards.
  ///
  /// Shapes  out: u8 [images, H, W, 3] on the device, dense
  /// Errors  std::invalid_argument  a box that is not within its image
  ///         CudaError
  BatchReport decode(std::span<const BatchImage> images, std::byte* out, StreamHandle stream);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace penstock::gpu_jpeg

// gpu_jpeg/batch_decoder: JPEGs in memory become a batch of images on a GPU, decoded there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <penstock/core/error.hpp>
#include <penstock/core/export.hpp>
#include <penstock/core/tensor.hpp>
#include <penstock/device/device.hpp>
#include <penstock/jpeg/decoder.hpp>
#include <penstock/jpeg/jpeg_index.hpp>
#include <penstock/transform/crop.hpp>

namespace PENSTOCK_EXPORT penstock {
namespace gpu_jpeg {

/// One image of a batch.
struct BatchImage {
  std::span<const std::byte> bytes;
  std::optional<Region> box{};  ///< of the image as it is stored, in its pixels; none: all of it
  bool mirror = false;          ///< left to right
};

/// For BatchDecoder.
struct BatchDecoderOptions {
  Device device{.kind = Device::Kind::cuda};  ///< a CUDA device, which decodes and has the batches
  ImageSize size;                             ///< of every image of a batch
  ResizeFilter filter =
      ResizeFilter::bilinear;  ///< how the crop is resized; bilinear and bicubic only
  jpeg::Chroma chroma = jpeg::Chroma::smooth;  ///< how subsampled chroma is upsampled
  /// where decoding can begin: loaded from what penstock-prepare wrote, or filled as images are first seen, which the
  /// CPU decodes; by default an empty one
  std::shared_ptr<JpegIndexStore> index = std::make_shared<MemoryJpegIndex>();
  /// bytes of the GPU's memory for the pixels of the crops before they are resized: 8 to 13 bytes each. Twice that is taken
  /// at most, and for each image of a batch its packed data and up to 24 KiB of tables. Batches that need more go in parts; an
  /// image that needs more by itself is decoded by the CPU
  std::size_t scratch_bytes = std::size_t{1} << 30;
};

template <class Visitor>
void visit_fields(Visitor& visit, BatchDecoderOptions& options) {
  visit.required("size", options.size);
  visit("device", options.device);
  visit("filter", options.filter);
  visit("chroma", options.chroma);
  visit.object("index", options.index);
  visit("scratch_bytes", options.scratch_bytes);
}

/// What became of a batch's images.
struct BatchReport {
  std::size_t on_gpu = 0;  ///< images that the GPU decodes
  /// images that the CPU has decoded: not in the index yet; progressive, and what else Penstock's own decoder does not take;
  /// damaged; too large
  std::size_t on_host = 0;
  std::vector<std::optional<Fault>>
      faults;  ///< what is wrong with each image, or none; the pixels of a bad one are zeros
};

class GpuBatches;

/// Decodes JPEGs on a GPU. The CPU finds the parts of a scan that the crop needs, and copies them; the GPU does the rest: Huffman
/// codes, the inverse DCT, colours, the resize. The pixels are, bit for bit, those that the CPU makes (jpeg::Decoder and
/// Penstock's resize), so it does not matter which of them decodes an image.
///
///   penstock::gpu_jpeg::BatchDecoder decoder({.size = {224, 224}, .index = index});
///   const auto report = decoder.decode(images, pixels, stream);
///
/// Threads  one at a time; as many decoders as there are threads. Images that the CPU decodes go over oneTBB's threads.
/// Stream   the caller's: the batch is in `out` once what was queued there has run. The CPU waits for nothing but the memory
///          of the batch before the last one (of the last one, where the CPU decoded images of both).
class BatchDecoder {
 public:
  /// Errors  std::invalid_argument  no cuda device, an empty size, another filter than bilinear and bicubic
  ///         CudaError              no such device
  explicit BatchDecoder(BatchDecoderOptions options);
  BatchDecoder(BatchDecoder&&) noexcept;
  BatchDecoder& operator=(BatchDecoder&&) noexcept;
  /// Waits for what it has queued.
  ~BatchDecoder();

  [[nodiscard]] const BatchDecoderOptions& options() const noexcept;

  /// Queues the decoding of a batch. The images' bytes are not needed afterwards.
  ///
  /// Shapes  out: u8 [images, H, W, 3] on the device, dense
  /// Errors  std::invalid_argument  a box that is not within its image; nothing may be expected of `out` then
  ///         Error                  in an earlier batch, what the index says of an image was wrong
  ///         CudaError              the device is lost; a stream in a capture, or one of another device
  BatchReport decode(std::span<const BatchImage> images, std::byte* out, StreamHandle stream);
  /// Waits for all batches.
  ///
  /// Errors  Error, CudaError  as decode()
  void wait();

 private:
  std::unique_ptr<GpuBatches> batches_;
};

}  // namespace gpu_jpeg
}  // namespace penstock

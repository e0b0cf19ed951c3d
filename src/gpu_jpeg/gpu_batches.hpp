// gpu_jpeg/gpu_batches: what stands behind a BatchDecoder. In a build without CUDA it says so.
#pragma once

#include <memory>
#include <span>

#include <penstock/gpu_jpeg/batch_decoder.hpp>

namespace penstock::gpu_jpeg {

/// Calls are those of BatchDecoder.
class GpuBatches {
 public:
  virtual ~GpuBatches() = default;
  [[nodiscard]] virtual const BatchDecoderOptions& options() const noexcept = 0;
  virtual BatchReport decode(std::span<const BatchImage> images, std::byte* out,
                             StreamHandle stream) = 0;
  virtual void wait() = 0;
};

/// `options` are checked.
///
/// Errors  CudaError  no such device
[[nodiscard]] std::unique_ptr<GpuBatches> open_gpu_batches(BatchDecoderOptions options);

}  // namespace penstock::gpu_jpeg

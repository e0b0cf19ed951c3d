// Stands in for cuda_batches.cpp and cuda_jpeg.cu in a build without CUDA.
#include <penstock/core/error.hpp>

#include "src/gpu_jpeg/cuda_jpeg.hpp"
#include "src/gpu_jpeg/gpu_batches.hpp"

namespace penstock::gpu_jpeg {

namespace {
constexpr int kErrorNoDevice = 100;  // cudaErrorNoDevice
}

std::unique_ptr<GpuBatches> open_gpu_batches(BatchDecoderOptions options) {
  throw CudaError(kErrorNoDevice,
                  options.device.to_string() +
                      " cannot be used: penstock was built without CUDA; build it where nvcc is on "
                      "the PATH, or decode with jpeg::Decoder");
}

void enqueue_jpegs(const PlacedJpegs&, const PlacedJpeg*, const std::byte*, std::byte*, std::byte*,
                   StreamHandle, const std::function<void(const char*)>&) {
  throw CudaError(kErrorNoDevice, "penstock was built without CUDA");
}

}  // namespace penstock::gpu_jpeg

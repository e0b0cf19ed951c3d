// Stands in for batch_decoder.cpp and cuda_jpeg.cu in a build without CUDA.
#include <penstock/core/error.hpp>

#include "src/gpu_jpeg/batch_options.hpp"
#include "src/gpu_jpeg/cuda_jpeg.hpp"

namespace penstock::gpu_jpeg {

namespace {
constexpr int kErrorNoDevice = 100;  // cudaErrorNoDevice
}

void enqueue_jpegs(const PlacedJpegs&, const PlacedJpeg*, const std::byte*, std::byte*, std::byte*,
                   StreamHandle) {
  throw CudaError(kErrorNoDevice, "penstock was built without CUDA");
}

struct BatchDecoder::State {
  BatchDecoderOptions options;
};

BatchDecoder::BatchDecoder(BatchDecoderOptions options) {
  check_options(options);
  throw CudaError(kErrorNoDevice,
                  options.device.to_string() +
                      " cannot be used: penstock was built without CUDA; build it where nvcc is on "
                      "the PATH, or decode with jpeg::Decoder");
}
BatchDecoder::BatchDecoder(BatchDecoder&&) noexcept = default;
BatchDecoder& BatchDecoder::operator=(BatchDecoder&&) noexcept = default;
BatchDecoder::~BatchDecoder() = default;

const BatchDecoderOptions& BatchDecoder::options() const noexcept { return state_->options; }
BatchReport BatchDecoder::decode(std::span<const BatchImage>, std::byte*, StreamHandle) {
  return {};
}
void BatchDecoder::wait() {}

}  // namespace penstock::gpu_jpeg

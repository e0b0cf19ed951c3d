#include <cstdint>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include <penstock/gpu_jpeg/batch_decoder.hpp>

#include "src/gpu_jpeg/gpu_batches.hpp"

namespace penstock::gpu_jpeg {

namespace {

void check_options(const BatchDecoderOptions& options) {
  if (options.device.kind != Device::Kind::cuda)
    throw std::invalid_argument(fmt::format("a GPU decodes: name one, such as cuda:0, found {}",
                                            options.device.to_string()));
  if (options.size.height < 1 || options.size.width < 1)
    throw std::invalid_argument(fmt::format("images have at least one pixel, found a size of {}x{}",
                                            options.size.height, options.size.width));
  constexpr std::int64_t kMostPixels = std::int64_t{1} << 28;
  if (std::int64_t{options.size.height} * options.size.width > kMostPixels)
    throw std::invalid_argument(fmt::format("images have at most {} pixels, found a size of {}x{}",
                                            kMostPixels, options.size.height, options.size.width));
  if (options.filter != ResizeFilter::bilinear && options.filter != ResizeFilter::bicubic)
    throw std::invalid_argument("the filter is bilinear or bicubic");
  if (!options.index)
    throw std::invalid_argument("an index is needed: leave it out for an empty one");
}

}  // namespace

BatchDecoder::BatchDecoder(BatchDecoderOptions options) {
  check_options(options);
  batches_ = open_gpu_batches(std::move(options));
}
BatchDecoder::BatchDecoder(BatchDecoder&&) noexcept = default;
BatchDecoder& BatchDecoder::operator=(BatchDecoder&&) noexcept = default;
BatchDecoder::~BatchDecoder() = default;

const BatchDecoderOptions& BatchDecoder::options() const noexcept { return batches_->options(); }

BatchReport BatchDecoder::decode(std::span<const BatchImage> images, std::byte* out,
                                 StreamHandle stream) {
  return batches_->decode(images, out, stream);
}

void BatchDecoder::wait() { batches_->wait(); }

}  // namespace penstock::gpu_jpeg

#include "src/device/cuda_augmentation.hpp"

namespace penstock::device {

namespace {

constexpr std::size_t kAlignment = 256;

std::size_t aligned(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

PassMemory::PassMemory(const augment::ImageShape& shape, std::uint64_t images, bool mixes,
                       bool counts) noexcept
    : shape_(shape),
      images_(images),
      mixes_(mixes),
      image_bytes_(static_cast<std::size_t>(shape.height) * static_cast<std::size_t>(shape.width) *
                   static_cast<std::size_t>(shape.channels)),
      buffer_bytes_(aligned(images_ * image_bytes_)),
      counts_((mixes ? augment::kBuffersOfMixtures : augment::kBuffers) * buffer_bytes_),
      sums_(counts_ + (counts ? aligned(2 * images_ * sizeof(ImageCounts)) : 0)),
      bytes_(sums_ + (mixes ? buffer_bytes_ * sizeof(std::uint32_t) : 0)) {}

PassImages PassMemory::images(const std::byte* in, std::byte* scratch, const std::byte* programs,
                              int most_steps) const noexcept {
  return {.shape = shape_,
          .image_bytes = image_bytes_,
          .buffer_bytes = buffer_bytes_,
          .images = images_,
          .most_steps = most_steps,
          .programs = reinterpret_cast<const augment::Step*>(programs),
          .in = reinterpret_cast<const std::uint8_t*>(in),
          .buffers = reinterpret_cast<std::uint8_t*>(scratch),
          .counts = reinterpret_cast<ImageCounts*>(scratch + counts_),
          .sums = mixes_ ? reinterpret_cast<std::uint32_t*>(scratch + sums_) : nullptr};
}

}  // namespace penstock::device

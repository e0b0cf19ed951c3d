#include "src/device/aligned.hpp"
#include "src/device/cuda_augmentation.hpp"

namespace penstock::device {

PassMemory::PassMemory(const augment::ImageShape& shape, std::uint64_t images, bool mixes,
                       bool counts) noexcept
    : shape_(shape),
      images_(images),
      mixes_(mixes),
      buffer_bytes_(aligned(images_ * shape.bytes())),
      counts_((mixes ? augment::kBuffersOfMixtures : augment::kBuffers) * buffer_bytes_),
      sums_(counts_ + (counts ? aligned(2 * images_ * sizeof(ImageCounts)) : 0)),
      bytes_(sums_ + (mixes ? buffer_bytes_ * sizeof(std::uint32_t) : 0)) {}

PassImages PassMemory::images(const std::byte* in, std::byte* scratch, const std::byte* programs,
                              int most_steps) const noexcept {
  return {.shape = shape_,
          .image_bytes = shape_.bytes(),
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

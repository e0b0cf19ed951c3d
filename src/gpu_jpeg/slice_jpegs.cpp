#include "src/gpu_jpeg/slice_jpegs.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include <penstock/core/error.hpp>

#include "src/gpu_jpeg/cuda_jpeg.hpp"

namespace penstock::gpu_jpeg {

std::size_t slice_scratch(std::size_t images) noexcept {
  constexpr std::size_t kOfImage = std::size_t{500'000} * 10;
  constexpr std::size_t kMost = std::size_t{1} << 30;
  const std::size_t others = PlacedJpegs::scratch_for(0, images);
  return std::min(images * kOfImage, kMost - std::min(others, kMost / 2));
}

void SliceJpegs::add(std::span<std::byte> place, const std::byte* slice, std::uint64_t row) {
  const std::span packed = aligned_place(place);
  placed_.add(packed.data(), static_cast<std::uint64_t>(packed.data() - slice),
              static_cast<std::uint64_t>(place.data() - slice));
  rows_.push_back(row);
}

void SliceJpegs::finish(std::byte* slice, std::size_t offset) {
  placed_.finish();
  offset_ = offset;
  const auto images = std::as_bytes(placed_.images());
  if (!images.empty()) std::memcpy(slice + offset, images.data(), images.size());
}

void SliceJpegs::enqueue(std::byte* slice, std::byte* scratch, StreamHandle stream) const {
  enqueue_jpegs(placed_, reinterpret_cast<const PlacedJpeg*>(slice + offset_), slice, scratch,
                slice, stream);
}

void SliceJpegs::check(std::span<const std::uint32_t> flags) const {
  const auto failed = std::ranges::find_if(flags, [](std::uint32_t flag) { return flag != 0; });
  if (failed == flags.end()) return;
  throw Error(fmt::format(
      "the JPEG in row {} of {} could not be decoded on the GPU: what its index says of it "
      "is wrong, and the batch that had it is, too. Begin again with a new index; if you "
      "wrote none by yourself, this is a bug of Penstock",
      rows_[static_cast<std::size_t>(failed - flags.begin())], what_));
}

}  // namespace penstock::gpu_jpeg

// jpeg/pixels/rows: the pixels of a stored image, handed over a few rows at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <penstock/core/tensor.hpp>

namespace penstock::jpeg {

/// Every pixel here is four bytes: R, G, B and one that is not used.
inline constexpr std::size_t kPixelBytes = 4;

/// Readers may load this many bytes past the last pixel of any row; what is there does not matter.
inline constexpr std::size_t kRowSlack = 64;

/// Scratch above this is given back after each image.
inline constexpr std::size_t kScratchKept = std::size_t{4} << 20;

/// Rows of a rectangle of an image, top to bottom.
class RowSource {
 public:
  virtual ~RowSource() = default;

  /// Pointers to the rows [first, last) of the image, each to its pixel in the rectangle's first
  /// column; nullptr when they cannot be decoded. Rows before `first` are gone from then on.
  [[nodiscard]] virtual const std::uint8_t* const* rows(int first, int last) = 0;
};

/// An image that is in memory as a whole.
class MemoryRows final : public RowSource {
 public:
  /// `pixels` is the image's first pixel; rows are read from column `x`.
  MemoryRows(const std::uint8_t* pixels, std::size_t stride, int x) noexcept
      : pixels_(pixels + static_cast<std::size_t>(x) * kPixelBytes), stride_(stride) {}

  const std::uint8_t* const* rows(int first, int last) override {
    pointers_.clear();
    for (int y = first; y < last; ++y)
      pointers_.push_back(pixels_ + static_cast<std::size_t>(y) * stride_);
    return pointers_.data();
  }

 private:
  const std::uint8_t* pixels_;
  std::size_t stride_;
  std::vector<const std::uint8_t*> pointers_;
};

/// Empties a scratch vector, and gives its memory back where it is large.
template <class T>
void trim(std::vector<T>& scratch) {
  if (scratch.capacity() * sizeof(T) > kScratchKept) std::vector<T>().swap(scratch);
}

}  // namespace penstock::jpeg

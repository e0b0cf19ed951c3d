// core/shape: the extents of a tensor, and the description of one field of a sample.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include <penstock/core/dtype.hpp>

namespace penstock {

/// An extent that differs from sample to sample, such as the length of an encoded image.
inline constexpr std::int64_t kDynamic = -1;

/// Up to six extents, outermost first; a scalar has none. A value, without allocation.
class Shape {
 public:
  static constexpr std::size_t kMaxRank = 6;

  Shape() = default;
  /// Errors  std::invalid_argument  more than kMaxRank extents, or one below kDynamic
  Shape(std::initializer_list<std::int64_t> extents)
      : Shape(std::span(extents.begin(), extents.size())) {}
  explicit Shape(std::span<const std::int64_t> extents);

  [[nodiscard]] std::size_t rank() const noexcept { return rank_; }
  [[nodiscard]] std::int64_t operator[](std::size_t axis) const noexcept { return extents_[axis]; }
  [[nodiscard]] std::span<const std::int64_t> extents() const noexcept {
    return {extents_.data(), rank_};
  }
  /// The product of the extents, 1 for a scalar. Only for shapes that are not dynamic.
  [[nodiscard]] std::int64_t elements() const noexcept {
    std::int64_t product = 1;
    for (std::size_t i = 0; i < rank_; ++i) product *= extents_[i];
    return product;
  }
  [[nodiscard]] bool is_dynamic() const noexcept;
  /// The same shape with one more extent in front: [n] + shape.
  [[nodiscard]] Shape with_rows(std::int64_t rows) const;
  /// "[224,224,3]"; a dynamic extent prints as "?".
  [[nodiscard]] std::string to_string() const;

  friend bool operator==(const Shape& a, const Shape& b) noexcept {
    if (a.rank_ != b.rank_) return false;
    for (std::size_t i = 0; i < a.rank_; ++i)
      if (a.extents_[i] != b.extents_[i]) return false;
    return true;
  }

 private:
  std::array<std::int64_t, kMaxRank> extents_{};
  std::uint8_t rank_ = 0;
};

/// One named field of a sample: what a source yields, or what a transform makes of it.
struct FieldSpec {
  std::string name;
  DType dtype = DType::u8;
  Shape shape;  ///< of one sample, without the batch axis

  /// Bytes of one sample's field. Only for shapes that are not dynamic.
  [[nodiscard]] std::size_t bytes() const noexcept {
    return static_cast<std::size_t>(shape.elements()) * size_of(dtype);
  }
  /// "image u8 [224,224,3]".
  [[nodiscard]] std::string to_string() const;

  friend bool operator==(const FieldSpec&, const FieldSpec&) = default;
};

}  // namespace penstock

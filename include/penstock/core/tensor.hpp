// core/tensor: intervals of numbers, sizes and parts of images; element types, shapes, and views of dense tensors.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <penstock/core/export.hpp>
#include <penstock/core/fields.hpp>

namespace PENSTOCK_EXPORT penstock {

// ---- an interval of numbers ----

/// Both ends included.
struct Range {
  double low = 0;
  double high = 0;

  friend bool operator==(const Range&, const Range&) = default;
};

template <class Visitor>
void visit_elements(Visitor& visit, Range& range) {
  visit("low", range.low);
  visit("high", range.high);
}

// ---- sizes and parts of images ----

/// Height and width of an image, in pixels; one number means a square.
struct ImageSize {
  int height = 0;
  int width = 0;

  constexpr ImageSize() = default;
  constexpr ImageSize(int side)  // NOLINT(google-explicit-constructor)
      : height(side), width(side) {}
  constexpr ImageSize(int height_px, int width_px) : height(height_px), width(width_px) {}

  friend bool operator==(const ImageSize&, const ImageSize&) = default;
};

template <class Visitor>
void visit_elements(Visitor& visit, ImageSize& size) {
  visit("height", size.height);
  visit("width", size.width);
}

/// A rectangle of an upright image, origin at its upper left corner.
///
/// Units  source pixels; may be fractions of them
struct Region {
  double x = 0;
  double y = 0;
  double width = 0;
  double height = 0;

  friend bool operator==(const Region&, const Region&) = default;
};

/// Where a part lies in a larger image.
enum class CropPosition : unsigned char {
  center,
  random,  ///< all whole pixels equally likely
};
template <>
struct EnumNames<CropPosition> {
  static constexpr std::pair<CropPosition, const char*> kNames[] = {
      {CropPosition::center, "center"}, {CropPosition::random, "random"}};
};

/// A rectangle of whole pixels of an image as it is stored, origin at its upper left corner.
struct PixelRect {
  int x = 0;
  int y = 0;
  int width = 0;
  int height = 0;

  friend bool operator==(const PixelRect&, const PixelRect&) = default;
};

// ---- element types, shapes, and views of dense tensors ----

/// Element types. f16 and bf16 are storage only: the host does no arithmetic on them.
enum class DType : std::uint8_t {
  u8,
  i8,
  i16,
  u16,
  i32,
  u32,
  i64,
  u64,
  f16,
  bf16,
  f32,
  f64,
  boolean,  ///< one byte, 0 or 1; "bool" by name
};
/// All of them, by their numbers.
inline constexpr std::array kDTypes{DType::u8,  DType::i8,  DType::i16,    DType::u16, DType::i32,
                                    DType::u32, DType::i64, DType::u64,    DType::f16, DType::bf16,
                                    DType::f32, DType::f64, DType::boolean};

/// Bytes of one element.
[[nodiscard]] constexpr std::size_t size_of(DType dtype) noexcept {
  switch (dtype) {
    case DType::u8:
    case DType::i8:
    case DType::boolean:
      return 1;
    case DType::i16:
    case DType::u16:
    case DType::f16:
    case DType::bf16:
      return 2;
    case DType::i32:
    case DType::u32:
    case DType::f32:
      return 4;
    case DType::i64:
    case DType::u64:
    case DType::f64:
      return 8;
  }
  return 0;
}

/// "u8", "f32", "bool" and so on.
[[nodiscard]] constexpr std::string_view name_of(DType dtype) noexcept {
  switch (dtype) {
    case DType::u8:
      return "u8";
    case DType::i8:
      return "i8";
    case DType::i16:
      return "i16";
    case DType::u16:
      return "u16";
    case DType::i32:
      return "i32";
    case DType::u32:
      return "u32";
    case DType::i64:
      return "i64";
    case DType::u64:
      return "u64";
    case DType::f16:
      return "f16";
    case DType::bf16:
      return "bf16";
    case DType::f32:
      return "f32";
    case DType::f64:
      return "f64";
    case DType::boolean:
      return "bool";
  }
  return "?";
}

/// The DType of a C++ arithmetic type.
template <class T>
[[nodiscard]] constexpr DType dtype_of() noexcept {
  using U = std::remove_cv_t<T>;
  if constexpr (std::is_same_v<U, float>) {
    return DType::f32;
  } else if constexpr (std::is_same_v<U, double>) {
    return DType::f64;
  } else if constexpr (std::is_same_v<U, bool>) {
    return DType::boolean;
  } else {
    static_assert(std::is_integral_v<U>, "no DType for this C++ type");
    constexpr bool kSigned = std::is_signed_v<U>;
    if constexpr (sizeof(U) == 1) return kSigned ? DType::i8 : DType::u8;
    if constexpr (sizeof(U) == 2) return kSigned ? DType::i16 : DType::u16;
    if constexpr (sizeof(U) == 4) return kSigned ? DType::i32 : DType::u32;
    if constexpr (sizeof(U) == 8) return kSigned ? DType::i64 : DType::u64;
  }
}

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

template <class Visitor>
void visit_fields(Visitor& visit, FieldSpec& field) {
  visit.required("name", field.name);
  visit.required("dtype", field.dtype);
  visit.required("shape", field.shape);
}

namespace core {
[[noreturn]] void throw_wrong_dtype(DType held, std::string_view asked);
}

/// A pointer with an element type and a shape; `Byte` is std::byte or const std::byte.
///
/// Owns  nothing. What it points to may be host or device memory; the function that returns the
/// view says which.
template <class Byte>
class BasicTensorView {
 public:
  template <class T>
  using Element = std::conditional_t<std::is_const_v<Byte>, const T, T>;

  BasicTensorView() = default;
  BasicTensorView(Byte* data, DType dtype, const Shape& shape)
      : data_(data), shape_(shape), dtype_(dtype) {}
  /// A mutable view is a read-only one.
  template <class Other>
  requires(std::is_const_v<Byte> && !std::is_const_v<Other>)
      BasicTensorView(const BasicTensorView<Other>& other)  // NOLINT(google-explicit-constructor)
      : data_(other.bytes().data()), shape_(other.shape()), dtype_(other.dtype()) {}

  [[nodiscard]] DType dtype() const noexcept { return dtype_; }
  [[nodiscard]] const Shape& shape() const noexcept { return shape_; }
  [[nodiscard]] Byte* raw() const noexcept { return data_; }
  [[nodiscard]] std::size_t byte_size() const noexcept {
    return static_cast<std::size_t>(shape_.elements()) * size_of(dtype_);
  }
  [[nodiscard]] std::span<Byte> bytes() const noexcept { return {data_, byte_size()}; }

  /// Points the same type and shape at other memory.
  void rebase(Byte* data) noexcept { data_ = data; }

  /// The elements as a typed pointer.
  ///
  /// Errors  std::invalid_argument  T is not the element type of this tensor
  template <class T>
  [[nodiscard]] Element<T>* data() const {
    if (dtype_of<T>() != dtype_) core::throw_wrong_dtype(dtype_, name_of(dtype_of<T>()));
    return reinterpret_cast<Element<T>*>(data_);
  }

 private:
  Byte* data_ = nullptr;
  Shape shape_;
  DType dtype_ = DType::u8;
};

using TensorView = BasicTensorView<std::byte>;
using ConstTensorView = BasicTensorView<const std::byte>;

}  // namespace penstock

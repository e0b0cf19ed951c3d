// core/tensor_view: typed, shaped bytes, not owned. Rows lie dense, in C order.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

#include <penstock/core/dtype.hpp>
#include <penstock/core/shape.hpp>

namespace penstock {

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

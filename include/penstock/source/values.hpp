// source/values: vectors and numbers of a producer as the fields of a record.
#pragma once

#include <cstddef>
#include <span>
#include <type_traits>

#include <penstock/core/tensor_view.hpp>

namespace penstock::source {

/// `shape` with its dynamic extent, if it has one, made to hold `elements`.
///
/// Errors  std::invalid_argument  they do not fit, or more than one extent is dynamic
[[nodiscard]] Shape fit_shape(std::size_t elements, const Shape& shape);

/// A view of a vector, an array or a span; a dynamic extent in `shape` is worked out.
///
///   values(std::vector<float>(12), {kDynamic, 4})  ==  f32 [3,4]
///
/// Owns    nothing: `range` must live as long as the view is used.
/// Errors  std::invalid_argument  the values do not make up the shape
template <class Range>
requires(!std::is_arithmetic_v<Range>)  //
    [[nodiscard]] ConstTensorView values(const Range& range, const Shape& shape = {kDynamic}) {
  const std::span span(range);
  return {std::as_bytes(span).data(), dtype_of<typename decltype(span)::element_type>(),
          fit_shape(span.size(), shape)};
}

/// A view of one number, of shape [].
///
/// Owns    nothing: `number` must live as long as the view is used.
template <class T>
requires std::is_arithmetic_v<T>
[[nodiscard]] ConstTensorView value(const T& number) {
  return {std::as_bytes(std::span(&number, 1)).data(), dtype_of<T>(), {}};
}

}  // namespace penstock::source

// transform/masks: fields that are cropped with an image, and of which no two values may be mixed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <penstock/core/error.hpp>
#include <penstock/core/tensor.hpp>
#include <penstock/transform/crop.hpp>
#include <penstock/transform/transform.hpp>

#include "src/transform/window.hpp"

namespace penstock::transform {

/// Errors  Fault  a mask of this size is not one of the window's image
[[nodiscard]] Result<void> check_mask_size(std::int64_t height, std::int64_t width,
                                           const Window& window);
/// What the window shows of a mask of bytes, as Pillow's NEAREST; what is beside it is 0.
void crop_mask_of_bytes(const std::uint8_t* in, const Window& window, std::uint8_t* out);

/// The masks of a transform: options, how they are bound, and what is done to them.
///
/// Threads  const; scratch memory is the thread's own
class Masks {
 public:
  Masks() = default;
  /// `dtype` is that of masks that are decoded here. `taken` are the names of other fields that are put out.
  ///
  /// Errors  std::invalid_argument  as check_names; a crop of several parts; a type that is no integer
  Masks(std::string caller, std::vector<std::string> fields, int fill, DType dtype,
        const Crop& crop, std::span<const std::string> taken);

  /// Appends an input and an output for each mask.
  ///
  /// Errors  std::invalid_argument  no such field, one that is no mask, or whose type has no such
  ///                                number as `fill`
  void bind(std::span<const FieldSpec> fields, ImageSize sample, Binding& binding) const;

  /// Writes what the window shows of each mask, as Pillow's NEAREST. `in` and `out` are those that bind() appended.
  ///
  /// Errors  Fault  a mask that cannot be decoded, or of another size than the image
  [[nodiscard]] Result<void> crop(std::span<const ConstTensorView> in,
                                  std::span<const TensorView> out, const Window& window) const;

  [[nodiscard]] bool empty() const noexcept { return fields_.empty(); }
  [[nodiscard]] std::span<const std::string> names() const noexcept { return fields_; }

 private:
  std::string caller_;
  std::vector<std::string> fields_;
  int fill_ = 0;
  DType dtype_ = DType::u8;
};

}  // namespace penstock::transform

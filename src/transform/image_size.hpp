// transform/image_size: an encoded image's size, from its header.
#pragma once

#include <cstddef>
#include <span>

#include <penstock/core/error.hpp>
#include <penstock/core/tensor.hpp>

namespace penstock::transform {

/// Of the upright image as decode_image shows it: `exif` turns images as their orientation says. The first bytes suffice
/// where they hold the header, and in WebPs with EXIF data, which stand at the end, all of it.
///
/// Errors  Fault  no header of an image that can be decoded in these bytes, or one without pixels
[[nodiscard]] Result<ImageSize> upright_size(std::span<const std::byte> bytes, bool exif);

}  // namespace penstock::transform

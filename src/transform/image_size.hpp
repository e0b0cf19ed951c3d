// transform/image_size: an encoded image's size, from its header.
#pragma once

#include <cstddef>
#include <span>

#include <penstock/core/error.hpp>
#include <penstock/core/tensor.hpp>

namespace penstock::transform {

/// Of the upright image as decode_image shows it: `exif` turns JPEGs as their orientation says. The first bytes suffice
/// where they hold the header.
///
/// Errors  Fault  no header of a JPEG, PNG or still WebP in these bytes, or one without pixels
[[nodiscard]] Result<ImageSize> upright_size(std::span<const std::byte> bytes, bool exif);

}  // namespace penstock::transform

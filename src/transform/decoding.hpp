// transform/decoding: the transform behind decode_image and decode_views.
#pragma once

#include <string_view>

#include <penstock/core/description.hpp>
#include <penstock/transform/decode_image.hpp>

#include "src/transform/moved_fields.hpp"

namespace penstock::transform {

/// Decodes an image once, into all views. `description` says how it was asked for. Other fields are moved with the first view.
///
/// Errors  std::invalid_argument  as decode_views, but for what concerns the views; begins with the
///                                description's name
[[nodiscard]] TransformPtr make_decoding(DecodeViewsOptions options, Description description,
                                         MovedFields moved = {});

}  // namespace penstock::transform

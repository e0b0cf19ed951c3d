// transform/decoding: the transform behind decode_image and decode_views.
#pragma once

#include <string_view>

#include <penstock/core/description.hpp>
#include <penstock/transform/decode_views.hpp>

namespace penstock::transform {

/// Decodes an image once, into all views. `description` says how it was asked for.
///
/// Errors  std::invalid_argument  as decode_views, but for what concerns the views; begins with the
///                                description's name
[[nodiscard]] TransformPtr make_decoding(DecodeViewsOptions options, Description description);

}  // namespace penstock::transform

#include <array>
#include <utility>

#include <penstock/transform/decode_image.hpp>

#include "src/transform/catalog.hpp"
#include "src/transform/decoding.hpp"
#include "src/transform/view.hpp"

namespace penstock {

TransformPtr decode_image(DecodeImageOptions options) {
  ImageView view{.field = options.field,
                 .crop = options.crop,
                 .flip = options.flip,
                 .filter = options.filter,
                 .geometry = options.geometry};
  transform::check_view(DecodeImageOptions::kName, view);
  Description description = transform::describe(options);
  transform::Masks masks(DecodeImageOptions::kName, std::move(options.masks), options.mask_fill,
                         options.mask_dtype, options.crop,
                         std::array{options.field, options.geometry});
  return transform::make_decoding({.field = std::move(options.field),
                                   .views = {std::move(view)},
                                   .max_megapixels = options.max_megapixels,
                                   .exif = options.exif,
                                   .channels = options.channels,
                                   .dtype = options.dtype,
                                   .tolerant = options.tolerant,
                                   .background = options.background,
                                   .decoder = options.decoder,
                                   .scaled = options.scaled,
                                   .index = std::move(options.index),
                                   .stats = std::move(options.stats)},
                                  std::move(description), std::move(masks));
}

}  // namespace penstock

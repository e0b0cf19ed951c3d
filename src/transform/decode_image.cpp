#include <array>
#include <string>
#include <utility>
#include <vector>

#include <penstock/transform/decode_image.hpp>

#include "src/transform/catalog.hpp"
#include "src/transform/decoding.hpp"
#include "src/transform/moved_fields.hpp"
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
  std::vector<std::string> taken = options.masks;
  taken.insert(taken.end(), {options.field, options.geometry});
  transform::MovedInstances instances(DecodeImageOptions::kName, std::move(options.instances),
                                      options.crop, taken);
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
                                  std::move(description), {std::move(masks), std::move(instances)});
}

}  // namespace penstock

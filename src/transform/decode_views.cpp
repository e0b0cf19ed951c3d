#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <penstock/transform/decode_image.hpp>

#include "src/transform/catalog.hpp"
#include "src/transform/crops.hpp"
#include "src/transform/decoding.hpp"
#include "src/transform/view.hpp"

namespace penstock {

namespace {

constexpr int kMostCrops = 1024;
constexpr std::size_t kMostViews = 256;  // with 256 crops each, they number all random sequences

}  // namespace

TransformPtr decode_views(DecodeViewsOptions options) {
  const auto refuse = [](const std::string& what) {
    throw std::invalid_argument(fmt::format("{}: {}", DecodeViewsOptions::kName, what));
  };
  if (options.views.empty() || options.views.size() > kMostViews)
    refuse(fmt::format("give 1 to {} views, found {}", kMostViews, options.views.size()));
  std::vector<std::string> names;
  int crops = 0;
  for (const ImageView& view : options.views) {
    crops += std::max(transform::crops_of(view), 1);
    if (crops > kMostCrops)
      refuse(fmt::format("there are at most {} crops of one image", kMostCrops));
    if (view.field.empty()) refuse("name the field of each view");
    transform::check_view(fmt::format("{}: '{}'", DecodeViewsOptions::kName, view.field), view);
    if (transform::needs_boxes(view.crop))
      refuse(fmt::format("{} is chosen by boxes, which decode_image takes in its option instances",
                         view.crop.to_string()));
    if (transform::images_of(view.crop) != 1)
      refuse(fmt::format("{} is made of several images, which decode_image takes",
                         view.crop.to_string()));
    for (const std::string& name : {view.field, view.geometry}) {
      if (name.empty()) continue;
      if (std::ranges::count(names, name) > 0)
        refuse(fmt::format("two fields are named '{}': choose another name", name));
      names.push_back(name);
    }
  }
  Description description = transform::describe(options);
  return transform::make_decoding(std::move(options), std::move(description));
}

}  // namespace penstock

#include "src/plan/by_aspect.hpp"

#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "src/sequence/by_aspect.hpp"

namespace penstock::plan {

ByAspect make_by_aspect(const std::function<TransformPtr(ImageSize)>& map,
                        ByAspectOptions options) {
  if (!map)
    throw std::invalid_argument(
        "batch_by_aspect needs a function from shape to transform, found none");
  sequence::check(options);
  ByAspect given;
  given.sizes = std::make_shared<const std::vector<ImageSize>>(std::exchange(options.sizes, {}));
  for (const ImageSize shape : options.shapes) {
    given.maps.push_back(map(shape));
    if (!given.maps.back())
      throw std::invalid_argument(fmt::format("batch_by_aspect: the map of {}x{} is a null pointer",
                                              shape.height, shape.width));
  }
  given.options = std::move(options);
  return given;
}

void check_options(std::span<const FieldSpec>, const ByAspect& given) {
  sequence::check(given.options);
  if (given.maps.size() != given.options.shapes.size())
    throw std::invalid_argument(
        fmt::format("batch_by_aspect: there is a map for each of the {} shapes, found {}",
                    given.options.shapes.size(), given.maps.size()));
}

sequence::Sorted sort(const Source& source, const order::Order& order, const ByAspect& given,
                      bool drops_last) {
  return sequence::sort_by_aspect(source, order, given.options, *given.sizes, drops_last);
}

}  // namespace penstock::plan

#include <array>
#include <stdexcept>

#include <fmt/format.h>

#include <penstock/source/source.hpp>

namespace penstock {

Shape source::fit_shape(std::size_t elements, const Shape& shape) {
  std::array<std::int64_t, Shape::kMaxRank> extents{};
  std::size_t known = 1;
  std::size_t dynamic = shape.rank();
  bool fits = true;
  for (std::size_t axis = 0; axis < shape.rank(); ++axis) {
    extents[axis] = shape[axis];
    if (shape[axis] != kDynamic) {
      known *= static_cast<std::size_t>(shape[axis]);
    } else {
      fits = fits && dynamic == shape.rank();
      dynamic = axis;
    }
  }
  if (dynamic == shape.rank()) {
    fits = fits && known == elements;
  } else if (fits) {
    fits = known != 0 && elements % known == 0;
    if (fits) extents[dynamic] = static_cast<std::int64_t>(elements / known);
  }
  if (!fits)
    throw std::invalid_argument(
        fmt::format("{} values do not make up the shape {}: expected a multiple of {}, and at most "
                    "one extent left open; check the values, or give the whole shape",
                    elements, shape.to_string(), known));
  return Shape(std::span(extents).first(shape.rank()));
}

}  // namespace penstock

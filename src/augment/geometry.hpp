// augment/geometry: operations that take each pixel from elsewhere.
#pragma once

#include <cstdint>

#include "src/augment/run.hpp"
#include "src/augment/step.hpp"

namespace penstock::augment {

/// Affine, perspective, flip or vertical_flip. `out` is another image.
void move_pixels(const Step& step, const std::uint8_t* in, const ImageShape& shape,
                 std::uint8_t* out);

}  // namespace penstock::augment

// augment/neighbours: operations that make a pixel of those around it.
#pragma once

#include <cstdint>

#include "src/augment/run.hpp"
#include "src/augment/step.hpp"

namespace penstock::augment {

/// `out` is another image. The outermost pixels stay as they are.
void sharpen(const Step& step, const std::uint8_t* in, const ImageShape& shape, std::uint8_t* out);
/// Beyond its edges an image is mirrored about its outermost pixels.
void blur(const Step& step, const std::uint8_t* in, const ImageShape& shape, std::uint8_t* out);

}  // namespace penstock::augment

// augment/run: does to an image what a program says.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/augment/step.hpp"

namespace penstock::augment {

/// Height, width and levels per pixel (1 or 3) of an image, which lies line by line without gaps.
struct ImageShape {
  int height = 0;
  int width = 0;
  int channels = 0;

  [[nodiscard]] std::size_t pixels() const noexcept {
    return static_cast<std::size_t>(height) * static_cast<std::size_t>(width);
  }
  [[nodiscard]] std::size_t bytes() const noexcept {
    return pixels() * static_cast<std::size_t>(channels);
  }
};

/// Makes `out` of `in`, which may be the same. Tables that follow each other become one; what is counted in an image takes
/// one more pass over it. The same bytes on every CPU.
///
/// Threads  any number; scratch memory is the thread's own: at most eight times the largest image so far
void run(ProgramView program, const std::uint8_t* in, const ImageShape& shape, std::uint8_t* out);

}  // namespace penstock::augment

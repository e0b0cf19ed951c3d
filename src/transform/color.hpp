// transform/color: the levels of a colour, and transparent pixels over one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <penstock/transform/crop.hpp>

namespace penstock::transform {

/// Errors  std::invalid_argument  a level outside [0,255]; begins with `what`
void check_color(std::string_view what, Color color);

/// Red, green and blue of a colour that has been checked.
[[nodiscard]] std::array<std::uint8_t, 3> levels_of(Color color) noexcept;

/// Composites `count` pixels, of R, G, B and alpha, over a background. The alpha stays.
///
/// Source  Pillow's alpha_composite over an opaque background: rounded to the nearest level.
void composite(std::uint8_t* rgba, std::size_t count, Color background) noexcept;

}  // namespace penstock::transform

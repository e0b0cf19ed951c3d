#include "src/transform/color.hpp"

#include <stdexcept>

#include <fmt/format.h>

#include "src/jpeg/pixels/rows.hpp"

namespace penstock::transform {

void check_color(std::string_view what, Color color) {
  for (const int level : {color.red, color.green, color.blue})
    if (level < 0 || level > 255)
      throw std::invalid_argument(fmt::format("{}: a level is 0 to 255, found {}", what, level));
}

std::array<std::uint8_t, 3> levels_of(Color color) noexcept {
  return {static_cast<std::uint8_t>(color.red), static_cast<std::uint8_t>(color.green),
          static_cast<std::uint8_t>(color.blue)};
}

void composite(std::uint8_t* rgba, std::size_t count, Color background) noexcept {
  const std::array<std::uint8_t, 3> behind = levels_of(background);
  for (std::uint8_t* pixel = rgba; count-- > 0; pixel += jpeg::kPixelBytes) {
    const std::uint32_t alpha = pixel[3];
    for (std::size_t c = 0; c < behind.size(); ++c) {
      // Divided by 255, and rounded.
      const std::uint32_t sum = pixel[c] * alpha + behind[c] * (255 - alpha) + 128;
      pixel[c] = static_cast<std::uint8_t>((sum + (sum >> 8)) >> 8);
    }
  }
}

}  // namespace penstock::transform

#include "src/augment/neighbours.hpp"

#include <array>
#include <cstddef>
#include <cstring>
#include <vector>

#include "src/augment/kernels.hpp"
#include "src/augment/numbers.hpp"

namespace penstock::augment {

void sharpen(const Step& step, const std::uint8_t* in, const ImageShape& shape, std::uint8_t* out) {
  const auto channels = static_cast<std::size_t>(shape.channels);
  const std::size_t line = static_cast<std::size_t>(shape.width) * channels;
  const auto height = static_cast<std::size_t>(shape.height);
  if (shape.height <= 2 || shape.width <= 2) {
    std::memcpy(out, in, height * line);
    return;
  }
  const auto factor = static_cast<std::int32_t>(step.values[0]);
  std::memcpy(out, in, line);
  for (std::size_t y = 1; y + 1 < height; ++y) {
    const std::uint8_t* const from = in + y * line;
    std::uint8_t* const to = out + y * line;
    std::memcpy(to, from, channels);
    sharpen_line(from - line, from, from + line, channels, line - channels, channels, factor, to);
    std::memcpy(to + line - channels, from + line - channels, channels);
  }
  std::memcpy(out + (height - 1) * line, in + (height - 1) * line, line);
}

void blur(const Step& step, const std::uint8_t* in, const ImageShape& shape, std::uint8_t* out) {
  thread_local std::vector<std::int16_t> padded;  // a line between the two directions
  const auto channels = static_cast<std::size_t>(shape.channels);
  const std::size_t line = static_cast<std::size_t>(shape.width) * channels;
  const int reach = step.count - 1;
  const std::size_t margin = static_cast<std::size_t>(reach) * channels;
  if (padded.size() < line + 2 * margin) padded.resize(line + 2 * margin);
  std::int16_t* const between = padded.data() + margin;
  std::array<const std::uint8_t*, kWidestBlur> lines{};
  for (int y = 0; y < shape.height; ++y) {
    for (int k = -reach; k <= reach; ++k)
      lines[static_cast<std::size_t>(k + reach)] =
          in + static_cast<std::size_t>(mirrored(y + k, shape.height)) * line;
    blur_columns(lines.data(), step.weights, step.count, line, between);
    for (int x = 1; x <= reach; ++x) {
      const auto beyond = [&](int place) {
        return between + static_cast<std::ptrdiff_t>(place) * shape.channels;
      };
      const std::size_t bytes = channels * sizeof(std::int16_t);
      std::memcpy(beyond(-x), beyond(mirrored(-x, shape.width)), bytes);
      std::memcpy(beyond(shape.width - 1 + x), beyond(mirrored(shape.width - 1 + x, shape.width)),
                  bytes);
    }
    blur_rows(between, step.weights, step.count, line, channels,
              out + static_cast<std::size_t>(y) * line);
  }
}

}  // namespace penstock::augment

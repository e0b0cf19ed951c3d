// augment/kernels: the loops over pixels, for the CPU that runs them. Each gives the numbers of augment/numbers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "src/augment/step.hpp"

namespace penstock::augment {

/// What each level becomes.
using Table = std::array<std::uint8_t, 256>;

/// Each byte of `in` through the table. `out` is `in` or does not overlap it; likewise below.
void apply_table(const Table& table, const std::uint8_t* in, std::size_t bytes, std::uint8_t* out);
/// Each channel of RGB pixels through a table of its own.
void apply_tables(const Table (&tables)[3], const std::uint8_t* in, std::size_t pixels,
                  std::uint8_t* out);

/// Saturation, hue, hsv or grayscale of RGB pixels.
void apply_to_pixels(const Step& step, const std::uint8_t* in, std::size_t pixels,
                     std::uint8_t* out);
/// The sum of the luma of RGB pixels.
[[nodiscard]] std::uint64_t luma_sum(const std::uint8_t* pixels, std::size_t count);

struct Extremes {
  std::uint8_t least[3] = {255, 255, 255};
  std::uint8_t most[3] = {0, 0, 0};
};
/// Of each channel of RGB pixels.
[[nodiscard]] Extremes extremes_of(const std::uint8_t* pixels, std::size_t count);

/// A line of RGB pixels, the last one first. `out` does not overlap `in`.
void reverse_line(const std::uint8_t* in, std::size_t pixels, std::uint8_t* out);

/// The bytes from `begin` to `end` of a line, sharpened: those before and behind it, and those of the lines above and
/// below, are read. `channels` bytes lie between neighbours. `out` is another image's line.
void sharpen_line(const std::uint8_t* above, const std::uint8_t* line, const std::uint8_t* below,
                  std::size_t begin, std::size_t end, std::size_t channels, std::int32_t factor,
                  std::uint8_t* out);

/// The first direction of a blur: the weighted sums of lines, 2 * count - 1 of them from above to below.
void blur_columns(const std::uint8_t* const* lines, const std::int16_t* weights, int count,
                  std::size_t bytes, std::int16_t* between);
/// The second: `between` points at the first number of a line, before and behind which there are (count - 1) pixels more.
void blur_rows(const std::int16_t* between, const std::int16_t* weights, int count,
               std::size_t bytes, std::size_t channels, std::uint8_t* out);

/// sums += weight * levels
void add_weighted(const std::uint8_t* levels, std::size_t bytes, std::uint32_t weight,
                  std::uint32_t* sums);
/// mixed_level of the sums.
void mix_levels(const std::uint32_t* sums, std::size_t bytes, std::uint8_t* out);

}  // namespace penstock::augment

// augment/plain_kernels: the loops of augment/kernels one number at a time: for what is too short for vectors, for CPUs
// without them, and to compare with.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "src/augment/kernels.hpp"
#include "src/augment/numbers.hpp"

namespace penstock::augment::plain {

inline void apply_table(const Table& table, const std::uint8_t* in, std::size_t bytes,
                        std::uint8_t* out) {
  for (std::size_t at = 0; at < bytes; ++at) out[at] = table[in[at]];
}

inline void apply_tables(const Table* tables, const std::uint8_t* in, std::size_t pixels,
                         std::uint8_t* out) {
  for (std::size_t at = 0; at < 3 * pixels; at += 3)
    for (std::size_t c = 0; c < 3; ++c) out[at + c] = tables[c][in[at + c]];
}

inline void apply_to_pixels(const Step& step, const std::uint8_t* in, std::size_t pixels,
                            std::uint8_t* out) {
  for (std::size_t at = 0; at < 3 * pixels; at += 3) {
    const Rgb made = changed_pixel(step, {in[at], in[at + 1], in[at + 2]});
    out[at] = static_cast<std::uint8_t>(made.red);
    out[at + 1] = static_cast<std::uint8_t>(made.green);
    out[at + 2] = static_cast<std::uint8_t>(made.blue);
  }
}

[[nodiscard]] inline std::uint64_t luma_sum(const std::uint8_t* pixels, std::size_t count) {
  std::uint64_t total = 0;
  for (std::size_t at = 0; at < 3 * count; at += 3)
    total += static_cast<std::uint64_t>(luma(pixels[at], pixels[at + 1], pixels[at + 2]));
  return total;
}

inline void find_extremes(const std::uint8_t* pixels, std::size_t count, Extremes& extremes) {
  for (std::size_t at = 0; at < 3 * count; at += 3)
    for (std::size_t c = 0; c < 3; ++c) {
      extremes.least[c] = std::min(extremes.least[c], pixels[at + c]);
      extremes.most[c] = std::max(extremes.most[c], pixels[at + c]);
    }
}

inline void reverse_line(const std::uint8_t* in, std::size_t pixels, std::uint8_t* out) {
  for (std::size_t at = 0; at < pixels; ++at)
    for (std::size_t c = 0; c < 3; ++c) out[3 * at + c] = in[3 * (pixels - 1 - at) + c];
}

inline void sharpen_line(const std::uint8_t* above, const std::uint8_t* line,
                         const std::uint8_t* below, std::size_t begin, std::size_t end,
                         std::size_t channels, std::int32_t factor, std::uint8_t* out) {
  for (std::size_t at = begin; at < end; ++at) {
    std::int32_t sum = 4 * line[at];
    for (const std::uint8_t* from : {above, line, below})
      sum += from[at - channels] + from[at] + from[at + channels];
    out[at] = blend(smoothed(sum), line[at], factor);
  }
}

inline void blur_columns(const std::uint8_t* const* lines, const std::int16_t* weights, int count,
                         std::size_t bytes, std::int16_t* between) {
  const std::uint8_t* const* const middle = lines + count - 1;
  for (std::size_t at = 0; at < bytes; ++at) {
    std::int32_t sum = weights[0] * middle[0][at];
    for (int k = 1; k < count; ++k) sum += weights[k] * (middle[-k][at] + middle[k][at]);
    between[at] = static_cast<std::int16_t>(blur_between(sum));
  }
}

inline void blur_rows(const std::int16_t* between, const std::int16_t* weights, int count,
                      std::size_t bytes, std::size_t channels, std::uint8_t* out) {
  const auto step = static_cast<std::ptrdiff_t>(channels);
  for (std::size_t at = 0; at < bytes; ++at) {
    const std::int16_t* const from = between + at;
    std::int32_t sum = weights[0] * from[0];
    for (int k = 1; k < count; ++k) sum += weights[k] * (from[-k * step] + from[k * step]);
    out[at] = blur_level(sum);
  }
}

inline void add_weighted(const std::uint8_t* levels, std::size_t bytes, std::uint32_t weight,
                         std::uint32_t* sums) {
  for (std::size_t at = 0; at < bytes; ++at) sums[at] += weight * levels[at];
}

inline void mix_levels(const std::uint32_t* sums, std::size_t bytes, std::uint8_t* out) {
  for (std::size_t at = 0; at < bytes; ++at) out[at] = mixed_level(sums[at]);
}

}  // namespace penstock::augment::plain

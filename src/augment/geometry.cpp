#include "src/augment/geometry.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "src/augment/kernels.hpp"
#include "src/augment/sampling.hpp"

namespace penstock::augment {

namespace {

struct Interval {
  int begin = 0;
  int end = 0;
};

std::int64_t divided_down(std::int64_t a, std::int64_t b) {  // b > 0
  return a >= 0 ? a / b : -((b - 1 - a) / b);
}

/// The x in [0, count) with least <= start + x * step < end.
Interval where_within(std::int64_t start, std::int64_t step, std::int64_t least, std::int64_t end,
                      int count) {
  if (step == 0) return start >= least && start < end ? Interval{0, count} : Interval{};
  // The first x at or above `bound`, where the coordinate grows; else the first one below it.
  const auto first_beyond = [&](std::int64_t bound) {
    const std::int64_t at =
        step > 0 ? -divided_down(start - bound, step) : divided_down(start - bound, -step) + 1;
    return static_cast<int>(std::clamp<std::int64_t>(at, 0, count));
  };
  return step > 0 ? Interval{first_beyond(least), first_beyond(end)}
                  : Interval{first_beyond(end), first_beyond(least)};
}

Interval both(Interval a, Interval b) {
  const Interval common{std::max(a.begin, b.begin), std::min(a.end, b.end)};
  return common.begin < common.end ? common : Interval{};
}

/// Pixels of a line whose neighbours all lie within the image.
template <int kChannels>
void sample_inside(const Picture& from, Sampler sampler, SourcePlace place, SourcePlace step,
                   Interval columns, std::uint8_t* to) {
  const std::size_t below = static_cast<std::size_t>(from.width) * kChannels;
  if (sampler == Sampler::nearest) {
    for (int x = columns.begin; x < columns.end; ++x, to += kChannels) {
      copy_pixel<kChannels>(from.at(whole_part(place.u), whole_part(place.v)), to);
      place.u += step.u;
      place.v += step.v;
    }
    return;
  }
  const std::int32_t half = sampler == Sampler::bilinear ? kHalfSum : 0;
  for (int x = columns.begin; x < columns.end; ++x, to += kChannels) {
    const std::uint8_t* const upper = from.at(whole_part(place.u), whole_part(place.v));
    const std::uint8_t* const lower = upper + below;
    const std::int32_t right_share = share_of(place.u);
    const std::int32_t lower_share = share_of(place.v);
    for (int c = 0; c < kChannels; ++c)
      to[c] =
          static_cast<std::uint8_t>((bilinear_sum(upper[c], upper[c + kChannels], lower[c],
                                                  lower[c + kChannels], right_share, lower_share) +
                                     half) >>
                                    (2 * kShareBits));
    place.u += step.u;
    place.v += step.v;
  }
}

template <int kChannels>
void affine(const Step& step, const Picture& from, std::uint8_t* out) {
  const SourcePlace across{2 * step.values[0], 2 * step.values[3]};
  const bool nearest = step.sampler == Sampler::nearest;
  // What a place is moved by, and how much room its neighbours want.
  const std::int64_t moved = nearest ? 0 : kWholePixel / 2;
  const int room = nearest ? 0 : 1;
  for (int y = 0; y < from.height; ++y) {
    std::uint8_t* const line =
        out + static_cast<std::size_t>(y) * static_cast<std::size_t>(from.width) * kChannels;
    const auto pixel = [&](int x) { return line + static_cast<std::ptrdiff_t>(x) * kChannels; };
    const SourcePlace first = affine_place(step, 0, y);
    const SourcePlace start{first.u - moved, first.v - moved};
    const Interval inside =
        step.sampler == Sampler::pillow_bicubic
            ? Interval{}
            : both(
                  where_within(start.u, across.u, 0, (from.width - room) * kWholePixel, from.width),
                  where_within(start.v, across.v, 0, (from.height - room) * kWholePixel,
                               from.width));
    for (int x = 0; x < inside.begin; ++x)
      sample<kChannels>(from, step, affine_place(step, x, y), pixel(x));
    sample_inside<kChannels>(from, step.sampler,
                             {start.u + inside.begin * across.u, start.v + inside.begin * across.v},
                             across, inside, pixel(inside.begin));
    for (int x = inside.end; x < from.width; ++x)
      sample<kChannels>(from, step, affine_place(step, x, y), pixel(x));
  }
}

template <int kChannels>
void perspective(const Step& step, const Picture& from, std::uint8_t* out) {
  for (int y = 0; y < from.height; ++y)
    for (int x = 0; x < from.width; ++x, out += kChannels)
      sample<kChannels>(from, step, perspective_place(step, x, y, from.width, from.height), out);
}

template <int kChannels>
void move(const Step& step, const Picture& from, std::uint8_t* out) {
  const std::size_t line = static_cast<std::size_t>(from.width) * kChannels;
  const auto height = static_cast<std::size_t>(from.height);
  switch (step.kind) {
    case StepKind::affine:
      return affine<kChannels>(step, from, out);
    case StepKind::perspective:
      return perspective<kChannels>(step, from, out);
    case StepKind::flip:
      for (std::size_t y = 0; y < height; ++y) {
        const std::uint8_t* const pixels = from.pixels + y * line;
        if constexpr (kChannels == 3)
          reverse_line(pixels, static_cast<std::size_t>(from.width), out + y * line);
        else
          std::reverse_copy(pixels, pixels + line, out + y * line);
      }
      return;
    default:
      for (std::size_t y = 0; y < height; ++y)
        std::memcpy(out + (height - 1 - y) * line, from.pixels + y * line, line);
  }
}

}  // namespace

void move_pixels(const Step& step, const std::uint8_t* in, const ImageShape& shape,
                 std::uint8_t* out) {
  const Picture from{in, shape.height, shape.width, shape.channels};
  if (shape.channels == 3)
    move<3>(step, from, out);
  else
    move<1>(step, from, out);
}

}  // namespace penstock::augment

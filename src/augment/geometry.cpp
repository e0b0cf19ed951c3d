#include "src/augment/geometry.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

#include "src/augment/kernels.hpp"
#include "src/augment/sampling.hpp"
#include "src/augment/sampling_kernels.hpp"

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

/// How far from the edges of an image the upper left neighbour of a place must lie, for sample_line.
struct Room {
  int left = 0;
  int right = 0;
  int above = 0;
  int below = 0;
};

Room room_of(Sampler sampler) {
  if (sampler == Sampler::pillow_bicubic) return {.left = 1, .right = 2, .above = 1, .below = 2};
  return {.left = 0, .right = 2, .above = 0, .below = 1};
}

/// A line's places, moved by half a pixel; for one call at a time.
SourcePlace* places_of_line(int width) {
  thread_local std::vector<SourcePlace> places;
  if (places.size() < static_cast<std::size_t>(width))
    places.resize(static_cast<std::size_t>(width));
  return places.data();
}

template <int kChannels>
class Line {
 public:
  Line(std::uint8_t* out, const Picture& from, int y)
      : first_(out + static_cast<std::ptrdiff_t>(y) * from.width * kChannels) {}
  [[nodiscard]] std::uint8_t* at(int x) const {
    return first_ + static_cast<std::ptrdiff_t>(x) * kChannels;
  }

 private:
  std::uint8_t* first_;
};

/// The pixels of a line which can be read without looking at the edges.
template <int kChannels>
Interval affine_inside(const Step& step, const Picture& from, SourcePlace place, SourcePlace across,
                       const Line<kChannels>& line) {
  const auto within = [&](std::int64_t left, std::int64_t right, std::int64_t above,
                          std::int64_t below) {
    return both(where_within(place.u, across.u, left, right, from.width),
                where_within(place.v, across.v, above, below, from.width));
  };
  if (step.sampler == Sampler::nearest) {
    const Interval inside = within(0, from.width * kWholePixel, 0, from.height * kWholePixel);
    place.u += inside.begin * across.u;
    place.v += inside.begin * across.v;
    std::uint8_t* to = line.at(inside.begin);
    for (int x = inside.begin; x < inside.end; ++x, to += kChannels) {
      copy_pixel<kChannels>(from.at(whole_part(place.u), whole_part(place.v)), to);
      place.u += across.u;
      place.v += across.v;
    }
    return inside;
  }
  if constexpr (kChannels != 3) {
    return {};
  } else {
    place.u -= kWholePixel / 2;
    place.v -= kWholePixel / 2;
    const Room room = room_of(step.sampler);
    const Interval inside =
        within(room.left * kWholePixel, (from.width - room.right) * kWholePixel,
               room.above * kWholePixel, (from.height - room.below) * kWholePixel);
    SourcePlace* const places = places_of_line(from.width);
    for (int x = inside.begin; x < inside.end; ++x)
      places[x] = {place.u + x * across.u, place.v + x * across.v};
    sample_line(from, step.sampler, places + inside.begin, inside.end - inside.begin,
                line.at(inside.begin));
    return inside;
  }
}

template <int kChannels>
void affine(const Step& step, const Picture& from, std::uint8_t* out) {
  const SourcePlace across{2 * step.values[0], 2 * step.values[3]};
  for (int y = 0; y < from.height; ++y) {
    const Line<kChannels> line(out, from, y);
    const Interval inside = affine_inside(step, from, affine_place(step, 0, y), across, line);
    for (int x = 0; x < inside.begin; ++x)
      sample<kChannels>(from, step, affine_place(step, x, y), line.at(x));
    for (int x = inside.end; x < from.width; ++x)
      sample<kChannels>(from, step, affine_place(step, x, y), line.at(x));
  }
}

template <int kChannels>
void perspective(const Step& step, const Picture& from, std::uint8_t* out) {
  const Room room = room_of(step.sampler);
  const auto has_room = [&](SourcePlace place) {
    if (kChannels != 3 || step.sampler == Sampler::nearest) return false;
    const int x = whole_part(place.u);
    const int y = whole_part(place.v);
    return x >= room.left && x < from.width - room.right && y >= room.above &&
           y < from.height - room.below;
  };
  SourcePlace* const places = places_of_line(from.width);
  for (int y = 0; y < from.height; ++y) {
    const Line<kChannels> line(out, from, y);
    int begin = 0;  // of those with room that are still to be read
    const auto read_until = [&](int end) {
      if constexpr (kChannels == 3)
        sample_line(from, step.sampler, places + begin, end - begin, line.at(begin));
      begin = end + 1;
    };
    for (int x = 0; x < from.width; ++x) {
      const SourcePlace place = perspective_place(step, x, y, from.width, from.height);
      places[x] = {place.u - kWholePixel / 2, place.v - kWholePixel / 2};
      if (has_room(places[x])) continue;
      if (begin < x)
        read_until(x);
      else
        begin = x + 1;
      sample<kChannels>(from, step, place, line.at(x));
    }
    if (begin < from.width) read_until(from.width);
  }
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

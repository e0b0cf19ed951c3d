// A device transform on the host: vectors of pixels, line by line, so that what it works on stays in the first cache.
#include "src/core/fixed_vectors.hpp"
#include "src/core/half.hpp"
#include "src/device/device_transform_numbers.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "src/device/device_transform_host.cpp"
#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace penstock::device::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using core::Bfloat16;
using core::Half;
using Floats = hn::CappedTag<float, 16>;
using Vector = hn::Vec<Floats>;

/// Pixels that are taken apart at once: a multiple of what a vector of floats holds.
using Pixels = hn::CappedTag<std::uint8_t, 16>;
constexpr std::size_t kPixels = hn::MaxLanes(Pixels());

float converted(float value, float) { return value; }
Half converted(float value, Half) { return core::to_half(value); }
Bfloat16 converted(float value, Bfloat16) { return core::to_bfloat16(value); }

// ---- vectors of the output's type: the bits of core/half ----

auto bits_of(Vector value, float) { return value; }
auto bits_of(Vector value, Bfloat16) {
  const hn::RebindToUnsigned<Floats> d;
  const auto bits = hn::BitCast(d, value);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 1));
  const auto rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, hn::Set(d, 0x7FFFU))));
  const auto quiet = hn::Or(hn::ShiftRight<16>(bits), hn::Set(d, 0x40U));
  const auto is_nan = hn::Gt(hn::And(bits, hn::Set(d, 0x7FFFFFFFU)), hn::Set(d, 0x7F800000U));
  return hn::TruncateTo(hn::Rebind<std::uint16_t, Floats>(),
                        hn::IfThenElse(is_nan, quiet, rounded));
}
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2  // the instruction rounds likewise
auto bits_of(Vector value, Half) {
  return hn::BitCast(hn::Rebind<std::uint16_t, Floats>(),
                     hn::DemoteTo(hn::Rebind<hwy::float16_t, Floats>(), value));
}
#else
auto bits_of(Vector value, Half) {
  const hn::RebindToUnsigned<Floats> d;
  const Floats df;
  const auto bits = hn::BitCast(d, value);
  const auto magnitude = hn::And(bits, hn::Set(d, 0x7FFFFFFFU));
  const auto special = hn::IfThenElse(hn::Gt(magnitude, hn::Set(d, 0x7F800000U)),
                                      hn::Set(d, 0x7E00U), hn::Set(d, 0x7C00U));
  const auto magic = hn::Set(df, 0.5F);
  const auto subnormal =
      hn::Sub(hn::BitCast(d, hn::Add(hn::BitCast(df, magnitude), magic)), hn::BitCast(d, magic));
  const auto odd = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(d, 1));
  const auto normal = hn::ShiftRight<13>(
      hn::Add(hn::Sub(magnitude, hn::Set(d, ((127U - 15U) << 23) - 0xFFFU)), odd));
  const auto finite =
      hn::IfThenElse(hn::Lt(magnitude, hn::Set(d, (127U - 14U) << 23)), subnormal, normal);
  const auto half =
      hn::IfThenElse(hn::Gt(magnitude, hn::Set(d, ((127U + 16U) << 23) - 1)), special, finite);
  const auto sign = hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 0x8000U));
  return hn::TruncateTo(hn::Rebind<std::uint16_t, Floats>(), hn::Or(half, sign));
}
#endif

template <class T>
struct Bits {
  using Type = std::uint16_t;
};
template <>
struct Bits<float> {
  using Type = float;
};
template <class T>
typename Bits<T>::Type* bits(T* values) {
  return reinterpret_cast<typename Bits<T>::Type*>(values);
}

/// Where a line of an image goes: `channel` elements lie between the channels of a pixel in planes; else they lie beside
/// each other.
template <int kChannels, class T>
class Line {
 public:
  Line(T* first, ImageLayout layout, std::size_t channel)
      : first_(first), planes_(layout == ImageLayout::nchw), channel_(channel) {}

  void store(std::size_t x, const Vector (&pixels)[kChannels]) const {
    const hn::Rebind<typename Bits<T>::Type, Floats> d;
    if (planes_) {
      for (int c = 0; c < kChannels; ++c)
        hn::StoreU(bits_of(pixels[c], T{}), d,
                   bits(first_) + static_cast<std::size_t>(c) * channel_ + x);
      return;
    }
    auto* const to = bits(first_) + x * kChannels;
    if constexpr (kChannels == 1)
      hn::StoreU(bits_of(pixels[0], T{}), d, to);
    else if constexpr (kChannels == 2)
      hn::StoreInterleaved2(bits_of(pixels[0], T{}), bits_of(pixels[1], T{}), d, to);
    else if constexpr (kChannels == 3)
      hn::StoreInterleaved3(bits_of(pixels[0], T{}), bits_of(pixels[1], T{}),
                            bits_of(pixels[2], T{}), d, to);
    else
      hn::StoreInterleaved4(bits_of(pixels[0], T{}), bits_of(pixels[1], T{}),
                            bits_of(pixels[2], T{}), bits_of(pixels[3], T{}), d, to);
  }
  void store(std::size_t x, int c, float value) const {
    const auto channel = static_cast<std::size_t>(c);
    first_[planes_ ? channel * channel_ + x : x * kChannels + channel] = converted(value, T{});
  }
  void fill(std::size_t begin, std::size_t end, int c, float value) const {
    const auto channel = static_cast<std::size_t>(c);
    if (planes_)
      std::fill(first_ + channel * channel_ + begin, first_ + channel * channel_ + end,
                converted(value, T{}));
    else
      for (std::size_t x = begin; x < end; ++x)
        first_[x * kChannels + channel] = converted(value, T{});
  }

 private:
  T* first_;
  bool planes_;
  std::size_t channel_;
};

/// kPixels pixels, a channel after the other.
template <int kChannels>
void take_apart(const std::uint8_t* from, std::uint8_t* to) {
  const Pixels d;
  if constexpr (kChannels == 1) {
    hn::Store(hn::LoadU(d, from), d, to);
  } else if constexpr (kChannels == 2) {
    hn::Vec<Pixels> a, b;
    hn::LoadInterleaved2(d, from, a, b);
    hn::Store(a, d, to);
    hn::Store(b, d, to + kPixels);
  } else if constexpr (kChannels == 3) {
    hn::Vec<Pixels> a, b, c;
    hn::LoadInterleaved3(d, from, a, b, c);
    hn::Store(a, d, to);
    hn::Store(b, d, to + kPixels);
    hn::Store(c, d, to + 2 * kPixels);
  } else {
    hn::Vec<Pixels> a, b, c, e;
    hn::LoadInterleaved4(d, from, a, b, c, e);
    hn::Store(a, d, to);
    hn::Store(b, d, to + kPixels);
    hn::Store(c, d, to + 2 * kPixels);
    hn::Store(e, d, to + 3 * kPixels);
  }
}

/// kPixels pixels of a line, taken apart. Whether the line is flipped is a value and not a template's parameter: the code for each
/// case took most of the time to compile. What the branch costs is in bench/results/build.md.
template <int kChannels>
class Block {
 public:
  /// Those that become the result's pixels from `x` on.
  Block(const std::uint8_t* pixels, bool flip, std::size_t width, std::size_t x) : flip_(flip) {
    take_apart<kChannels>(pixels + (flip ? width - x - kPixels : x) * kChannels, apart_);
  }
  /// As many as a vector holds, from the k-th on, normalised.
  HWY_INLINE void normalised(const DeviceTransformNumbers& numbers, std::size_t k,
                             Vector (&values)[kChannels]) const {
    const Floats d;
    const hn::Rebind<std::uint8_t, Floats> du8;
    const hn::RebindToSigned<Floats> di32;
    const std::size_t part = flip_ ? kPixels - k - hn::Lanes(d) : k;
    for (int c = 0; c < kChannels; ++c) {
      const auto bytes = hn::LoadU(du8, apart_ + static_cast<std::size_t>(c) * kPixels + part);
      const auto pixel = hn::ConvertTo(d, hn::PromoteTo(di32, bytes));
      // A product and a sum, each rounded: see multiply_add.
      values[c] =
          hn::Add(hn::Mul(pixel, hn::Set(d, numbers.scale[c])), hn::Set(d, numbers.bias[c]));
      if (flip_) values[c] = hn::Reverse(d, values[c]);
    }
  }
  /// One of a line's last pixels, for which there is no block.
  static float last(const DeviceTransformNumbers& numbers, const std::uint8_t* pixels, bool flip,
                    std::size_t width, std::size_t x, int c) {
    const std::size_t from = flip ? width - 1 - x : x;
    return device::normalised(numbers, pixels[from * kChannels + static_cast<std::size_t>(c)], c);
  }

 private:
  bool flip_;
  HWY_ALIGN std::uint8_t apart_[kChannels * kPixels];
};

/// A line, flipped and normalised.
template <int kChannels, class T>
void normalise_line(const DeviceTransformNumbers& numbers, const std::uint8_t* pixels, bool flip,
                    Line<kChannels, T> out) {
  const std::size_t lanes = hn::Lanes(Floats());
  const auto width = static_cast<std::size_t>(numbers.width);
  std::size_t x = 0;  // of the result, which is written from left to right
  for (; x + kPixels <= width; x += kPixels) {
    const Block<kChannels> own(pixels, flip, width, x);
    for (std::size_t k = 0; k < kPixels; k += lanes) {
      Vector values[kChannels];
      own.normalised(numbers, k, values);
      out.store(x + k, values);
    }
  }
  for (; x < width; ++x)
    for (int c = 0; c < kChannels; ++c)
      out.store(x, c, Block<kChannels>::last(numbers, pixels, flip, width, x, c));
}

/// A line and the one that is mixed into it, both flipped and normalised on the way.
template <int kChannels, class T>
void blend_line(const DeviceTransformNumbers& numbers, float weight, const std::uint8_t* pixels,
                bool flip, const std::uint8_t* other_pixels, bool flip_other,
                Line<kChannels, T> out) {
  const Floats d;
  const auto width = static_cast<std::size_t>(numbers.width);
  const auto of_own = hn::Set(d, weight);
  const auto of_other = hn::Set(d, 1 - weight);
  std::size_t x = 0;
  for (; x + kPixels <= width; x += kPixels) {
    const Block<kChannels> own(pixels, flip, width, x);
    const Block<kChannels> other(other_pixels, flip_other, width, x);
    for (std::size_t k = 0; k < kPixels; k += hn::Lanes(d)) {
      Vector values[kChannels];
      Vector others[kChannels];
      own.normalised(numbers, k, values);
      other.normalised(numbers, k, others);
      for (int c = 0; c < kChannels; ++c)  // as blended does
        values[c] = hn::Add(hn::Mul(of_own, values[c]), hn::Mul(of_other, others[c]));
      out.store(x + k, values);
    }
  }
  for (; x < width; ++x)
    for (int c = 0; c < kChannels; ++c)
      out.store(x, c,
                blended(weight, Block<kChannels>::last(numbers, pixels, flip, width, x, c),
                        Block<kChannels>::last(numbers, other_pixels, flip_other, width, x, c)));
}

template <int kChannels>
const std::uint8_t* line_of(const DeviceTransformNumbers& numbers, const std::uint8_t* image,
                            int y) {
  return image + static_cast<std::size_t>(y) * static_cast<std::size_t>(numbers.width) * kChannels;
}

/// Line y of one row, flipped, normalised and erased.
template <int kChannels, class T>
void make_line(const DeviceTransformNumbers& numbers, const std::uint8_t* image,
               const DeviceTransformRow& row, int y, Line<kChannels, T> out) {
  normalise_line(numbers, line_of<kChannels>(numbers, image, y), row.flip != 0, out);
  if (contains_line(row.erase, y))
    for (int c = 0; c < kChannels; ++c)
      out.fill(row.erase.left, row.erase.right, c, numbers.erased[c]);
}

/// Line y of two rows, blended, where nothing of it is erased.
template <int kChannels, class T>
void make_blended_line(const DeviceTransformNumbers& numbers, const DeviceTransformRow& row,
                       const std::uint8_t* image, const DeviceTransformRow& other,
                       const std::uint8_t* other_image, int y, Line<kChannels, T> out) {
  blend_line(numbers, row.weight, line_of<kChannels>(numbers, image, y), row.flip != 0,
             line_of<kChannels>(numbers, other_image, y), other.flip != 0, out);
}

/// A line of floats in planes, and the one that is mixed into it.
template <int kChannels>
void mix_lines(const DeviceTransformNumbers& numbers, const DeviceTransformRow& row, int y,
               float* HWY_RESTRICT own, const float* HWY_RESTRICT other) {
  const int width = numbers.width;
  if (row.mix == DeviceTransformRow::Mix::mixup) {
    for (int i = 0; i < width * kChannels; ++i) own[i] = blended(row.weight, own[i], other[i]);
  } else if (contains_line(row.cut, y)) {
    for (int c = 0; c < kChannels; ++c)
      std::copy(other + c * width + row.cut.left, other + c * width + row.cut.right,
                own + c * width + row.cut.left);
  }
}

template <int kChannels, class T>
void store_line(const float* line, std::size_t width, Line<kChannels, T> out) {
  const Floats d;
  std::size_t x = 0;
  for (; x + hn::Lanes(d) <= width; x += hn::Lanes(d)) {
    Vector values[kChannels];
    for (int c = 0; c < kChannels; ++c)
      values[c] = hn::LoadU(d, line + static_cast<std::size_t>(c) * width + x);
    out.store(x, values);
  }
  for (; x < width; ++x)
    for (int c = 0; c < kChannels; ++c)
      out.store(x, c, line[static_cast<std::size_t>(c) * width + x]);
}

/// Line y of two rows, mixed by way of lines of floats, for which there is room in `floats`.
template <int kChannels, class T>
void make_mixed_line(const DeviceTransformNumbers& numbers, const DeviceTransformRow& row,
                     const std::uint8_t* image, const DeviceTransformRow& other,
                     const std::uint8_t* other_image, int y, std::vector<float>& floats,
                     Line<kChannels, T> out) {
  const auto width = static_cast<std::size_t>(numbers.width);
  floats.resize(2 * width * kChannels);
  float* const own = floats.data();
  float* const its = own + width * kChannels;
  make_line(numbers, image, row, y, Line<kChannels, float>(own, ImageLayout::nchw, width));
  make_line(numbers, other_image, other, y, Line<kChannels, float>(its, ImageLayout::nchw, width));
  mix_lines<kChannels>(numbers, row, y, own, its);
  store_line(own, width, out);
}

template <int kChannels, class T>
void run_as(const DeviceTransformNumbers& numbers, ImageLayout layout, const std::uint8_t* in,
            std::span<const DeviceTransformRow> rows, T* out, std::size_t first,
            std::size_t count) {
  const auto width = static_cast<std::size_t>(numbers.width);
  const std::size_t plane = width * static_cast<std::size_t>(numbers.height);
  const std::size_t elements = plane * kChannels;
  std::vector<float> floats;
  for (std::size_t i = first; i < first + count; ++i) {
    const DeviceTransformRow& row = rows[i];
    T* const image = out + i * elements;
    if (row.present == 0) {
      std::memset(image, 0, elements * sizeof(T));
      continue;
    }
    const auto partner = static_cast<std::size_t>(row.partner);
    for (int y = 0; y < numbers.height; ++y) {
      const std::size_t before = static_cast<std::size_t>(y) * width;
      const Line<kChannels, T> line(
          image + (layout == ImageLayout::nchw ? before : before * kChannels), layout, plane);
      if (row.mix == DeviceTransformRow::Mix::none) {
        make_line(numbers, in + i * elements, row, y, line);
        continue;
      }
      const std::uint8_t* const image_in = in + i * elements;
      const std::uint8_t* const other_in = in + partner * elements;
      const DeviceTransformRow& other_row = rows[partner];
      if (row.mix == DeviceTransformRow::Mix::mixup && !contains_line(row.erase, y) &&
          !contains_line(other_row.erase, y))
        make_blended_line(numbers, row, image_in, other_row, other_in, y, line);
      else
        make_mixed_line(numbers, row, image_in, other_row, other_in, y, floats, line);
    }
  }
}

template <class T>
void run_channels(const DeviceTransformNumbers& numbers, ImageLayout layout, const std::uint8_t* in,
                  std::span<const DeviceTransformRow> rows, T* out, std::size_t first,
                  std::size_t count) {
  switch (numbers.channels) {
    case 1:
      return run_as<1>(numbers, layout, in, rows, out, first, count);
    case 2:
      return run_as<2>(numbers, layout, in, rows, out, first, count);
    case 3:
      return run_as<3>(numbers, layout, in, rows, out, first, count);
    default:
      return run_as<4>(numbers, layout, in, rows, out, first, count);
  }
}

void transform_on_host(const DeviceTransformNumbers& numbers, const DeviceTransformOptions& options,
                       const std::uint8_t* in, std::span<const DeviceTransformRow> rows,
                       std::byte* out, std::size_t first, std::size_t count) {
  switch (options.dtype) {
    case DType::f16:
      return run_channels(numbers, options.layout, in, rows, reinterpret_cast<Half*>(out), first,
                          count);
    case DType::bf16:
      return run_channels(numbers, options.layout, in, rows, reinterpret_cast<Bfloat16*>(out),
                          first, count);
    default:
      return run_channels(numbers, options.layout, in, rows, reinterpret_cast<float*>(out), first,
                          count);
  }
}

}  // namespace penstock::device::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace penstock {

namespace device {
HWY_EXPORT(transform_on_host);
}

void DeviceTransform::run(const std::byte* in, std::span<const DeviceTransformRow> rows,
                          std::byte* out, std::size_t first, std::size_t count) const {
  using namespace device;  // NOLINT(google-build-using-namespace): where HWY_EXPORT has put its table
  HWY_DYNAMIC_DISPATCH(transform_on_host)
  (*numbers_, options_, reinterpret_cast<const std::uint8_t*>(in), rows, out, first, count);
}

}  // namespace penstock
#endif

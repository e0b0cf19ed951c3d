// A device transform on the host: line by line, so that what it works on stays in the first cache.
#include <algorithm>
#include <cstring>
#include <vector>

#include <penstock/device/device_transform.hpp>

#include "src/core/half.hpp"
#include "src/device/device_transform_numbers.hpp"

namespace penstock {

namespace {

using core::Bfloat16;
using core::Half;
using device::DeviceTransformNumbers;

float converted(float value, float) { return value; }
Half converted(float value, Half) { return core::to_half(value); }
Bfloat16 converted(float value, Bfloat16) { return core::to_bfloat16(value); }

// Line y of one row, flipped, normalised and erased: a stretch of `width` floats for each channel.
void make_line(const DeviceTransformNumbers& numbers, const std::uint8_t* image,
               const DeviceTransformRow& row, int y, float* line) {
  const int width = numbers.width;
  const int channels = numbers.channels;
  const std::uint8_t* pixels = image + std::size_t(y) * std::size_t(width * channels);
  const int first = row.flip != 0 ? width - 1 : 0;
  const int stride = row.flip != 0 ? -channels : channels;
  for (int c = 0; c < channels; ++c) {
    float* out = line + std::ptrdiff_t{c} * width;
    const std::uint8_t* pixel = pixels + first * channels + c;
    for (int x = 0; x < width; ++x, pixel += stride)
      out[x] = device::normalised(numbers, *pixel, c);
    if (device::contains_line(row.erase, y))
      std::fill(out + row.erase.left, out + row.erase.right, numbers.erased[c]);
  }
}

void mix_lines(const DeviceTransformNumbers& numbers, const DeviceTransformRow& row, int y,
               float* own, const float* other) {
  const int width = numbers.width;
  if (row.mix == DeviceTransformRow::Mix::mixup) {
    for (int i = 0; i < width * numbers.channels; ++i)
      own[i] = device::blended(row.weight, own[i], other[i]);
  } else if (device::contains_line(row.cut, y)) {
    for (int c = 0; c < numbers.channels; ++c)
      std::copy(other + c * width + row.cut.left, other + c * width + row.cut.right,
                own + c * width + row.cut.left);
  }
}

template <class T>
void store_line(const DeviceTransformNumbers& numbers, ImageLayout layout, int y, const float* line,
                T* image) {
  const std::size_t width = static_cast<std::size_t>(numbers.width);
  const std::size_t channels = static_cast<std::size_t>(numbers.channels);
  const std::size_t plane = width * static_cast<std::size_t>(numbers.height);
  for (std::size_t c = 0; c < channels; ++c) {
    const float* values = line + c * width;
    if (layout == ImageLayout::nchw) {
      T* out = image + c * plane + static_cast<std::size_t>(y) * width;
      for (std::size_t x = 0; x < width; ++x) out[x] = converted(values[x], T{});
    } else {
      T* out = image + static_cast<std::size_t>(y) * width * channels + c;
      for (std::size_t x = 0; x < width; ++x) out[x * channels] = converted(values[x], T{});
    }
  }
}

template <class T>
void run_as(const DeviceTransformNumbers& numbers, ImageLayout layout, const std::uint8_t* in,
            std::span<const DeviceTransformRow> rows, T* out) {
  const std::size_t elements =
      std::size_t(numbers.height) * std::size_t(numbers.width * numbers.channels);
  std::vector<float> own(std::size_t(numbers.width * numbers.channels));
  std::vector<float> other(own.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const DeviceTransformRow& row = rows[i];
    T* image = out + i * elements;
    if (row.present == 0) {
      std::memset(image, 0, elements * sizeof(T));
      continue;
    }
    const auto partner = static_cast<std::size_t>(row.partner);
    for (int y = 0; y < numbers.height; ++y) {
      make_line(numbers, in + i * elements, row, y, own.data());
      if (row.mix != DeviceTransformRow::Mix::none) {
        make_line(numbers, in + partner * elements, rows[partner], y, other.data());
        mix_lines(numbers, row, y, own.data(), other.data());
      }
      store_line(numbers, layout, y, own.data(), image);
    }
  }
}

}  // namespace

void DeviceTransform::run(const std::byte* in, std::span<const DeviceTransformRow> rows,
                          std::byte* out) const {
  const auto* pixels = reinterpret_cast<const std::uint8_t*>(in);
  switch (options_.dtype) {
    case DType::f16:
      return run_as(*numbers_, options_.layout, pixels, rows, reinterpret_cast<Half*>(out));
    case DType::bf16:
      return run_as(*numbers_, options_.layout, pixels, rows, reinterpret_cast<Bfloat16*>(out));
    default:
      return run_as(*numbers_, options_.layout, pixels, rows, reinterpret_cast<float*>(out));
  }
}

}  // namespace penstock

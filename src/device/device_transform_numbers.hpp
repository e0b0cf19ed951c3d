// device/device_transform_numbers: the arithmetic of a device transform, written once for the host and for kernels, so
// that both get the same bits.
#pragma once

#include <cstdint>

#include <penstock/device/device_transform.hpp>

#include "src/core/host_device.hpp"

namespace penstock::device {

inline constexpr int kMaxChannels = 4;
inline constexpr int kMaxViews = 256;

/// What a device transform is, without its random part. Passed to kernels by value.
struct DeviceTransformNumbers {
  int views = 0;  // 0: images that are no views
  int height = 0;
  int width = 0;
  int channels = 0;
  // normalised = pixel * scale + bias, with pixel in 0…255
  float scale[kMaxChannels] = {};
  float bias[kMaxChannels] = {};
  float erased[kMaxChannels] = {};
};

// A compiler may not fuse these: a product and a sum, each rounded.
PENSTOCK_HOST_DEVICE inline float multiply_add(float a, float b, float c) {
#ifdef __CUDA_ARCH__
  return __fadd_rn(__fmul_rn(a, b), c);
#else
  const float product = a * b;
  return product + c;
#endif
}

PENSTOCK_HOST_DEVICE inline float normalised(const DeviceTransformNumbers& numbers,
                                             std::uint8_t pixel, int channel) {
  return multiply_add(static_cast<float>(pixel), numbers.scale[channel], numbers.bias[channel]);
}

/// weight * own + (1 - weight) * other
PENSTOCK_HOST_DEVICE inline float blended(float weight, float own, float other) {
#ifdef __CUDA_ARCH__
  return multiply_add(weight, own, __fmul_rn(1 - weight, other));
#else
  return multiply_add(weight, own, (1 - weight) * other);
#endif
}

PENSTOCK_HOST_DEVICE inline bool contains_line(const DeviceTransformRow::Box& box, int y) {
  return y >= box.top && y < box.bottom;
}
PENSTOCK_HOST_DEVICE inline bool contains_column(const DeviceTransformRow::Box& box, int x) {
  return x >= box.left && x < box.right;
}

}  // namespace penstock::device

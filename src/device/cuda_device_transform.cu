// A device transform on a GPU: one pass; four pixels a thread where an image is grey or RGB and its lines are aligned words,
// else one, so that what a thread holds stays in registers either way.
#include <algorithm>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <penstock/device/device_transform.hpp>

#include "src/device/cuda_launch.hpp"
#include "src/device/device_transform_numbers.hpp"

namespace penstock {

namespace {

using device::blended;
using device::contains_column;
using device::contains_line;
using device::DeviceTransformNumbers;
using device::kMaxChannels;
using device::normalised;

constexpr int kWideGroup = 4;  // pixels of one thread, beside each other in a line
constexpr int kThreads = 256;
constexpr std::uint64_t kMaxGridRows = 65535;

template <class T>
struct alignas(4 * sizeof(T)) Vector4 {
  T values[4];
};

__device__ float converted(float value, float) { return value; }
__device__ __half converted(float value, __half) { return __float2half_rn(value); }
__device__ __nv_bfloat16 converted(float value, __nv_bfloat16) {
  return __float2bfloat16_rn(value);
}

/// The pixels x … x + kGroup - 1 of line y: flipped, normalised, erased.
///
/// kGroup     1; or 4, where a line is a whole number of aligned words
/// kChannels  of the image, or 0 for any number
template <int kGroup, int kChannels>
__device__ void load(const DeviceTransformNumbers& numbers, const std::uint8_t* image,
                     const DeviceTransformRow& row, int y, int x,
                     float (&values)[kGroup][kMaxChannels]) {
  constexpr int kMost = kChannels != 0 ? kChannels : kMaxChannels;
  const int channels = kChannels != 0 ? kChannels : numbers.channels;
  const std::uint8_t* line = image + std::size_t(y) * numbers.width * channels;
  const int first = row.flip != 0 ? numbers.width - x - kGroup : x;
  std::uint8_t bytes[kGroup * kMost] = {};
  if constexpr (kGroup > 1) {
    const auto* words = reinterpret_cast<const std::uint32_t*>(line + first * kChannels);
#pragma unroll
    for (int word = 0; word < kChannels; ++word) {
      const std::uint32_t four = __ldg(words + word);
#pragma unroll
      for (int byte = 0; byte < 4; ++byte) bytes[word * 4 + byte] = four >> (8 * byte);
    }
  } else {
#pragma unroll
    for (int c = 0; c < kMost; ++c)
      if (c < channels) bytes[c] = __ldg(line + first * channels + c);
  }
  const bool erases = contains_line(row.erase, y);
#pragma unroll
  for (int pixel = 0; pixel < kGroup; ++pixel) {
    const bool erased = erases && contains_column(row.erase, x + pixel);
#pragma unroll
    for (int c = 0; c < kMost; ++c) {
      if (c >= channels) break;
      // Both places are known when this is unrolled, so that the bytes stay in registers.
      const std::uint8_t straight = bytes[pixel * kMost + c];
      const std::uint8_t mirrored = bytes[(kGroup - 1 - pixel) * kMost + c];
      values[pixel][c] =
          erased ? numbers.erased[c] : normalised(numbers, row.flip != 0 ? mirrored : straight, c);
    }
  }
}

template <int kGroup, int kChannels, bool kPlanes, class T>
__device__ void store(const DeviceTransformNumbers& numbers, int y, int x,
                      const float (&values)[kGroup][kMaxChannels], T* image) {
  const int channels = kChannels != 0 ? kChannels : numbers.channels;
  const std::size_t at = std::size_t(y) * numbers.width + x;
  const std::size_t plane = std::size_t(numbers.height) * numbers.width;
  if constexpr (kGroup > 1) {
    Vector4<T> out[kChannels];
#pragma unroll
    for (int pixel = 0; pixel < kGroup; ++pixel)
#pragma unroll
      for (int c = 0; c < kChannels; ++c) {
        const int place = kPlanes ? c * kGroup + pixel : pixel * kChannels + c;
        out[place / 4].values[place % 4] = converted(values[pixel][c], T{});
      }
#pragma unroll
    for (int k = 0; k < kChannels; ++k)
      *reinterpret_cast<Vector4<T>*>(kPlanes ? image + k * plane + at
                                             : image + at * kChannels + k * 4) = out[k];
  } else {
#pragma unroll
    for (int c = 0; c < (kChannels != 0 ? kChannels : kMaxChannels); ++c)
      if (c < channels)
        image[kPlanes ? c * plane + at : at * channels + c] = converted(values[0][c], T{});
  }
}

template <int kGroup, int kChannels, bool kPlanes, class T>
__global__ void __launch_bounds__(kThreads)
    transform_rows(const DeviceTransformNumbers numbers, const std::uint8_t* in,
                   const DeviceTransformRow* rows, std::uint64_t count, T* out) {
  constexpr int kMost = kChannels != 0 ? kChannels : kMaxChannels;
  // The largest image has 65,535 lines of as many pixels, a little less than 2^32.
  const unsigned groups_per_line = static_cast<unsigned>(numbers.width) / kGroup;
  const unsigned group = blockIdx.x * kThreads + threadIdx.x;
  if (group >= groups_per_line * static_cast<unsigned>(numbers.height)) return;
  const int y = static_cast<int>(group / groups_per_line);
  const int x = static_cast<int>(group % groups_per_line) * kGroup;
  const std::size_t elements = std::size_t(numbers.height) * numbers.width * numbers.channels;

  for (std::uint64_t i = blockIdx.y; i < count; i += gridDim.y) {
    const DeviceTransformRow row = rows[i];
    float values[kGroup][kMaxChannels] = {};
    if (row.present != 0) {
      load<kGroup, kChannels>(numbers, in + i * elements, row, y, x, values);
      const bool cuts = row.mix == DeviceTransformRow::Mix::cutmix && contains_line(row.cut, y) &&
                        x < row.cut.right && x + kGroup > row.cut.left;
      if (cuts || row.mix == DeviceTransformRow::Mix::mixup) {
        float others[kGroup][kMaxChannels] = {};
        load<kGroup, kChannels>(numbers, in + row.partner * elements, rows[row.partner], y, x,
                                others);
#pragma unroll
        for (int pixel = 0; pixel < kGroup; ++pixel)
#pragma unroll
          for (int c = 0; c < kMost; ++c)
            if (!cuts)
              values[pixel][c] = blended(row.weight, values[pixel][c], others[pixel][c]);
            else if (contains_column(row.cut, x + pixel))
              values[pixel][c] = others[pixel][c];
      }
    }
    store<kGroup, kChannels, kPlanes>(numbers, y, x, values, out + i * elements);
  }
}

template <class T>
using Kernel = void (*)(DeviceTransformNumbers, const std::uint8_t*, const DeviceTransformRow*,
                        std::uint64_t, T*);

template <int kGroup, int kChannels, class T>
Kernel<T> kernel_of(bool planes) {
  return planes ? &transform_rows<kGroup, kChannels, true, T>
                : &transform_rows<kGroup, kChannels, false, T>;
}

template <class T>
void launch(const DeviceTransformNumbers& numbers, bool planes, const std::byte* in,
            const DeviceTransformRow* rows, std::uint64_t count, std::byte* out,
            cudaStream_t stream) {
  const auto is_aligned = [](const void* pointer, std::size_t to) {
    return reinterpret_cast<std::uintptr_t>(pointer) % to == 0;
  };
  const bool known = numbers.channels == 1 || numbers.channels == 3;
  const bool wide = known && numbers.width % kWideGroup == 0 &&
                    is_aligned(in, sizeof(std::uint32_t)) && is_aligned(out, sizeof(Vector4<T>));
  Kernel<T> kernel = kernel_of<1, 0, T>(planes);
  if (numbers.channels == 1)
    kernel = wide ? kernel_of<kWideGroup, 1, T>(planes) : kernel_of<1, 1, T>(planes);
  if (numbers.channels == 3)
    kernel = wide ? kernel_of<kWideGroup, 3, T>(planes) : kernel_of<1, 3, T>(planes);
  const std::uint64_t groups = static_cast<std::uint64_t>(numbers.width / (wide ? kWideGroup : 1)) *
                               static_cast<std::uint64_t>(numbers.height);
  const dim3 grid(static_cast<unsigned>((groups + kThreads - 1) / kThreads),
                  static_cast<unsigned>(std::min(count, kMaxGridRows)));
  device::launch(kernel, grid, kThreads, 0, stream, numbers,
                 reinterpret_cast<const std::uint8_t*>(in), rows, count, reinterpret_cast<T*>(out));
}

}  // namespace

void DeviceTransform::enqueue(const std::byte* in, const DeviceTransformRow* rows,
                              std::uint64_t count, std::byte* out, StreamHandle stream) const {
  if (count == 0) return;
  const bool planes = options_.layout == ImageLayout::nchw;
  switch (options_.dtype) {
    case DType::f16:
      return launch<__half>(*numbers_, planes, in, rows, count, out, stream);
    case DType::bf16:
      return launch<__nv_bfloat16>(*numbers_, planes, in, rows, count, out, stream);
    default:
      return launch<float>(*numbers_, planes, in, rows, count, out, stream);
  }
}

}  // namespace penstock

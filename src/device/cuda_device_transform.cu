// A device transform on a GPU: one pass, four pixels a thread, as wide as the image allows.
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

constexpr int kGroup = 4;  // pixels of one thread, beside each other in a line
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

/// The pixels x … x + count - 1 of line y: flipped, normalised, erased.
///
/// kWide  three channels, a width that is a multiple of kGroup, all of kGroup pixels: three aligned
///        words hold them.
template <bool kWide>
__device__ void load(const DeviceTransformNumbers& numbers, const std::uint8_t* image,
                     const DeviceTransformRow& row, int y, int x, int count,
                     float (&values)[kGroup][kMaxChannels]) {
  const int channels = kWide ? 3 : numbers.channels;
  const std::uint8_t* line = image + std::size_t(y) * numbers.width * channels;
  const int first = row.flip != 0 ? numbers.width - x - count : x;
  std::uint8_t bytes[kGroup * kMaxChannels];
  if constexpr (kWide) {
    const auto* words = reinterpret_cast<const std::uint32_t*>(line + first * 3);
    for (int word = 0; word < 3; ++word) {
      const std::uint32_t four = __ldg(words + word);
      for (int byte = 0; byte < 4; ++byte) bytes[word * 4 + byte] = four >> (8 * byte);
    }
  } else {
    for (int i = 0; i < count * channels; ++i) bytes[i] = line[first * channels + i];
  }
  const bool erases = contains_line(row.erase, y);
#pragma unroll
  for (int pixel = 0; pixel < kGroup; ++pixel) {
    if (!kWide && pixel >= count) break;
    const bool erased = erases && contains_column(row.erase, x + pixel);
#pragma unroll
    for (int c = 0; c < (kWide ? 3 : kMaxChannels); ++c) {
      if (!kWide && c >= channels) break;
      // Both places are known when this is unrolled, so that the bytes stay in registers.
      const std::uint8_t straight = bytes[pixel * channels + c];
      const std::uint8_t mirrored = bytes[((kWide ? kGroup : count) - 1 - pixel) * channels + c];
      values[pixel][c] =
          erased ? numbers.erased[c] : normalised(numbers, row.flip != 0 ? mirrored : straight, c);
    }
  }
}

template <bool kWide, bool kPlanes, class T>
__device__ void store(const DeviceTransformNumbers& numbers, int y, int x, int count,
                      const float (&values)[kGroup][kMaxChannels], T* image) {
  const int channels = kWide ? 3 : numbers.channels;
  const std::size_t at = std::size_t(y) * numbers.width + x;
  const std::size_t plane = std::size_t(numbers.height) * numbers.width;
  if constexpr (kWide) {
    Vector4<T> out[3];
#pragma unroll
    for (int pixel = 0; pixel < kGroup; ++pixel)
#pragma unroll
      for (int c = 0; c < 3; ++c) {
        const int place = kPlanes ? c * kGroup + pixel : pixel * 3 + c;
        out[place / 4].values[place % 4] = converted(values[pixel][c], T{});
      }
#pragma unroll
    for (int k = 0; k < 3; ++k)
      *reinterpret_cast<Vector4<T>*>(kPlanes ? image + k * plane + at : image + at * 3 + k * 4) =
          out[k];
  } else {
    for (int pixel = 0; pixel < count; ++pixel)
      for (int c = 0; c < channels; ++c)
        image[kPlanes ? c * plane + at + pixel : (at + pixel) * channels + c] =
            converted(values[pixel][c], T{});
  }
}

template <bool kWide, bool kPlanes, class T>
__global__ void __launch_bounds__(kThreads)
    transform_rows(const DeviceTransformNumbers numbers, const std::uint8_t* in,
                   const DeviceTransformRow* rows, std::uint64_t count, T* out) {
  const int groups_per_line = (numbers.width + kGroup - 1) / kGroup;
  const int group = static_cast<int>(blockIdx.x * kThreads + threadIdx.x);
  if (group >= groups_per_line * numbers.height) return;
  const int y = group / groups_per_line;
  const int x = (group - y * groups_per_line) * kGroup;
  const int pixels = kWide ? kGroup : min(kGroup, numbers.width - x);
  const std::size_t elements = std::size_t(numbers.height) * numbers.width * numbers.channels;

  for (std::uint64_t i = blockIdx.y; i < count; i += gridDim.y) {
    const DeviceTransformRow row = rows[i];
    float values[kGroup][kMaxChannels] = {};
    if (row.present != 0) {
      load<kWide>(numbers, in + i * elements, row, y, x, pixels, values);
      const bool cuts = row.mix == DeviceTransformRow::Mix::cutmix && contains_line(row.cut, y) &&
                        x < row.cut.right && x + pixels > row.cut.left;
      if (cuts || row.mix == DeviceTransformRow::Mix::mixup) {
        float others[kGroup][kMaxChannels] = {};
        load<kWide>(numbers, in + row.partner * elements, rows[row.partner], y, x, pixels, others);
#pragma unroll
        for (int pixel = 0; pixel < kGroup; ++pixel)
#pragma unroll
          for (int c = 0; c < (kWide ? 3 : kMaxChannels); ++c)
            if (!cuts)
              values[pixel][c] = blended(row.weight, values[pixel][c], others[pixel][c]);
            else if (contains_column(row.cut, x + pixel))
              values[pixel][c] = others[pixel][c];
      }
    }
    store<kWide, kPlanes>(numbers, y, x, pixels, values, out + i * elements);
  }
}

template <class T>
void launch(const DeviceTransformNumbers& numbers, bool planes, const std::byte* in,
            const DeviceTransformRow* rows, std::uint64_t count, std::byte* out,
            cudaStream_t stream) {
  const auto is_aligned = [](const void* pointer, std::size_t to) {
    return reinterpret_cast<std::uintptr_t>(pointer) % to == 0;
  };
  const bool wide = numbers.channels == 3 && numbers.width % kGroup == 0 &&
                    is_aligned(in, sizeof(std::uint32_t)) && is_aligned(out, sizeof(Vector4<T>));
  const auto kernel =
      wide     ? planes ? &transform_rows<true, true, T> : &transform_rows<true, false, T>
          : planes ? &transform_rows<false, true, T>
               : &transform_rows<false, false, T>;
  const std::uint64_t groups = std::uint64_t((numbers.width + kGroup - 1) / kGroup) *
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

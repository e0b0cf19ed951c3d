#include "nvjpeg_decoding.hpp"

#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

#include <cuda_runtime_api.h>
#include <nvjpeg.h>

namespace penstock::bench {

namespace {

void check(nvjpegStatus_t status) {
  if (status != NVJPEG_STATUS_SUCCESS)
    throw std::runtime_error("nvJPEG: status " + std::to_string(static_cast<int>(status)));
}

class Decoding final : public NvjpegDecoding {
 public:
  Decoding(nvjpegBackend_t backend, std::vector<std::span<const std::byte>> images)
      : images_(std::move(images)) {
    check(nvjpegCreateEx(backend, nullptr, nullptr, NVJPEG_FLAGS_DEFAULT, &handle_));
    check(nvjpegJpegStateCreate(handle_, &state_));
    for (const std::span<const std::byte> image : images_) {
      const auto* const data = reinterpret_cast<const unsigned char*>(image.data());
      int components = 0;
      nvjpegChromaSubsampling_t subsampling{};
      std::array<int, NVJPEG_MAX_COMPONENT> widths{};
      std::array<int, NVJPEG_MAX_COMPONENT> heights{};
      check(nvjpegGetImageInfo(handle_, data, image.size(), &components, &subsampling,
                               widths.data(), heights.data()));
      nvjpegImage_t out{};
      out.pitch[0] = 3 * static_cast<std::size_t>(widths[0]);
      void* pixels = nullptr;
      if (cudaMalloc(&pixels, out.pitch[0] * static_cast<std::size_t>(heights[0])) != cudaSuccess)
        throw std::runtime_error("no memory on the GPU");
      out.channel[0] = static_cast<unsigned char*>(pixels);
      data_.push_back(data);
      sizes_.push_back(image.size());
      outs_.push_back(out);
    }
    check(nvjpegDecodeBatchedInitialize(handle_, state_, static_cast<int>(images_.size()), 1,
                                        NVJPEG_OUTPUT_RGBI));
    decode();
    if (cudaDeviceSynchronize() != cudaSuccess) throw std::runtime_error("nvJPEG: a kernel failed");
  }
  ~Decoding() override {
    for (const nvjpegImage_t& out : outs_) (void)cudaFree(out.channel[0]);
    if (state_ != nullptr) (void)nvjpegJpegStateDestroy(state_);
    if (handle_ != nullptr) (void)nvjpegDestroy(handle_);
  }
  Decoding(const Decoding&) = delete;
  Decoding& operator=(const Decoding&) = delete;

  void decode() override {
    check(nvjpegDecodeBatched(handle_, state_, data_.data(), sizes_.data(), outs_.data(), nullptr));
  }

 private:
  std::vector<std::span<const std::byte>> images_;
  nvjpegHandle_t handle_ = nullptr;
  nvjpegJpegState_t state_ = nullptr;
  std::vector<const unsigned char*> data_;
  std::vector<std::size_t> sizes_;
  std::vector<nvjpegImage_t> outs_;
};

}  // namespace

std::unique_ptr<NvjpegDecoding> NvjpegDecoding::make(
    NvjpegBackend backend, std::vector<std::span<const std::byte>> images) {
  try {
    return std::make_unique<Decoding>(
        backend == NvjpegBackend::gpu ? NVJPEG_BACKEND_GPU_HYBRID : NVJPEG_BACKEND_HARDWARE,
        std::move(images));
  } catch (const std::runtime_error&) {
    return nullptr;
  }
}

}  // namespace penstock::bench

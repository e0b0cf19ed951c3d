// What the tests on a GPU have in common.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <penstock/device/device.hpp>

#include "src/device/cuda_owners.hpp"

namespace penstock::testing_support {

/// Skips, and says so, where there is no GPU. Has a stream of cuda:0.
class OnGpu : public testing::Test {
 protected:
  void SetUp() override {
    if (gpu_count() == 0) GTEST_SKIP() << "no GPU here";
    device::check(cudaSetDevice(0));
    device::check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  }
  void TearDown() override {
    if (stream_ != nullptr) (void)cudaStreamDestroy(stream_);
  }
  [[nodiscard]] cudaStream_t stream() const noexcept { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

/// Device memory as `stream` has it when it gets there.
inline std::vector<std::byte> to_host(std::span<const std::byte> bytes, cudaStream_t stream) {
  std::vector<std::byte> copy(bytes.size());
  device::check(
      cudaMemcpyAsync(copy.data(), bytes.data(), bytes.size(), cudaMemcpyDeviceToHost, stream));
  device::check(cudaStreamSynchronize(stream));
  return copy;
}

/// A number in device memory, 0 at first.
class Counter {
 public:
  explicit Counter(int device = 0) : device_(device), memory_(device, sizeof(unsigned long long)) {
    const device::CurrentDevice current(device);
    device::check(cudaMemset(get(), 0, sizeof *get()));
    device::check(cudaDeviceSynchronize());  // other streams do not wait for this
  }
  [[nodiscard]] unsigned long long* get() const noexcept {
    return reinterpret_cast<unsigned long long*>(memory_.data());
  }
  /// As the device has it when all that it was given is done.
  [[nodiscard]] unsigned long long read() const {
    const device::CurrentDevice current(device_);
    unsigned long long count = 0;
    device::check(cudaDeviceSynchronize());
    device::check(cudaMemcpy(&count, get(), sizeof count, cudaMemcpyDeviceToHost));
    return count;
  }

 private:
  int device_;
  device::DeviceMemory memory_;
};

/// How often a test does something that it does `on_gpu` times on a GPU. In simulation it is done with many seeds instead.
inline std::uint64_t steps(std::uint64_t on_gpu) {
#ifdef PENSTOCK_SIMULATED_CUDA
  return std::max<std::uint64_t>(on_gpu / 25, 2);
#else
  return on_gpu;
#endif
}

}  // namespace penstock::testing_support

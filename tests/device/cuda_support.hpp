// What the tests on a GPU have in common.
#pragma once

#include <cstddef>
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

}  // namespace penstock::testing_support

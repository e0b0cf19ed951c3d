// Needs a GPU, and says so where there is none.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

#include <gtest/gtest.h>

#include "src/device/transfer.hpp"
#include "tests/device/cuda_support.hpp"

namespace penstock {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

class CudaTransferGpu : public testing_support::OnGpu {};

TEST_F(CudaTransferGpu, ReturnsTheSlotWhenTheCopyHasCompleted) {
  auto memory = staging::HostMemory::make(kMiB);
  device::pin_host_memory(*memory, {Device::Kind::cuda, 0});
  const auto ring = staging::StagingRing::make(memory, memory->bytes(), 1, kMiB);
  const auto transfer =
      device::open_transfer({Device::Kind::cuda, 0}, {.slots = 2, .slice_bytes = kMiB});
  for (int round = 0; round < 100; ++round) {
    auto slot = std::make_shared<staging::StagingLease>(
        ring->acquire({}));  // blocks until the copy is done
    auto slice = transfer->reserve({});
    ASSERT_NE(slice, nullptr);
    const auto bytes = slot->bytes();
    transfer->enqueue(*slice, {.slot = std::move(slot), .bytes = bytes});
    transfer->transform(*slice);
    slice->synchronize();
  }
}

TEST_F(CudaTransferGpu, TellsWhatTheDeviceDidAndWhen) {
  auto memory = staging::HostMemory::make(kMiB);
  device::pin_host_memory(*memory, {Device::Kind::cuda, 0});
  const auto ring = staging::StagingRing::make(memory, memory->bytes(), 1, kMiB);
  std::vector<device::DeviceSpan> spans;
  {
    const auto transfer = device::open_transfer(
        {Device::Kind::cuda, 0},
        {.slots = 1, .slice_bytes = kMiB, .on_span = [&](const device::DeviceSpan& span) {
           spans.push_back(span);
         }});
    for (std::uint64_t step = 0; step < 10; ++step) {
      auto slot = std::make_shared<staging::StagingLease>(ring->acquire({}));
      auto slice = transfer->reserve({});
      const auto bytes = slot->bytes();
      transfer->enqueue(*slice, {.slot = std::move(slot), .bytes = bytes, .step = step});
      transfer->transform(*slice);
      slice->synchronize();
    }
  }
  std::uint64_t copies = 0;
  for (const device::DeviceSpan& span : spans) {
    EXPECT_LE(span.begin_ns, span.end_ns);
    if (span.work != device::DeviceSpan::Work::copy) continue;
    EXPECT_EQ(span.step, copies++);
  }
  EXPECT_EQ(copies, 10U);
}

TEST_F(CudaTransferGpu, SlicesOutliveTheirTransfer) {
  std::shared_ptr<device::DeviceSlice> slice;
  {
    auto memory = staging::HostMemory::make(kMiB);
    device::pin_host_memory(*memory, {Device::Kind::cuda, 0});
    const auto ring = staging::StagingRing::make(memory, memory->bytes(), 1, kMiB);
    const auto transfer =
        device::open_transfer({Device::Kind::cuda, 0}, {.slots = 1, .slice_bytes = kMiB});
    auto slot = std::make_shared<staging::StagingLease>(ring->acquire({}));
    std::fill(slot->bytes().begin(), slot->bytes().end(), std::byte{42});
    slice = transfer->reserve({});
    const auto bytes = slot->bytes();
    transfer->enqueue(*slice, {.slot = std::move(slot), .bytes = bytes});
    transfer->transform(*slice);
  }
  slice->wait_on(stream());
  const auto bytes = testing_support::to_host({slice->data(), kMiB}, stream());
  EXPECT_TRUE(std::ranges::all_of(bytes, [](std::byte byte) { return byte == std::byte{42}; }));
}

}  // namespace
}  // namespace penstock

// Needs a GPU, and says so where there is none; the deep tests are in gpu-check's own set.
#include <cstddef>
#include <cstdint>
#include <memory>

#include <gtest/gtest.h>

#include <penstock/device/transfer.hpp>

namespace penstock {
namespace {

TEST(CudaTransferGpu, ReturnsTheSlotWhenTheCopyHasCompleted) {
  if (gpu_count() == 0) GTEST_SKIP() << "no GPU here";
  auto memory = HostMemory::make(std::size_t{1} << 20);
  pin(*memory);
  const auto ring = StagingRing::make(memory, memory->bytes(), 1, std::size_t{1} << 20);
  const auto transfer = open_transfer({Device::Kind::cuda, 0}, 2, std::size_t{1} << 20);
  for (int round = 0; round < 100; ++round) {
    auto slot = std::make_shared<StagingLease>(ring->acquire({}));  // blocks until the copy is done
    auto slice = transfer->reserve({});
    ASSERT_NE(slice, nullptr);
    const auto bytes = slot->bytes();
    transfer->enqueue(*slice, std::move(slot), bytes);
    slice->synchronize();
    EXPECT_TRUE(slice->arrived());
  }
}

}  // namespace
}  // namespace penstock

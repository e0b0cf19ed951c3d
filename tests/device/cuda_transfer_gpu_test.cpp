// Needs a GPU, and says so where there is none.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <future>
#include <memory>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/device/cuda_owners.hpp"
#include "src/device/cuda_reaper.hpp"
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

// A kernel that does not end until it is told to, as one that waits for another process.
class Unending {
 public:
  explicit Unending(cudaStream_t stream) {
    device::check(cudaLaunchHostFunc(
        stream, [](void* self) { static_cast<Unending*>(self)->ended_.get_future().wait(); },
        this));
  }
  void end() { ended_.set_value(); }

 private:
  std::promise<void> ended_;
};

TEST_F(CudaTransferGpu, EndsAtOnceWhileItsSlicesAreRead) {
  auto memory = staging::HostMemory::make(2 * kMiB);
  device::pin_host_memory(*memory, {Device::Kind::cuda, 0});
  auto ring = staging::StagingRing::make(memory, memory->bytes(), 2, kMiB);
  const std::weak_ptr<staging::HostMemory> pinned = memory;
  auto transfer = device::open_transfer({Device::Kind::cuda, 0}, {.slots = 1, .slice_bytes = kMiB});
  const auto send = [&] {
    auto slot = std::make_shared<staging::StagingLease>(ring->acquire({}));
    std::ranges::fill(slot->bytes(), std::byte{42});
    auto slice = transfer->reserve({});
    const auto bytes = slot->bytes();
    transfer->enqueue(*slice, {.slot = std::move(slot), .bytes = bytes});
    transfer->transform(*slice);
    return slice;
  };
  auto first = send();
  first->wait_on(stream());
  Unending reader(stream());
  const device::DeviceMemory copy(0, kMiB);
  first->copy_to(copy.data(), {first->data(), kMiB}, stream());
  first.reset();
  auto second = send();  // its copy waits for the reader

  // The reader does not end by itself: waiting for it would take for ever.
  second.reset();
  transfer.reset();
  ring.reset();
  memory.reset();
  EXPECT_FALSE(pinned.expired()) << "a copy from there is on its way";

  reader.end();
  EXPECT_TRUE(device::wait_until_freed(std::chrono::seconds(300)));
  EXPECT_TRUE(pinned.expired());
  const auto bytes = testing_support::to_host({copy.data(), kMiB}, stream());
  EXPECT_THAT(bytes, testing::Each(std::byte{42})) << "what the reader read was not freed under it";
}

TEST_F(CudaTransferGpu, WhatNeverEndsKeepsNobodyFromWhatIsFreed) {
  std::atomic<bool> first_is_over = false;
  std::atomic<bool> second_is_over = false;
  std::atomic<int> freed = 0;
  device::free_when_over([&] { return first_is_over.load(); }, [&] { ++freed; });
  device::free_when_over([&] { return second_is_over.load(); }, [&] { ++freed; });
  const std::uint64_t seen = device::count_of_frees();
  EXPECT_FALSE(device::wait_for_a_free(seen, std::chrono::steady_clock::now()));
  second_is_over = true;
  while (freed == 0) std::this_thread::yield();  // before the wait begins
  EXPECT_TRUE(
      device::wait_for_a_free(seen, std::chrono::steady_clock::now() + std::chrono::seconds(300)));
  EXPECT_EQ(freed, 1);
  first_is_over = true;
  EXPECT_TRUE(device::wait_until_freed(std::chrono::seconds(300)));
  EXPECT_EQ(freed, 2);
}

// A forked process ends here, behind what tests made and before LeakSanitizer's look at threads that are not there.
const struct EndsForked {
  pid_t process = getpid();
  ~EndsForked() {
    if (getpid() != process) _exit(0);
  }
} ends_forked;

// There the thread that frees is not.
TEST_F(CudaTransferGpu, AProcessThatWasForkedEnds) {
  std::atomic<bool> is_over = false;
  std::atomic<int> asked = 0;
  device::free_when_over([&] { return ++asked, is_over.load(); }, [] {});
  // A thread that starts may hold locks of the allocator.
  while (asked < 2) std::this_thread::yield();
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) std::exit(0);  // with what static objects do at the end
  int status = 0;
  pid_t ended = 0;
  for (int waited = 0; waited < 30'000 && ended == 0; ++waited) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    ended = waitpid(child, &status, WNOHANG);
  }
  if (ended == 0) {
    kill(child, SIGKILL);
    (void)waitpid(child, &status, 0);
  }
  is_over = true;
  EXPECT_TRUE(device::wait_until_freed(std::chrono::seconds(300)));
  EXPECT_EQ(ended, child) << "it hangs";
}

}  // namespace
}  // namespace penstock

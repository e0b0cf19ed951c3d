#include "src/staging/ring.hpp"

#include <cstdint>
#include <future>
#include <set>
#include <stdexcept>
#include <stop_token>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "src/staging/host_memory.hpp"

namespace penstock {
namespace {

std::shared_ptr<staging::StagingRing> make_ring(std::size_t slots, std::size_t slot_bytes = 256) {
  auto memory = staging::HostMemory::make(slots * slot_bytes);
  return staging::StagingRing::make(memory, memory->bytes(), slots, slot_bytes);
}

TEST(HostMemory, IsAlignedToHugePagesAndZeroed) {
  const auto memory = staging::HostMemory::make(std::size_t{5} << 20);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory->bytes().data()) % (2U << 20), 0U);
  for (const std::byte byte : memory->bytes()) ASSERT_EQ(byte, std::byte{0});
}

TEST(HostMemory, RefusesWhatTheSystemDoesNotHave) {
  EXPECT_THROW((void)staging::HostMemory::make(SIZE_MAX / 2), std::runtime_error);
  EXPECT_THROW((void)staging::HostMemory::make(SIZE_MAX - 4096), std::runtime_error);
}

TEST(HostMemory, LetsGoOfThePinBeforeTheMemory) {
  auto memory = staging::HostMemory::make(4096);
  bool readable = false;
  std::byte* const data = memory->bytes().data();
  memory->keep(std::shared_ptr<void>(data, [&readable](void* at) {
    *static_cast<volatile char*>(at) = 1;  // would fault after the unmapping
    readable = true;
  }));
  memory.reset();
  EXPECT_TRUE(readable);
}

TEST(StagingRing, LeasesEverySlotOnceAndNoMore) {
  const auto ring = make_ring(3);
  std::vector<staging::StagingLease> leases;
  std::set<std::byte*> places;
  for (int i = 0; i < 3; ++i) {
    leases.push_back(ring->try_acquire());
    ASSERT_TRUE(leases.back());
    places.insert(leases.back().bytes().data());
    EXPECT_EQ(leases.back().bytes().size(), 256U);
  }
  EXPECT_EQ(places.size(), 3U);
  EXPECT_EQ(ring->leased(), 3U);
  EXPECT_FALSE(ring->try_acquire());
  leases.pop_back();
  EXPECT_TRUE(ring->try_acquire());
}

TEST(StagingRing, AcquireBlocksWhileEverySlotIsLeased) {
  const auto ring = make_ring(1);
  staging::StagingLease held = ring->try_acquire();
  auto waiter = std::async(std::launch::async, [&] { return ring->acquire({}).index(); });
  EXPECT_EQ(waiter.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
  held.release();
  EXPECT_EQ(waiter.get(), 0U);
  EXPECT_EQ(ring->leased(), 0U);
}

TEST(StagingRing, AcquireReturnsAnEmptyLeaseWhenStopped) {
  const auto ring = make_ring(1);
  const staging::StagingLease held = ring->try_acquire();
  std::stop_source stop;
  auto waiter =
      std::async(std::launch::async, [&] { return bool(ring->acquire(stop.get_token())); });
  stop.request_stop();
  EXPECT_FALSE(waiter.get());
}

TEST(StagingRing, LeasesOutliveTheRingsOwner) {
  auto ring = make_ring(2);
  staging::StagingLease lease = ring->try_acquire();
  ring.reset();
  lease.bytes()[0] = std::byte{7};  // ASan would tell
  EXPECT_EQ(lease.bytes()[0], std::byte{7});
}

TEST(StagingRing, AMovedFromLeaseReturnsNothing) {
  const auto ring = make_ring(2);
  staging::StagingLease first = ring->try_acquire();
  staging::StagingLease second = std::move(first);
  first.release();  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(ring->leased(), 1U);
  second = ring->try_acquire();  // the old slot goes back
  EXPECT_EQ(ring->leased(), 1U);
}

TEST(StagingRing, NeverLeasesASlotToTwoThreads) {
  const auto ring = make_ring(3);
  std::vector<std::jthread> threads;
  std::atomic<int> clashes = 0;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 2'000; ++i) {
        const staging::StagingLease lease = ring->acquire({});
        auto* mark = reinterpret_cast<std::atomic<int>*>(lease.bytes().data());
        if (mark->fetch_add(1) != 0) ++clashes;
        mark->fetch_sub(1);
      }
    });
  threads.clear();
  EXPECT_EQ(clashes, 0);
  EXPECT_EQ(ring->leased(), 0U);
}

TEST(StagingRing, RefusesSlotsThatDoNotFit) {
  auto memory = staging::HostMemory::make(1000);
  EXPECT_THROW((void)staging::StagingRing::make(memory, memory->bytes(), 0, 10),
               std::invalid_argument);
  EXPECT_THROW((void)staging::StagingRing::make(memory, memory->bytes(), 11, 100),
               std::invalid_argument);
}

}  // namespace
}  // namespace penstock

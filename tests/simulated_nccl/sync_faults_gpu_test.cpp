// Sync over the simulated NCCL, where ranks stay away, stop, fail and lose their devices.
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/sync/communicator.hpp>
#include <penstock/sync/gradient_sync.hpp>
#include <penstock/sync/replicas.hpp>

#include "src/device/cuda_owners.hpp"
#include "src/sync/device/device_memory.hpp"
#include "testing/simulated_cuda/simulated_cuda.hpp"
#include "testing/simulated_nccl/simulated_nccl.hpp"
#include "tests/simulated_nccl/ranks.hpp"
#include "tests/sync/gradient_sets.hpp"

namespace penstock {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using testing::AnyOf;
using testing::HasSubstr;

// What ends at once does so long before this is over.
constexpr double kTimeout = 300;
constexpr auto kAtOnce = 150s;

class SyncFaults : public test::NcclTest {
 protected:
  void SetUp() override {
    ::setenv("PENSTOCK_NCCL_LIBRARY", PENSTOCK_SIMULATED_NCCL, 0);
    NcclTest::SetUp();
    if (test::devices() < 4) GTEST_SKIP() << "fewer than 4 simulated GPUs";
    for (int index = 0; index < 4; ++index) devices_.push_back({Device::Kind::cuda, index});
  }
  /// What a run of four replicas ends with.
  std::string end_of(double timeout_s, const std::function<void(ReplicaContext&)>& body) {
    try {
      Replicas(devices_, {.timeout = Seconds(timeout_s)}).run(body);
    } catch (const std::exception& error) {
      return error.what();
    }
    return "(nothing)";
  }
  std::vector<Device> devices_;
};

// One exchange of gradients; throws what check() says.
void exchange(
    ReplicaContext& replica, const std::function<void()>& in_the_middle = [] {}) {
  test::GradientSet gradients({{DType::f32, 10'000}, {DType::f32, 10}}, replica.device());
  GradientSync sync(replica.communicator(), gradients.list(),
                    {.combine = Combine::sum, .buckets = {.count = 1}});
  gradients.fill([](auto, auto) { return 1; });
  sync.ready(1, replica.stream());
  sync.ready(0, replica.stream());
  (void)sync.wait(replica.stream());
  in_the_middle();
  sync::synchronize(replica.device(), replica.stream());
  sync.check();
  gradients.expect([&](auto, auto) { return replica.size(); });
}

// The first four calls compare the lists of gradients, the last two add them up.
TEST_F(SyncFaults, ARankThatNeverComesIsToldWhenTheTimeIsUp) {
  for (const std::uint64_t call : {5, 6}) {
    SCOPED_TRACE(call);
    simulated_nccl::repair();
    simulated_nccl::be_absent(1, call);
    EXPECT_THAT(end_of(2, [](ReplicaContext& replica) { exchange(replica); }),
                HasSubstr("waited 2 s in its collective"));
  }
}

TEST_F(SyncFaults, AnAsynchronousErrorEndsAllAtOnce) {
  for (const std::uint64_t call : {5, 6}) {
    SCOPED_TRACE(call);
    simulated_nccl::repair();
    simulated_nccl::fail(1, call, ncclRemoteError);
    const auto begin = Clock::now();
    EXPECT_THAT(end_of(kTimeout, [](ReplicaContext& replica) { exchange(replica); }),
                HasSubstr("remote process exited or there was a network error"));
    EXPECT_LT(Clock::now() - begin, kAtOnce);
  }
}

TEST_F(SyncFaults, ARankThatNeverComesToTheListsIsToldToo) {
  for (const std::uint64_t call : {1, 2, 3, 4}) {
    SCOPED_TRACE(call);
    simulated_nccl::repair();
    simulated_nccl::be_absent(1, call);
    EXPECT_THAT(end_of(2, [](ReplicaContext& replica) { exchange(replica); }),
                HasSubstr("waited 2 s in its collective"));
  }
}

TEST_F(SyncFaults, AnAsynchronousErrorInTheListsEndsAllAtOnce) {
  for (const std::uint64_t call : {1, 2, 3, 4}) {
    SCOPED_TRACE(call);
    simulated_nccl::repair();
    simulated_nccl::fail(1, call, ncclRemoteError);
    const auto begin = Clock::now();
    EXPECT_THAT(end_of(kTimeout, [](ReplicaContext& replica) { exchange(replica); }),
                HasSubstr("remote process exited or there was a network error"));
    EXPECT_LT(Clock::now() - begin, kAtOnce);
  }
}

TEST_F(SyncFaults, ALostDeviceEndsAllAtOnce) {
  EXPECT_EXIT(
      {
        simulated_nccl::stop_in_the_middle(1, 6);
        const auto begin = Clock::now();
        const std::string end = end_of(kTimeout, [](ReplicaContext& replica) {
          exchange(replica, [&] {
            if (replica.id() == 2) simulated_cuda::lose_device(2, cudaErrorIllegalAddress);
          });
        });
        std::fprintf(stderr, "%s\n", end.c_str());
        ::_exit(Clock::now() - begin < kAtOnce ? 0 : 1);
      },
      testing::ExitedWithCode(0), "an illegal memory access");
}

TEST_F(SyncFaults, AnExceptionWhileOthersWaitInStreamsEndsAllAtOnce) {
  simulated_nccl::stop_in_the_middle(1, 6);
  const auto begin = Clock::now();
  EXPECT_EQ(end_of(kTimeout,
                   [](ReplicaContext& replica) {
                     exchange(replica, [&] {
                       if (replica.id() == 2) throw std::range_error("no such label");
                     });
                   }),
            "no such label");
  EXPECT_LT(Clock::now() - begin, kAtOnce);
}

// An abort frees memory, which waits for what else the device does: here for the kernel of the other communicator.
TEST_F(SyncFaults, TwoCommunicatorsOfADeviceEndTogether) {
  simulated_nccl::be_absent(1, 1);
  simulated_nccl::be_absent(1, 2);
  const auto begin = Clock::now();
  // They outlive the exception.
  std::array<std::unique_ptr<device::CudaStream>, 4> streams;
  std::array<std::unique_ptr<Communicator>, 4> copies;
  std::array<std::shared_ptr<std::byte>, 4> memory;
  const auto body = [&](ReplicaContext& replica) {
    auto& own = memory[replica.id()] = sync::allocate_on(replica.device(), 1024);
    auto& copy = copies[replica.id()] = replica.communicator().duplicate();
    auto& other = streams[replica.id()] =
        std::make_unique<device::CudaStream>(replica.device().index);
    copy->all_reduce(TensorView(own.get(), DType::f32, Shape{100}), ReduceOp::sum, other->get());
    replica.communicator().all_reduce(TensorView(own.get() + 512, DType::f32, Shape{1}),
                                      ReduceOp::sum, replica.stream());
    if (replica.id() == 2) throw std::range_error("no such label");
    sync::synchronize(replica.device(), replica.stream());
  };
  EXPECT_EQ(end_of(kTimeout, body), "no such label");
  copies = {};
  EXPECT_LT(Clock::now() - begin, kAtOnce);
}

// Calls block where a stream can take no more, and the time is up all the same.
TEST_F(SyncFaults, ARankThatNeverComesIsToldToCallsThatBlock) {
  simulated_nccl::be_absent(1, 5);
  EXPECT_THAT(end_of(3,
                     [](ReplicaContext& replica) {
                       const auto memory = sync::allocate_on(replica.device(), 1024);
                       const TensorView value(memory.get(), DType::f32, Shape{100});
                       for (int call = 0; call < 2000; ++call)
                         replica.communicator().all_reduce(value, ReduceOp::sum, replica.stream());
                       sync::synchronize(replica.device(), replica.stream());
                     }),
              HasSubstr("waited 3 s in its collective"));
}

// What unwinds frees the memory of calls before, which must not be at work any more.
TEST_F(SyncFaults, ACallThatThrowsLeavesNothingAtWorkOnMemory) {
  constexpr int kRuns = 20;
  std::atomic<int> left{0}, at_work{0};
  for (int run = 0; run < kRuns; ++run) {
    simulated_nccl::repair();
    simulated_nccl::be_absent(1, 1);
    std::vector<std::shared_ptr<std::byte>> memory(
        4);  // it outlives the run, so that a fault is counted and does not abort
    const auto body = [&](ReplicaContext& replica) {
      auto& own = memory[replica.id()] = sync::allocate_on(replica.device(), 1024);
      const TensorView value(own.get(), DType::f32, Shape{100});
      try {
        replica.communicator().all_reduce(value, ReduceOp::sum, replica.stream());
        if (replica.id() == 2) throw std::range_error("no such label");
        replica.communicator().all_reduce(value, ReduceOp::sum, replica.stream());
      } catch (const Error&) {
        ++left;
        if (cudaStreamQuery(replica.stream()) != cudaSuccess) ++at_work;
        throw;
      }
    };
    EXPECT_EQ(end_of(kTimeout, body), "no such label");
  }
  EXPECT_EQ(left, 3 * kRuns);
  EXPECT_EQ(at_work, 0);
}

TEST_F(SyncFaults, SlowRanksAreWaitedFor) {
  simulated_nccl::slow_down(3, 30'000);
  EXPECT_EQ(end_of(kTimeout, [](ReplicaContext& replica) { exchange(replica); }), "(nothing)");
}

}  // namespace
}  // namespace penstock

// Replicas on all GPUs of this machine, one NCCL rank each; with one GPU a world of one.
#include <atomic>
#include <bit>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/sync/communicator.hpp>
#include <penstock/sync/gradient_sync.hpp>
#include <penstock/sync/rendezvous.hpp>
#include <penstock/sync/replicas.hpp>

#include "src/core/half.hpp"
#include "src/device/cuda_owners.hpp"
#include "src/sync/device/device_memory.hpp"
#include "tests/sync/gradient_sets.hpp"
#ifdef PENSTOCK_SIMULATED_CUDA
#include "testing/simulated_cuda/simulated_cuda.hpp"
#endif

namespace penstock {
namespace {

using testing::ThrowsMessage;

class CudaReplicasGpu : public testing::Test {
 protected:
  void SetUp() override {
    if (gpu_count() == 0) GTEST_SKIP() << "no GPU here";
    for (int index = 0; index < gpu_count(); ++index)
      devices_.push_back({Device::Kind::cuda, index});
  }
  std::vector<Device> devices_;
};

TEST_F(CudaReplicasGpu, BucketsChangeNothing) {
  // A simulated device is slow, and this is done with many seeds.
#ifdef PENSTOCK_SIMULATED_CUDA
  const std::vector<std::uint64_t> counts{10};
  const std::vector<std::uint64_t> bytes{4096};
#else
  const std::vector<std::uint64_t> counts{1, 10, 1000};
  const std::vector<std::uint64_t> bytes{1, 100, 4096, 100'000};
#endif
  Replicas(devices_).run([&](ReplicaContext& replica) {
    test::expect_buckets_change_nothing(replica.communicator(), counts, bytes);
  });
}

TEST_F(CudaReplicasGpu, MicroStepsEqualOneBigBatch) {
  Replicas(devices_).run([](ReplicaContext& replica) {
    test::expect_micro_steps_equal_one_batch(replica.communicator());
  });
}

TEST_F(CudaReplicasGpu, SixteenBitsOnTheWireStayNear) {
  Replicas(devices_).run(
      [](ReplicaContext& replica) { test::expect_narrow_wires_stay_near(replica.communicator()); });
}

// SEMANTICS proof 12.
TEST_F(CudaReplicasGpu, MirroredVariablesAssignedInEveryReplica) {
  Replicas replicas(devices_);
  const double n = replicas.size();
  Mirrored<double> ids(replicas);  // on each device its own id, which none of the calls may do
  for (const auto& [aggregation, expected] : {std::pair{Aggregation::mean, (n - 1) / 2},
                                              {Aggregation::sum, n * (n - 1) / 2},
                                              {Aggregation::first, 0.0}}) {
    Mirrored<double> variable(replicas, 1, aggregation);
    replicas.run([&](ReplicaContext& replica) {
      const double id = replica.id();
      const auto place = ids.get(replica);
      sync::copy_to(replica.device(), reinterpret_cast<std::byte*>(place.data()),
                    std::as_bytes(std::span(&id, 1)));
      variable.assign(replica, place);
    });
    for (std::size_t local = 0; local < replicas.local_size(); ++local)
      EXPECT_EQ(variable.read(local)[0], expected);
  }
  Mirrored<float> outside(replicas, 3);
  outside.assign(std::vector<float>{1, 2, 3});
  outside.assign_sub(std::vector<float>{1, 1, 1});
  for (std::size_t local = 0; local < replicas.local_size(); ++local)
    EXPECT_EQ(outside.read(local), (std::vector<float>{0, 1, 2}));
}

TEST_F(CudaReplicasGpu, OwnersUpdateAndEverybodyGetsTheResult) {
  Replicas(devices_).run([](ReplicaContext& replica) {
    const std::vector<test::GradientKind> kinds{
        {DType::f32, 1000}, {DType::f64, 7}, {DType::f32, 90}};
    test::GradientSet variables(kinds, replica.device());
    test::GradientSet gradients(kinds, replica.device());
    ShardedVariables sharded(replica.communicator(), variables.list(), gradients.list());
    gradients.fill(
        [&](std::size_t g, std::size_t) { return replica.id() + static_cast<double>(g); });
    sharded.reduce(ReduceOp::sum);
    const auto sums = gradients.bytes();
    for (const std::size_t i : sharded.owned())
      sync::copy_to(replica.device(), variables.list()[i].data.raw(), sums[i]);
    sharded.broadcast();
    const double n = replica.size();
    variables.expect(
        [&](std::size_t g, std::size_t) { return n * (n - 1) / 2 + n * static_cast<double>(g); });
  });
}

TEST_F(CudaReplicasGpu, AnExceptionEndsAllAndIsRethrown) {
  Replicas replicas(devices_);
  const std::uint32_t last = replicas.size() - 1;
  EXPECT_THAT(
      [&] {
        replicas.run([&](ReplicaContext& replica) {
          replica.communicator().barrier();
          if (replica.id() == last) throw std::range_error("no such label");
          replica.communicator().barrier();
        });
      },
      ThrowsMessage<std::range_error>("no such label"));
}

TEST_F(CudaReplicasGpu, AnIdMayBeCarriedByTheCaller) {
  const std::string id = nccl_unique_id();
  EXPECT_EQ(id.size(), 128);
  const auto alone = nccl_communicator(id, 0, 1, devices_[0]);
  alone->barrier();
  EXPECT_EQ(alone->duplicate()->size(), 1);
  EXPECT_THROW((void)nccl_communicator("short", 0, 1, devices_[0]), std::invalid_argument);
}

TEST_F(CudaReplicasGpu, AreStartedAndStoppedAgainAndAgain) {
#ifdef PENSTOCK_SIMULATED_CUDA
  constexpr int kRounds = 100;
#else
  constexpr int kRounds = 10;  // NCCL takes half a second for each
#endif
  for (int round = 0; round < kRounds; ++round) {
    Replicas replicas(devices_);
    replicas.run([](ReplicaContext& replica) { replica.communicator().barrier(); });
  }
}

TEST_F(CudaReplicasGpu, RunAgainAfterAnException) {
  Replicas replicas(devices_);
  for (int round = 0; round < 3; ++round) {
    EXPECT_THROW(replicas.run([&](ReplicaContext& replica) {
      if (replica.id() == 0) throw std::range_error("no such label");
      replica.communicator().barrier();
    }),
                 std::range_error);
    replicas.run([](ReplicaContext& replica) { replica.communicator().barrier(); });
  }
}

TEST_F(CudaReplicasGpu, EachDeviceIsNamedOnce) {
  EXPECT_THAT(
      [&] {
        (void)Replicas({devices_[0], devices_[0]});
      },
      ThrowsMessage<std::invalid_argument>(testing::HasSubstr("cuda:0 is named more than once")));
}

// Pieces of 512 bytes, a rest, and nothing at all.
TEST_F(CudaReplicasGpu, HalvesOfAnySizeAreAddedUp) {
  Replicas(devices_).run([](ReplicaContext& replica) {
    Communicator& all = replica.communicator();
    for (const std::size_t count : {0, 1, 255, 256, 257, 1000, 4096}) {
      const auto place = sync::allocate_on(replica.device(), count * 2);
      std::vector<std::uint16_t> values(count);
      const auto number = static_cast<float>(replica.id() + 1);
      for (std::size_t k = 0; k < count; ++k)
        values[k] = std::bit_cast<std::uint16_t>(core::to_half(number * static_cast<float>(k % 7)));
      sync::copy_to(replica.device(), place.get(), std::as_bytes(std::span(values)));
      all.all_reduce(TensorView(place.get(), DType::f16, Shape{static_cast<std::int64_t>(count)}),
                     ReduceOp::sum, replica.stream());
      sync::synchronize(replica.device(), replica.stream());
      sync::copy_from(replica.device(), std::as_writable_bytes(std::span(values)), place.get());
      const auto sum = static_cast<float>(all.size() * (all.size() + 1) / 2);
      for (std::size_t k = 0; k < count; ++k)
        ASSERT_EQ(values[k],
                  std::bit_cast<std::uint16_t>(core::to_half(sum * static_cast<float>(k % 7))))
            << count;
    }
  });
}

// The thread that watches NCCL's work looks at it all the time.
TEST_F(CudaReplicasGpu, ACaptureGoesOnWhileCollectivesRun) {
  Replicas(devices_).run([](ReplicaContext& replica) {
    Communicator& all = replica.communicator();
    const auto place = sync::allocate_on(replica.device(), 4);
    const TensorView word(place.get(), DType::f32, Shape{1});
    const device::CudaStream captured(replica.device().index);
    all.barrier();
    if (replica.id() + 1 == all.size()) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    all.all_reduce(word, ReduceOp::sum, replica.stream());  // the others wait for the last one
    if (replica.id() == 0) {
      cudaGraph_t graph = nullptr;
      device::check(cudaStreamBeginCapture(captured.get(), cudaStreamCaptureModeGlobal));
      std::this_thread::sleep_for(std::chrono::milliseconds(60));
      EXPECT_EQ(cudaStreamEndCapture(captured.get(), &graph), cudaSuccess);
      if (graph != nullptr) device::check(cudaGraphDestroy(graph));
    }
    all.barrier();
  });
}

TEST_F(CudaReplicasGpu, CollectivesAreRefusedInACapture) {
  if (devices_.size() < 2) GTEST_SKIP() << "one GPU here, where nothing is exchanged";
  Replicas(devices_).run([](ReplicaContext& replica) {
    const auto place = sync::allocate_on(replica.device(), 4);
    const TensorView word(place.get(), DType::f32, Shape{1});
    const device::CudaStream captured(replica.device().index);
    cudaGraph_t graph = nullptr;
    device::check(cudaStreamBeginCapture(captured.get(), cudaStreamCaptureModeThreadLocal));
    EXPECT_THROW(replica.communicator().all_reduce(word, ReduceOp::sum, captured.get()),
                 std::logic_error);
    EXPECT_EQ(cudaStreamEndCapture(captured.get(), &graph), cudaSuccess);
    if (graph != nullptr) device::check(cudaGraphDestroy(graph));
  });
}

#ifdef PENSTOCK_SIMULATED_CUDA

// In a process of its own: a context stays.
TEST(CudaReplicasContextGpu, ReplicasMakeNothingOnADeviceOfOthers) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  std::vector<Device> devices;
  for (int index = 1; index < gpu_count(); ++index) devices.push_back({Device::Kind::cuda, index});
  if (devices.empty()) GTEST_SKIP() << "one GPU here";
  EXPECT_EXIT(
      {
        Replicas(devices).run([](ReplicaContext& replica) {
          test::GradientSet gradients({{DType::f32, 1000}, {DType::f16, 10}}, replica.device());
          GradientSync sync(replica.communicator(), gradients.list());
          for (int step = 0; step < 3; ++step) {
            sync.ready(1, replica.stream());
            sync.ready(0, replica.stream());
            (void)sync.wait(replica.stream());
          }
          sync::synchronize(replica.device(), replica.stream());
          std::this_thread::sleep_for(std::chrono::milliseconds(20));  // who watches looks, too
          sync.check();
        });
        std::fprintf(stderr, "context on 0: %d", simulated_cuda::has_context(0));
        std::_Exit(0);
      },
      testing::ExitedWithCode(0), "context on 0: 0");
}

// In a process of its own, which has no NCCL yet.
TEST(NcclLibraryGpu, ThePreferredOneIsTakenBeforeTheSystems) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const char* const simulated = std::getenv("PENSTOCK_NCCL_LIBRARY");
  ASSERT_NE(simulated, nullptr);
  const std::string library = simulated;
  EXPECT_EXIT(
      {
        ::unsetenv("PENSTOCK_NCCL_LIBRARY");
        const auto alone = nccl_communicator(
            Rendezvous::via_exchange([](const std::string& own) { return own; }, 0, 1),
            {Device::Kind::cuda, 0}, {.library = library});
        alone->barrier();
        std::fprintf(stderr, "%u of simulated_nccl", alone->size());
        std::_Exit(0);
      },
      testing::ExitedWithCode(0), "1 of simulated_nccl");
}

// What the others have queued, in a duplicate of the communicator, ends at once and not when the time is up; and its
// results are not taken for good.
TEST_F(CudaReplicasGpu, ALostDeviceEndsGradientSyncsOfTheOthersAtOnce) {
  if (devices_.size() < 2) GTEST_SKIP() << "one GPU here";
  const auto begin = std::chrono::steady_clock::now();
  std::atomic<std::uint32_t> queued = 0;
  std::atomic<int> refused = 0;
  EXPECT_THROW(Replicas(devices_, {.timeout = Seconds(300)}).run([&](ReplicaContext& replica) {
    test::GradientSet gradients({{DType::f32, 1000}, {DType::f32, 10}}, replica.device());
    GradientSync sync(replica.communicator(), gradients.list());
    const bool last = replica.id() + 1 == replica.size();
    // Its gradients never come, and with them its part of the exchange.
    if (last) {
      ASSERT_TRUE(simulated_cuda::enqueue_polled(replica.stream(), "a backward pass that hangs",
                                                 [] { return simulated_cuda::Polled::waits; }));
    }
    sync.ready(1, replica.stream());
    sync.ready(0, replica.stream());
    (void)sync.wait(replica.stream());
    ++queued;
    if (last) {
      while (queued < replica.size()) std::this_thread::yield();
      simulated_cuda::lose_device(replica.device().index, cudaErrorECCUncorrectable);
    }
    sync::synchronize(replica.device(), replica.stream());
    try {
      sync.check();
    } catch (const SyncError&) {
      ++refused;
      throw;
    }
  }),
               CudaError);
  simulated_cuda::repair();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(150));
  EXPECT_EQ(refused, static_cast<int>(devices_.size()) - 1);
}

#endif

}  // namespace
}  // namespace penstock

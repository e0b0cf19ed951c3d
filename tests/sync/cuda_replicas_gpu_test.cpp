// Replicas on all GPUs of this machine, one NCCL rank each; with one GPU a world of one.
#include <chrono>
#include <stdexcept>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/sync/mirrored.hpp>
#include <penstock/sync/nccl.hpp>
#include <penstock/sync/placement.hpp>
#include <penstock/sync/replicas.hpp>

#include "tests/sync/gradient_sets.hpp"

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
  Replicas(devices_).run([](ReplicaContext& replica) {
    test::expect_buckets_change_nothing(replica.communicator(), {1, 10, 1000},
                                        {1, 100, 4096, 100'000});
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

TEST_F(CudaReplicasGpu, AreStartedAndStoppedAHundredTimes) {
  for (int round = 0; round < 100; ++round) {
    Replicas replicas(devices_);
    replicas.run([](ReplicaContext& replica) { replica.communicator().barrier(); });
  }
}

}  // namespace
}  // namespace penstock

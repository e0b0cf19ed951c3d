// Gradients of replicas in several processes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/sync/mirrored.hpp>
#include <penstock/sync/replicas.hpp>

#include "tests/sync/gradient_sets.hpp"
#include "tests/sync/processes/worker.hpp"

namespace penstock {
namespace {

using test::connect;
using testing::AllOf;
using testing::HasSubstr;

// SEMANTICS proof 13.
TEST(Gradients, BucketsChangeNothing) {
  const auto all = connect();
  test::expect_buckets_change_nothing(*all);
}

TEST(Gradients, MicroStepsEqualOneBigBatch) {
  const auto all = connect();
  test::expect_micro_steps_equal_one_batch(*all);
}

TEST(Gradients, SixteenBitsOnTheWireStayNear) {
  const auto all = connect();
  test::expect_narrow_wires_stay_near(*all);
}

TEST(Gradients, OfSeveralReplicasInEachProcess) {
  Replicas replicas(host_devices(2), connect());
  replicas.run([](ReplicaContext& replica) {
    test::expect_micro_steps_equal_one_batch(replica.communicator());
    test::expect_narrow_wires_stay_near(replica.communicator());
  });
}

TEST(Gradients, DifferentListsAreAnErrorThatNamesBoth) {
  const auto all = connect();
  std::string said = "(nothing)";
  try {
    std::vector<test::GradientKind> kinds{{DType::f32, 10}, {DType::f32, 20}};
    if (all->rank() == all->size() - 1) std::swap(kinds[0], kinds[1]);
    test::GradientSet set(kinds);
    const GradientSync sync(*all, set.list());
  } catch (const SyncError& error) {
    said = error.what();
  }
  EXPECT_THAT(said, AllOf(HasSubstr("gradient 0 differs: replica 0 has 'g0' f32 [10]"),
                          HasSubstr("replica " + std::to_string(all->size() - 1) +
                                    " has 'g0' f32 [20]")));
}

// SEMANTICS proof 12.
TEST(Gradients, MirroredVariablesAssignedInEveryReplica) {
  Replicas replicas(host_devices(2), connect());
  Mirrored<double> mean(replicas, 1, Aggregation::mean);
  Mirrored<double> sum(replicas, 1, Aggregation::sum);
  Mirrored<double> first(replicas, 1, Aggregation::first);
  replicas.run([&](ReplicaContext& replica) {
    const std::vector<double> id{static_cast<double>(replica.id())};
    mean.assign(replica, id);
    sum.assign(replica, id);
    first.assign(replica, id);
  });
  const double n = replicas.size();
  for (const std::size_t local : {0U, 1U}) {
    EXPECT_EQ(mean.get(local)[0], (n - 1) / 2);
    EXPECT_EQ(sum.get(local)[0], n * (n - 1) / 2);
    EXPECT_EQ(first.get(local)[0], 0);
  }
}

// A process that dies in the middle of its backward pass must not leave its own progress thread
// waiting.
TEST(Gradients, LeavingInTheMiddleReturnsAtOnce) {
  const auto all = connect(60);
  const auto begin = std::chrono::steady_clock::now();
  try {
    test::GradientSet set({{DType::f32, 10'000}, {DType::f32, 10}});
    GradientSync sync(*all, set.list(), {.buckets = {.count = 1}});
    sync.ready(1);
    if (all->rank() == 1) throw std::runtime_error("lost");
    sync.ready(0);
    sync.wait();
    ADD_FAILURE() << "reduced without process 1";
  } catch (const SyncError& error) {
    EXPECT_THAT(error.what(), HasSubstr("process 1"));
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "lost");
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
}

}  // namespace
}  // namespace penstock

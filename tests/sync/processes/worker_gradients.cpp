// Gradients of replicas in several processes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/sync/replicas.hpp>

#include "tests/sync/gradient_sets.hpp"
#include "tests/sync/processes/worker.hpp"

namespace penstock {
namespace {

using test::connect;
using testing::AllOf;
using testing::HasSubstr;

// Whole numbers, which every transport adds up to the same.
TEST(OnDevices, CollectivesDoWhatTheirNamesSay) {
  const auto all = connect();
  const double n = all->size();
  for (const std::size_t count : {std::size_t{1}, std::size_t{1000}, std::size_t{100'003}}) {
    for (const DType dtype : {DType::f32, DType::f64, DType::i32, DType::f16, DType::bf16}) {
      test::GradientSet set({{dtype, count}, {dtype, count * all->size()}, {dtype, count}},
                            all->device());
      const auto reset = [&] { set.fill([&](auto, auto) { return all->rank() + 1.0; }); };
      const auto expect_first = [&](double expected) {
        set.expect(
            [&](std::size_t g, std::size_t) { return g == 0 ? expected : all->rank() + 1.0; });
      };
      const TensorView own = set.list()[0].data;
      const TensorView whole = set.list()[1].data;
      const TensorView piece = set.list()[2].data;
      for (const auto& [op, expected] :
           {std::pair{ReduceOp::sum, n * (n + 1) / 2}, {ReduceOp::max, n}, {ReduceOp::min, 1.0}}) {
        reset();
        all->all_reduce(own, op);
        expect_first(expected);
        reset();
        all->reduce(own, 1, op);
        expect_first(all->rank() == 1 ? expected : all->rank() + 1.0);
      }
      reset();
      all->broadcast(own, 1);
      expect_first(2);
      reset();
      all->all_gather(own, whole);
      set.expect([&](std::size_t g, std::size_t i) {
        return g == 1 ? static_cast<double>(i / count) + 1 : all->rank() + 1.0;
      });
      reset();
      all->reduce_scatter(whole, piece);
      set.expect(
          [&](std::size_t g, std::size_t) { return g == 2 ? n * (n + 1) / 2 : all->rank() + 1.0; });
    }
  }
  all->barrier();
}

// SEMANTICS proof 13.
TEST(Gradients, BucketsChangeNothing) {
  const auto all = connect();
  test::expect_buckets_change_nothing(*all, {1, 10, 1000}, {100'000});
}

TEST(Gradients, MicroStepsEqualOneBigBatch) {
  const auto all = connect();
  test::expect_micro_steps_equal_one_batch(*all);
}

TEST(Gradients, LargeOnesAreNotPacked) {
  const auto all = connect();
  for (const std::uint32_t flat_rank : {1U, all->size()})
    test::expect_large_gradients_are_not_packed(*all, flat_rank);
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
    test::GradientSet set(kinds, all->device());
    const GradientSync sync(*all, set.list());
  } catch (const SyncError& error) {
    said = error.what();
  }
  EXPECT_THAT(
      said, AllOf(HasSubstr("gradient 0 differs: replica 0 has 'g0' f32 [10]"),
                  HasSubstr("replica " + std::to_string(all->size() - 1) + " has 'g0' f32 [20]")));
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
  const auto all = connect(300);
  const auto begin = std::chrono::steady_clock::now();
  try {
    test::GradientSet set({{DType::f32, 10'000}, {DType::f32, 10}}, all->device());
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
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(150));
}

// Its gradient sync goes first, and knows no reason.
TEST(Gradients, WhyAProcessLeftIsSaidToTheOthers) {
  const auto all = connect();
  test::GradientSet set({{DType::f32, 10'000}}, all->device());
  try {
    GradientSync sync(*all, set.list());
    if (all->rank() == 1) throw std::runtime_error("sample 10 is damaged");
    sync.ready(0);
    sync.wait();
    ADD_FAILURE() << "reduced without process 1";
  } catch (const SyncError& error) {
    if (test::transport == "gloo") {
      EXPECT_THAT(error.what(), HasSubstr("sample 10 is damaged"));
    }
    EXPECT_THAT(error.what(), HasSubstr("process 1"));
  } catch (const std::runtime_error& error) {
    all->leave(error.what());
  }
}

}  // namespace
}  // namespace penstock

// Mirrored variables, and placements.
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/sync/gradient_sync.hpp>
#include <penstock/sync/replicas.hpp>

#include "src/sync/gradients/buckets.hpp"
#include "tests/sync/gradient_sets.hpp"

namespace penstock {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

std::vector<float> after_assigning_ids(Replicas& replicas, Aggregation aggregation) {
  Mirrored<float> variable(replicas, 1, aggregation);
  replicas.run([&](ReplicaContext& replica) {
    const std::vector<float> id{static_cast<float>(replica.id())};
    variable.assign(replica, id);
  });
  std::vector<float> copies;
  for (const std::span<float> copy : variable.unwrap(replicas)) copies.push_back(copy[0]);
  return copies;
}

// SEMANTICS proof 12.
TEST(Mirrored, TwoReplicasAssignTheirIds) {
  Replicas replicas(host_devices(2));
  EXPECT_THAT(after_assigning_ids(replicas, Aggregation::mean), ElementsAre(0.5, 0.5));
  EXPECT_THAT(after_assigning_ids(replicas, Aggregation::sum), ElementsAre(1, 1));
  EXPECT_THAT(after_assigning_ids(replicas, Aggregation::first), ElementsAre(0, 0));
  EXPECT_THAT([&] { (void)after_assigning_ids(replicas, Aggregation::none); },
              ThrowsMessage<std::logic_error>(AllOf(HasSubstr("assigned to a mirrored variable"),
                                                    HasSubstr("the aggregation"))));
}

TEST(Mirrored, AssignmentsFromOutsideAreTheSameEverywhere) {
  Replicas replicas(host_devices(3));
  Mirrored<double> variable(replicas, 2);
  EXPECT_THAT(variable.unwrap(replicas), Each(ElementsAre(0, 0)));
  variable.assign(std::vector<double>{1, 2});
  variable.assign_add(std::vector<double>{10, 20});
  variable.assign_sub(std::vector<double>{1, 1});
  EXPECT_THAT(variable.unwrap(replicas), Each(ElementsAre(10, 21)));
  EXPECT_THAT(variable.read(2), ElementsAre(10, 21));
  EXPECT_NE(variable.get(0).data(), variable.get(1).data());
  EXPECT_THAT([&] { variable.assign(std::vector<double>{1}); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("2 elements was given 1")));
}

TEST(Mirrored, AddsAndSubtractsFromInsideByItsAggregation) {
  Replicas replicas(host_devices(4));
  Mirrored<std::int64_t> total(replicas, 2, Aggregation::sum);
  replicas.run([&](ReplicaContext& replica) {
    for (int i = 0; i < 3; ++i)
      total.assign_add(replica, std::vector<std::int64_t>{1, replica.id()});
    total.assign_sub(replica, std::vector<std::int64_t>{0, 1});
    EXPECT_THAT(total.get(replica), ElementsAre(12, 14));
  });
  EXPECT_THAT(total.unwrap(replicas), Each(ElementsAre(12, 14)));
}

TEST(Mirrored, OutsideIsOutside) {
  Replicas replicas(host_devices(2));
  Mirrored<float> variable(replicas);
  EXPECT_THAT(
      [&] { replicas.run([&](ReplicaContext&) { variable.assign(std::vector<float>{1}); }); },
      ThrowsMessage<std::logic_error>(HasSubstr("from outside while run() is in progress")));
}

TEST(Owners, EachGoesToWhoHasTheFewestBytes) {
  const std::vector<std::size_t> bytes{100, 10, 10, 10, 100, 5};
  EXPECT_THAT(sync::owners_by_bytes(bytes, 3), ElementsAre(0, 1, 2, 1, 2, 1));
  EXPECT_THAT(sync::owners_by_bytes(bytes, 1), Each(0));
  std::vector<std::size_t> many(1000);
  std::iota(many.begin(), many.end(), 1);
  std::vector<std::size_t> load(7);
  const auto owners = sync::owners_by_bytes(many, 7);
  for (std::size_t i = 0; i < many.size(); ++i) load[owners[i]] += many[i];
  const auto [least, most] = std::ranges::minmax(load);
  EXPECT_LE(most - least, 1000U);
  EXPECT_THROW((void)sync::owners_by_bytes(bytes, 0), std::invalid_argument);
}

// The layout of a parameter server gives what replicated variables give.
TEST(ShardedVariables, OwnersUpdateAndEverybodyGetsTheResult) {
  for (const int count : {1, 2, 3}) {
    Replicas replicas(host_devices(count));
    replicas.run([&](ReplicaContext& replica) {
      Communicator& all = replica.communicator();
      auto kinds = test::mixed_kinds();
      kinds.resize(30);
      test::GradientSet variables(kinds);
      test::GradientSet gradients(kinds);
      ShardedVariables sharded(all, variables.list(), gradients.list());
      for (std::uint32_t step = 0; step < 2; ++step) {
        gradients.fill([&](std::size_t g, std::size_t i) {
          return test::whole_value(all.rank(), step, g, i);
        });
        sharded.reduce(ReduceOp::sum);
        for (const std::size_t mine : sharded.owned()) {
          const TensorView& variable = variables.list()[mine].data;
          const TensorView& gradient = gradients.list()[mine].data;
          for (std::size_t at = 0; at < variable.byte_size(); at += size_of(variable.dtype()))
            test::write_value(variable.raw() + at, variable.dtype(),
                              test::read_value(variable.raw() + at, variable.dtype()) -
                                  test::read_value(gradient.raw() + at, gradient.dtype()));
        }
        sharded.broadcast();
      }
      variables.expect([&](std::size_t g, std::size_t i) {
        double sum = 0;
        for (std::uint32_t rank = 0; rank < all.size(); ++rank)
          sum += test::whole_value(rank, 0, g, i) + test::whole_value(rank, 1, g, i);
        return -sum;
      });
      std::size_t owned = 0;
      for (const std::uint32_t owner : sharded.owners()) owned += owner == all.rank() ? 1 : 0;
      EXPECT_EQ(owned, sharded.owned().size());
    });
  }
}

TEST(BroadcastState, StateBecomesThatOfReplicaZero) {
  Replicas replicas(host_devices(3));
  replicas.run([](ReplicaContext& replica) {
    test::GradientSet state({{DType::f32, 10}, {DType::f64, 3}, {DType::f32, 7}});
    state.fill([&](std::size_t g, std::size_t i) {
      return 100.0 * replica.id() + 10.0 * static_cast<double>(g) + static_cast<double>(i);
    });
    broadcast_state(replica.communicator(), state.list());
    state.expect([](std::size_t g, std::size_t i) {
      return 10.0 * static_cast<double>(g) + static_cast<double>(i);
    });
  });
}

}  // namespace
}  // namespace penstock

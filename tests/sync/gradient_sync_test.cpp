// Gradients of replicas in one process; tests/sync/processes has those of several.
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <latch>
#include <numeric>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/sync/replicas.hpp>

#include "src/sync/gradients/buckets.hpp"
#include "tests/sync/gradient_sets.hpp"

namespace penstock {
namespace {

using test::all_ready;
using test::GradientKind;
using test::GradientSet;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

void on_replicas(int count, const std::function<void(Communicator&)>& body) {
  Replicas(host_devices(count)).run([&](ReplicaContext& replica) { body(replica.communicator()); });
}

std::vector<sync::BucketItem> items(const std::vector<std::uint64_t>& elements) {
  std::vector<sync::BucketItem> all;
  for (const std::uint64_t count : elements) all.push_back({DType::f32, count});
  return all;
}

std::vector<std::vector<std::size_t>> gradients_of(const std::vector<GradientBucket>& buckets) {
  std::vector<std::vector<std::size_t>> all;
  for (const GradientBucket& bucket : buckets) all.push_back(bucket.gradients);
  return all;
}

TEST(Buckets, AreFilledFromTheLastGradientOnUpToTheirLimits) {
  EXPECT_THAT(gradients_of(sync::plan_buckets(items({1, 2, 3, 4, 5}), {.bytes = 28})),
              ElementsAre(ElementsAre(4), ElementsAre(3, 2), ElementsAre(1, 0)));
  EXPECT_THAT(gradients_of(sync::plan_buckets(items({1, 2, 3, 4, 5}), {.bytes = 36})),
              ElementsAre(ElementsAre(4, 3), ElementsAre(2, 1, 0)));
}

TEST(Buckets, AGradientAboveTheLimitIsAlone) {
  EXPECT_THAT(gradients_of(sync::plan_buckets(items({1, 100, 1, 1}), {.bytes = 8})),
              ElementsAre(ElementsAre(3, 2), ElementsAre(1), ElementsAre(0)));
}

// A limit of 10 once packed 12.
TEST(Buckets, ALimitOfTenPacksTen) {
  for (const std::size_t limit : {1U, 9U, 10U, 11U}) {
    const auto buckets =
        sync::plan_buckets(items(std::vector<std::uint64_t>(100, 1)), {.count = limit});
    for (std::size_t i = 0; i + 1 < buckets.size(); ++i)
      EXPECT_EQ(buckets[i].gradients.size(), limit);
    EXPECT_EQ(buckets.size(), (100 + limit - 1) / limit);
  }
}

TEST(Buckets, TypesAreKeptApartAndComeInTheOrderInWhichTheyAreComplete) {
  const std::vector<sync::BucketItem> mixed{
      {DType::f32, 1}, {DType::f16, 1}, {DType::f32, 1}, {DType::i32, 1}, {DType::f16, 1}};
  EXPECT_THAT(gradients_of(sync::plan_buckets(mixed, {})),
              ElementsAre(ElementsAre(3), ElementsAre(4, 1), ElementsAre(2, 0)));
}

TEST(Buckets, LimitsOfZeroAreRefused) {
  EXPECT_THROW((void)sync::plan_buckets(items({1}), {.bytes = 0}), std::invalid_argument);
  EXPECT_THROW((void)sync::plan_buckets(items({1}), {.count = 0}), std::invalid_argument);
}

// SEMANTICS proof 13.
TEST(GradientSync, BucketsChangeNothing) {
  for (const int replicas : {1, 2, 4})
    on_replicas(replicas, [](Communicator& all) {
      test::expect_buckets_change_nothing(all, {1, 10, 1000}, {1, 100, 4096, 100'000});
    });
}

TEST(GradientSync, MicroStepsEqualOneBigBatch) {
  for (const int replicas : {1, 2, 4})
    on_replicas(replicas, test::expect_micro_steps_equal_one_batch);
}

TEST(GradientSync, SixteenBitsOnTheWireStayNear) {
  for (const int replicas : {2, 3}) on_replicas(replicas, test::expect_narrow_wires_stay_near);
}

TEST(GradientSync, ReducesWhileOtherGradientsAreStillBeingMade) {
  on_replicas(2, [](Communicator& all) {
    GradientSet set({{DType::f32, 10}, {DType::f32, 10}});
    GradientSync sync(all, set.list(), {.combine = Combine::sum, .buckets = {.count = 1}});
    set.fill([](std::size_t, std::size_t) { return 1; });
    sync.ready(1);
    // The other is not ready anywhere, and this one is done all the same.
    const auto* const value = set.list()[1].data.data<float>();
    const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(300);
    while (*static_cast<const volatile float*>(value) != 2 &&
           std::chrono::steady_clock::now() < patience)
      std::this_thread::yield();
    EXPECT_EQ(*static_cast<const volatile float*>(value), 2);
    sync.ready(0);
    sync.wait();
    set.expect([](std::size_t, std::size_t) { return 2; });
  });
}

TEST(GradientSync, AFlatBufferIsReducedInPlace) {
  const std::vector<GradientKind> kinds{{DType::f32, 100}, {DType::f32, 3}, {DType::f32, 57}};
  on_replicas(3, [&](Communicator& all) {
    GradientSet apart(kinds);
    EXPECT_EQ(GradientSync(all, apart.list()).packed_bytes(), 640);
    EXPECT_EQ(GradientSync(all, apart.list(), {.buckets = {.count = 1}}).packed_bytes(), 0);
    GradientSet flat(kinds, {}, true);
    GradientSync sync(all, flat.list());
    EXPECT_EQ(sync.packed_bytes(), 0);
    flat.fill([&](std::size_t g, std::size_t i) { return 3.0 * all.rank() + 9.0 * g + 27.0 * i; });
    all_ready(sync, 3, all.rank());
    sync.wait();
    flat.expect([](std::size_t g, std::size_t i) { return 3.0 + 9.0 * g + 27.0 * i; });
  });
}

TEST(GradientSync, LargeGradientsAreNotPacked) {
  on_replicas(3, [](Communicator& all) { test::expect_large_gradients_are_not_packed(all, 1); });
}

TEST(GradientSync, AReplicaThatIsAloneCopiesNothing) {
  on_replicas(1, [](Communicator& all) {
    GradientSet set({{DType::f32, 10}, {DType::f16, 10}, {DType::f32, 5}});
    GradientSync sync(all, set.list(), {.wire = DType::bf16});
    EXPECT_EQ(sync.packed_bytes(), 0);
    set.fill([](std::size_t, std::size_t i) { return 1.0 / static_cast<double>(i + 3); });
    const auto before = set.bytes();
    all_ready(sync, 3, 1);
    EXPECT_TRUE(sync.wait());
    EXPECT_EQ(set.bytes(), before);
  });
}

TEST(GradientSync, DifferentListsAreAnErrorThatNamesBoth) {
  using Kinds = std::vector<GradientKind>;
  const auto said = [](const Kinds& first, const Kinds& other) {
    std::string text;
    try {
      on_replicas(2, [&](Communicator& all) {
        GradientSet set(all.rank() == 0 ? first : other);
        const GradientSync sync(all, set.list());
      });
    } catch (const SyncError& error) {
      text = error.what();
    }
    return text;
  };
  const Kinds list{{DType::f32, 10}, {DType::f32, 20}};
  EXPECT_THAT(said(list, {{DType::f32, 10}, {DType::f32, 21}}),
              AllOf(HasSubstr("gradient 1 differs"), HasSubstr("replica 0 has 'g1' f32 [20]"),
                    HasSubstr("replica 1 has 'g1' f32 [21]")));
  EXPECT_THAT(said(list, {{DType::f32, 10}, {DType::f16, 20}}), HasSubstr("'g1' f16 [20]"));
  EXPECT_THAT(said(list, {{DType::f32, 20}, {DType::f32, 10}}), HasSubstr("gradient 0 differs"));
  EXPECT_THAT(said(list, {{DType::f32, 10}}),
              HasSubstr("replica 0 has 2 gradients, replica 1 has 1"));
  EXPECT_THAT(
      [&] {
        on_replicas(2, [&](Communicator& all) {
          GradientSet set(list);
          const GradientSync sync(all, set.list(), {.micro_steps = 1 + all.rank()});
        });
      },
      ThrowsMessage<SyncError>(AllOf(HasSubstr("replica 0 has micro_steps 1"),
                                     HasSubstr("replica 1 has micro_steps 2"))));
}

TEST(GradientSync, MisuseIsNamed) {
  on_replicas(2, [](Communicator& all) {
    EXPECT_THROW(GradientSync(all, {}), std::invalid_argument);
    GradientSet set({{DType::f32, 10}, {DType::f32, 20}, {DType::f32, 1}});
    EXPECT_THROW(GradientSync(all, set.list(), {.wire = DType::f32}), std::invalid_argument);
    EXPECT_THROW(GradientSync(all, set.list(), {.micro_steps = 0}), std::invalid_argument);
    GradientSync sync(all, set.list());
    EXPECT_THROW(sync.ready(3), std::out_of_range);
    EXPECT_THROW(sync.begin(8), std::logic_error);
    sync.ready(1);
    EXPECT_THAT([&] { sync.ready(1); }, ThrowsMessage<std::logic_error>(HasSubstr("'g1'")));
    EXPECT_THAT([&] { sync.wait(); },
                ThrowsMessage<std::logic_error>(
                    AllOf(HasSubstr("2 of 3 gradients not ready"), HasSubstr("'g0', 'g2'"))));
    sync.ready(0);
    sync.ready(2);
    EXPECT_TRUE(sync.wait());
    GradientSync counted(all, set.list(), {.combine = Combine::row_sums});
    EXPECT_THAT([&] { counted.ready(0); },
                ThrowsMessage<std::logic_error>(HasSubstr("begin(rows)")));
  });
}

TEST(GradientSync, AReplicaThatEndsInTheMiddleIsAnErrorForTheOthers) {
  for (const bool by_exception : {false, true})
    EXPECT_THAT(
        [&] {
          on_replicas(3, [&](Communicator& all) {
            GradientSet set({{DType::f32, 10}, {DType::f32, 10}});
            GradientSync sync(all, set.list(), {.buckets = {.count = 1}});
            sync.ready(1);
            if (all.rank() == 1 && by_exception) throw SyncError("replica 1: out of data");
            if (all.rank() == 1) return;
            sync.ready(0);
            sync.wait();
          });
        },
        ThrowsMessage<SyncError>(HasSubstr("replica 1")));
}

}  // namespace
}  // namespace penstock

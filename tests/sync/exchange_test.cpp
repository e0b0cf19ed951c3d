// Texts of all ranks, of any bytes and sizes.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/core/error.hpp>
#include <penstock/penstock.hpp>
#include <penstock/sync.hpp>

#include "tests/loader/fakes.hpp"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(ExchangeOver, GivesAllRanksTheTextsOfAll) {
  Replicas replicas(host_devices(3));
  const std::vector<std::string> own{"", std::string("a\0b", 3), std::string(100'000, 'x')};
  replicas.run([&](ReplicaContext& replica) {
    Communicator& all = replica.communicator();
    const Exchange exchange = exchange_over(all);
    EXPECT_THAT(exchange(own[all.rank()]), ElementsAre(own[0], own[1], own[2]));
    EXPECT_THAT(exchange(""), ElementsAre("", "", ""));
    for (std::uint32_t root = 0; root < 3; ++root)
      EXPECT_EQ(broadcast_text(all, own[all.rank()], root), own[root]);
  });
}

TEST(ExchangeOver, LoadersThatDifferAreToldInEveryReplica) {
  Replicas replicas(host_devices(2));
  replicas.run([&](ReplicaContext& replica) {
    Communicator& all = replica.communicator();
    const auto facts = [&](std::uint64_t seed, std::uint64_t batch) {
      return Dataset(testing_support::fake(10)).seed(seed).shuffle().batch(batch).loader().facts();
    };
    require_agreement(exchange_over(all), facts(7, 2));
    EXPECT_THAT([&] { require_agreement(exchange_over(all), facts(7 + all.rank(), 2)); },
                ThrowsMessage<Error>(HasSubstr("the seed is '7' in process 0, '8' in process 1")));
    EXPECT_THAT([&] { require_agreement(exchange_over(all), facts(7, 2 + all.rank())); },
                ThrowsMessage<Error>(HasSubstr("the plan is ")));
    const auto mixed = [&](double weight) {
      Loader loader = mix({Dataset(testing_support::fake(10)).repeat(),
                           Dataset(testing_support::fake(20)).repeat()})
                          .seed(7)
                          .batch(2)
                          .loader();
      loader.set_weights(3, {1, weight});
      return loader.facts();
    };
    require_agreement(exchange_over(all), mixed(2));
    EXPECT_THAT([&] { require_agreement(exchange_over(all), mixed(2 + all.rank())); },
                ThrowsMessage<Error>(
                    HasSubstr("the weighting of the mixture is 'from step 3: 1, 2' in process 0")));
    const auto divided = [&](ShardPolicy policy) {
      return Dataset(testing_support::fake(100))
          .seed(7)
          .shuffle()
          .batch(2)
          .loader(
              {.context = InputContext{.num_input_pipelines = 2, .input_pipeline_id = all.rank()},
               .mode = InputMode::per_worker,
               .shards = policy})
          .facts();
    };
    require_agreement(exchange_over(all), divided(ShardPolicy::data));
    EXPECT_THAT(
        [&] {
          require_agreement(exchange_over(all),
                            divided(all.rank() == 0 ? ShardPolicy::data : ShardPolicy::off));
        },
        ThrowsMessage<Error>(HasSubstr("the division of the data is ")));
  });
}

TEST(ExchangeOver, ALoaderComparesItselfAtItsFirstStep) {
  Replicas replicas(host_devices(2));
  replicas.run([&](ReplicaContext& replica) {
    Communicator& all = replica.communicator();
    const auto loader = [&](std::uint64_t seed) {
      return Dataset(testing_support::fake(10))
          .seed(seed)
          .shuffle()
          .batch(2)
          .loader(
              {.context = InputContext{.num_input_pipelines = 2, .input_pipeline_id = all.rank()},
               .exchange = exchange_over(all)});
    };
    Loader same = loader(7);
    ASSERT_TRUE(same.next());
    ASSERT_TRUE(same.next());
    const LoaderState state = same.state();
    while (same.next()) {
    }
    // Only one of them resumes.
    if (all.rank() == 0)
      same.restore(state);
    else
      same.rewind();
    EXPECT_THAT(
        [&] { (void)same.next(); },
        ThrowsMessage<Error>(HasSubstr("the next step is '2' in process 0, '0' in process 1")));
    EXPECT_THAT([&] { (void)same.next(); }, ThrowsMessage<Error>(HasSubstr("the next step is")))
        << "said again, without the others";
    Loader other = loader(7 + all.rank());
    EXPECT_THAT([&] { (void)other.next(); },
                ThrowsMessage<Error>(HasSubstr("the seed is '7' in process 0, '8' in process 1")));
  });
}

}  // namespace
}  // namespace penstock

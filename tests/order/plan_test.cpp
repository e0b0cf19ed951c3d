// Random plans against the reference: what one operation gets right it may get wrong on top of
// another.
#include <algorithm>
#include <random>

#include <gtest/gtest.h>

#include "src/order/operations.hpp"
#include "tests/order/reference.hpp"

namespace penstock {
namespace {

using reference::Samples;

struct Plan {
  order::OrderPtr order;
  reference::Model model;
  std::optional<std::uint32_t> epochs = 1;
};

class PlanMaker {
 public:
  explicit PlanMaker(std::uint64_t seed) : random_(seed), seed_(seed) {}

  std::uint64_t below(std::uint64_t n) { return random_() % n; }

  /// One to six operations over a small range; no finite plan has more than `most` positions.
  Plan make(std::uint64_t most) {
    Plan plan = leaf(most / 2);
    for (std::uint64_t left = 1 + below(6); left != 0; --left) add(plan, most);
    return plan;
  }
  Plan leaf(std::uint64_t most) {
    const std::uint64_t size = below(4) == 0 ? below(3) : below(most);
    const auto source = static_cast<std::uint32_t>(below(5));
    return {order::range(size, source), reference::range(size, source)};
  }

  /// Operation `kind` of kKinds on top, or none where it would be refused or too much.
  static constexpr std::uint64_t kKinds = 10;
  void add(Plan& plan, std::uint64_t most) { add(plan, most, below(kKinds)); }
  void add(Plan& plan, std::uint64_t most, std::uint64_t kind) {
    auto& [order, model, epochs] = plan;
    const std::optional<std::uint64_t> size = order->size();
    const RandomKey key(seed_, ++operation_);
    const bool reshuffle = below(3) != 0;
    switch (kind) {
      case 0: {
        const std::uint64_t count = below(most);
        order = order::take(order, count);
        model = reference::take(model, count);
        return;
      }
      case 1: {
        const std::uint64_t count = below(12);
        order = order::skip(order, count);
        model = reference::skip(model, count);
        return;
      }
      case 2: {
        const std::uint64_t shards = 1 + below(4);
        const std::uint64_t index = below(shards);
        order = order::shard(order, static_cast<std::int64_t>(shards),
                             static_cast<std::int64_t>(index));
        model = reference::shard(model, shards, index);
        return;
      }
      case 3: {
        const std::uint64_t times = below(5);
        if (!size || !order->epochs()) return;
        if (times == 4) {
          order = order::repeat(order);
          model = reference::repeat(model, std::nullopt);
          epochs = *size == 0 ? std::optional(0U) : std::nullopt;
        } else if (*size * times <= most) {
          order = order::repeat(order, static_cast<std::int64_t>(times));
          model = reference::repeat(model, static_cast<std::uint32_t>(times));
          *epochs *= static_cast<std::uint32_t>(times);
        }
        return;
      }
      case 4:
        if (!size) return;
        order = order::shuffle(order, key, reshuffle);
        model = reference::shuffle(model, key, reshuffle);
        return;
      case 5: {
        if (!size || *size == 0) return;
        std::vector<std::uint64_t> positions(below(most / 2));
        for (std::uint64_t& position : positions) position = below(*size);
        order = order::pick(order, positions);
        model = reference::pick(model, positions);
        return;
      }
      case 6:
      case 7: {
        // Two more inputs, of one operation each: the plan so far comes last where it is endless.
        std::vector<Plan> others{leaf(most / 4), leaf(most / 4)};
        for (Plan& other : others) add(other, most / 4, below(5));
        if (kind == 6)
          join(plan, std::move(others), most);
        else
          mix(plan, std::move(others), most);
        return;
      }
      case 8: {
        if (!size || *size == 0) return;
        const std::uint64_t count = below(most);
        order = order::sample(order, std::vector<double>(*size, 3), count, key, reshuffle);
        model = reference::sample(model, count, key, reshuffle);
        return;
      }
      default: {
        const std::uint64_t places = 1 + (below(2) == 0 ? below(6) : below(most));
        order = order::shuffle_window(order, key, places, reshuffle);
        model = reference::shuffle_window(model, key, places, reshuffle);
        return;
      }
    }
  }

 private:
  static std::optional<std::uint32_t> most_epochs(const Plan& plan,
                                                  const std::vector<Plan>& others) {
    std::optional<std::uint32_t> most = plan.epochs;
    for (const Plan& other : others)
      most = most && other.epochs ? std::optional(std::max(*most, *other.epochs)) : std::nullopt;
    return most;
  }

  void join(Plan& plan, std::vector<Plan> others, std::uint64_t most) {
    std::vector<order::OrderPtr> orders;
    std::vector<reference::Model> models;
    std::uint64_t total = plan.order->size().value_or(0);
    for (const Plan& other : others) {
      if (!other.order->size()) return;
      total += *other.order->size();
      orders.push_back(other.order);
      models.push_back(other.model);
    }
    if (total > most) return;
    orders.push_back(plan.order);
    models.push_back(plan.model);
    plan = {order::concatenate(orders), reference::concatenate(models), most_epochs(plan, others)};
  }

  void mix(Plan& plan, std::vector<Plan> others, std::uint64_t most) {
    const RandomKey key(seed_, ++operation_);
    others.push_back(plan);
    std::vector<order::OrderPtr> orders;
    std::vector<reference::Model> models;
    std::vector<std::optional<std::uint64_t>> sizes;
    std::uint64_t total = 0;
    for (const Plan& other : others) {
      orders.push_back(other.order);
      models.push_back(other.model);
      sizes.push_back(other.order->size());
      total += sizes.back().value_or(0);
    }
    if (total > most) return;
    std::vector<std::pair<std::uint64_t, std::vector<std::uint64_t>>> weights;
    std::vector<order::MixWeights> changes;
    std::uint64_t position = 0;
    for (std::uint64_t left = 1 + below(3) / 2; left != 0; --left) {
      std::vector<std::uint64_t> shares{below(3), 1 + below(6), below(20)};
      changes.push_back({position, {shares.begin(), shares.end()}});
      weights.emplace_back(position, std::move(shares));
      position += below(200);
    }
    const bool all = below(2) == 0;
    // A change of weights is meant for the first iteration; a second one would begin elsewhere.
    if (weights.size() > 1 && plan.order->epochs()) return;
    const order::OrderPtr mixed =
        order::mix(orders, changes, key, all ? MixUntil::all_exhausted : MixUntil::first_exhausted);
    // An endless input beside one that ends late makes a long mix.
    if (mixed->size() > std::optional(most)) return;
    plan = {mixed, reference::mix(models, sizes, weights, key, all), most_epochs(plan, others)};
  }

  std::mt19937_64 random_;
  std::uint64_t seed_;
  std::uint32_t operation_ = 0;
};

/// The samples of `whole` at first, first + stride, …
Samples strided(const Samples& whole, std::uint64_t first, std::uint64_t stride,
                std::size_t limit) {
  Samples out;
  for (std::uint64_t p = first; p < whole.size() && out.size() < limit; p += stride)
    out.push_back(whole[p]);
  return out;
}

TEST(Plan, ReadsAsTheReferenceDoesFromEndToEnd) {
  for (std::uint64_t seed = 0; seed < 6000; ++seed) {
    PlanMaker maker(seed);
    const auto [order, model, epochs] = maker.make(700);
    SCOPED_TRACE(testing::Message() << "seed " << seed << ": " << order->describe());
    const Samples expected = model(0, 1000);
    ASSERT_EQ(order->size().value_or(expected.size()), expected.size());
    ASSERT_EQ(order->epochs(), epochs);
    const auto cursor = order->open();
    Samples all;
    while (all.size() < expected.size()) {
      const std::size_t wanted =
          std::min<std::size_t>(1 + maker.below(300), expected.size() - all.size());
      const Samples some = read(*cursor, 0, all.size(), 1, wanted);
      ASSERT_EQ(some.size(), wanted);
      all.insert(all.end(), some.begin(), some.end());
    }
    ASSERT_EQ(all, expected);
    ASSERT_TRUE(!order->size() || read(*cursor, 0, all.size(), 1, 5).empty());
  }
}

TEST(Plan, AnswersReadsAnywhereInAnyIterationAsTheReferenceDoes) {
  for (std::uint64_t seed = 10'000; seed < 14'000; ++seed) {
    PlanMaker maker(seed);
    const auto [order, model, epochs] = maker.make(300);
    SCOPED_TRACE(testing::Message() << "seed " << seed << ": " << order->describe());
    // Only a plan without an endless repeat has more than one iteration.
    std::vector<Samples> expected;
    for (std::uint32_t iteration = 0; iteration < (order->epochs() ? 3U : 1U); ++iteration)
      expected.push_back(model(iteration, 900));
    const auto cursor = order->open();
    for (int k = 0; k < 30; ++k) {
      const auto iteration = static_cast<std::uint32_t>(maker.below(expected.size()));
      const Samples& whole = expected[iteration];
      const std::uint64_t first = maker.below(whole.size() + 2);
      const std::uint64_t stride = 1 + maker.below(maker.below(2) == 0 ? 3 : 60);
      // An endless plan has more than the reference gave: ask for no more than that.
      const Samples answer = strided(whole, first, stride, 1 + maker.below(50));
      const std::size_t wanted =
          order->size() ? std::max<std::size_t>(answer.size(), 1) : answer.size();
      ASSERT_EQ(read(*cursor, iteration, first, stride, wanted), answer)
          << "iteration " << iteration << ", position " << first << ", stride " << stride;
    }
    for (std::uint32_t iteration = 0; iteration < expected.size(); ++iteration) {
      const Samples& whole = expected[iteration];
      if (whole.empty()) continue;
      std::vector<std::uint64_t> positions(1 + maker.below(20));
      Samples answer;
      for (std::uint64_t& position : positions) {
        position = maker.below(whole.size());
        answer.push_back(whole[position]);
      }
      Samples found(positions.size());
      cursor->read_at(iteration, positions, found);
      ASSERT_EQ(found, answer) << "iteration " << iteration;
    }
  }
}

// The state of an order is its position: a new cursor continues from any position as the old one
// would have.
void resume_everywhere(const order::OrderPtr& order, std::size_t limit) {
  const Samples whole = read(order, limit);
  for (std::size_t position = 0; position <= whole.size(); ++position) {
    const Samples rest =
        read(*order->open(), 0, position, 1, order->size() ? limit : whole.size() - position);
    ASSERT_EQ(rest, Samples(whole.begin() + static_cast<long>(position), whole.end()))
        << order->describe() << ", from position " << position;
  }
}

TEST(Plan, ResumesAtEveryPosition) {
  for (std::uint64_t seed = 20'000; seed < 21'500; ++seed) {
    PlanMaker maker(seed);
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    ASSERT_NO_FATAL_FAILURE(resume_everywhere(maker.make(150).order, 150));
  }
}

TEST(Plan, EveryOperationResumesAtEveryPositionOfALongerRun) {
  const RandomKey key(7, 1);
  const order::OrderPtr range = order::range(700);
  for (const order::OrderPtr& order :
       {range, order::take(range, 600), order::skip(range, 100), order::shard(range, 3, 1),
        order::repeat(order::range(70), 9), order::repeat(order::shuffle(order::range(300), key)),
        order::shuffle(range, key), order::shuffle_window(range, key, 20),
        order::shuffle_window(range, key, 300), order::shuffle_window(range, key, 2000),
        order::shuffle_window(order::repeat(order::range(70)), key, 20),
        order::pick(range, {5, 5, 699, 0, 1, 2}),
        order::sample(range, std::vector<double>(700, 1.0), 500, key),
        order::concatenate({order::shuffle_window(order::range(99), key, 20), order::range(600)}),
        order::mix({order::shuffle_window(order::range(300), key, 20),
                    order::repeat(order::range(7), 20), order::range(200)},
                   {{0, {5, 2, 1}}, {333, {1, 0, 1}}}, key, MixUntil::all_exhausted)})
    ASSERT_NO_FATAL_FAILURE(resume_everywhere(order, 700));
}

TEST(Plan, OneOrderServesManyCursorsAndOutlivesItsMaker) {
  order::OrderPtr order = order::shuffle_window(order::range(100), RandomKey(7, 1), 10);
  const Samples whole = read(order, 100);
  const auto one = order->open();
  const auto other = order->open();
  order.reset();
  for (std::uint64_t position = 0; position < 100; ++position) {
    ASSERT_EQ(read(*one, 0, position, 1, 1)[0], whole[position]);
    ASSERT_EQ(read(*other, 0, 99 - position, 1, 1)[0], whole[99 - position]);
  }
}

}  // namespace
}  // namespace penstock

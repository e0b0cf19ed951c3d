// Random plans, delivered by real loaders, against the plain sequential model of the orders and
// a few lines for batches and slices. A failure prints the plan's seed.
#include <algorithm>
#include <random>

#include <gtest/gtest.h>

#include "tests/loader/fakes.hpp"
#include "tests/order/reference.hpp"

namespace penstock {
namespace {

using reference::Model;
using reference::Samples;
using testing_support::fake;
using testing_support::see;
using testing_support::Seen;
using testing_support::through_json;

constexpr std::uint64_t kMostSamples = 400;
constexpr std::uint64_t kMostSteps = 60;

struct Expected {
  std::vector<Samples> rows;             // of each replica
  std::vector<std::uint64_t> delivered;  // rows of each replica, padding included
};

class RandomPlan {
 public:
  explicit RandomPlan(std::uint64_t seed) : random_(seed), seed_(seed) {
    const std::uint64_t size = below(8) == 0 ? below(3) : 1 + below(120);
    source_ = fake(size);
    dataset_.emplace(Dataset(source_).seed(seed));
    model_ = reference::range(size);
    for (std::uint64_t left = 1 + below(4); left != 0; --left) add_sample_op();
    add_batch();
    for (std::uint64_t left = below(3); left != 0; --left) add_batch_op();
  }

  std::uint64_t below(std::uint64_t n) { return random_() % n; }
  [[nodiscard]] const Dataset& dataset() const { return *dataset_; }
  [[nodiscard]] std::uint64_t replicas() const { return replicas_; }
  [[nodiscard]] Split split() const { return split_; }

  /// What every replica should get, step by step.
  [[nodiscard]] std::vector<Expected> expected() const {
    std::vector<Expected> steps;
    const Samples batches = batch_model_(0, 1000);
    for (std::uint64_t step = 0; step < batches.size(); ++step) {
      const Samples all = model_(batches[step].epoch, kMostSamples);
      const std::uint64_t first = batches[step].number * batch_;
      const std::uint64_t count = std::min(batch_, all.size() - first);
      steps.push_back(divide(step, {all.begin() + static_cast<long>(first),
                                    all.begin() + static_cast<long>(first + count)}));
    }
    return steps;
  }

 private:
  // SEMANTICS D4 and D5, as they are written there.
  [[nodiscard]] Expected divide(std::uint64_t step, const Samples& samples) const {
    const bool front = remainder_ == Remainder::pad || split_ == Split::round_robin;
    const std::uint64_t rows = front ? batch_ : samples.size();
    std::vector<std::uint64_t> counts(replicas_, rows / replicas_);
    for (std::uint64_t j = 0; j < rows % replicas_; ++j)
      ++counts[(step * (batch_ % replicas_) + j) % replicas_];
    Expected expected;
    std::size_t next = 0;
    for (const std::uint64_t count : counts) {
      expected.rows.emplace_back();
      while (expected.rows.back().size() < count && next < samples.size())
        expected.rows.back().push_back(samples[next++]);
      expected.delivered.push_back(remainder_ == Remainder::pad ? count
                                                                : expected.rows.back().size());
    }
    return expected;
  }

  void add_sample_op() {
    const auto size = dataset_->size();
    const RandomKey key(seed_, operation_);
    const bool reshuffle = below(3) != 0;
    switch (below(9)) {
      case 0:
        return add(&Dataset::take, reference::take, below(150));
      case 1:
        return add(&Dataset::skip, reference::skip, below(12));
      case 2: {
        const std::uint64_t shards = 1 + 2 * below(3);  // shard(2, i) is refused in two processes
        const std::uint64_t index = below(shards);
        dataset_ =
            dataset_->shard(static_cast<std::int64_t>(shards), static_cast<std::int64_t>(index));
        model_ = reference::shard(model_, shards, index);
        break;
      }
      case 3: {
        const std::uint64_t times = below(4);
        if (*size * times > kMostSamples) return;
        dataset_ = dataset_->repeat(static_cast<std::int64_t>(times));
        model_ = reference::repeat(model_, static_cast<std::uint32_t>(times));
        break;
      }
      case 4:
        dataset_ = dataset_->shuffle({.reshuffle_each_epoch = reshuffle});
        model_ = reference::shuffle(model_, key, reshuffle);
        break;
      case 5: {
        const std::uint64_t buffer = 1 + below(50);
        dataset_ = dataset_->shuffle({.buffer = buffer, .reshuffle_each_epoch = reshuffle});
        model_ = reference::shuffle_window(model_, key, buffer, reshuffle);
        break;
      }
      case 7: {
        const std::uint64_t times = 1 + below(3);
        if (*size * times > kMostSamples) return;
        dataset_ = dataset_->repeat_each(static_cast<std::int64_t>(times));
        model_ = reference::repeat_each(model_, times);
        break;
      }
      case 6: {
        if (*size == 0) return;
        const std::uint64_t count = below(kMostSamples / 2);
        dataset_ = dataset_->sample(std::vector<double>(*size, 1),
                                    {.count = count, .reshuffle_each_epoch = reshuffle});
        model_ = reference::sample(model_, count, key, reshuffle);
        break;
      }
      default: {
        if (*size == 0) return;
        std::vector<std::uint64_t> positions(below(60));
        for (std::uint64_t& position : positions) position = below(*size);
        dataset_ = dataset_->select(positions);
        model_ = reference::pick(model_, positions);
      }
    }
    ++operation_;
  }

  void add_batch() {
    replicas_ = std::array{1, 2, 4}[below(3)];
    batch_ = 1 + below(20);
    const bool uneven = batch_ % replicas_ != 0;
    remainder_ = std::array{Remainder::keep, Remainder::drop, Remainder::pad}[below(3)];
    split_ = !uneven && below(2) == 0 ? Split::round_robin : Split::scatter;
    const std::uint64_t size = *dataset_->size();
    dataset_ = dataset_->batch(batch_, {.remainder = remainder_, .uneven = uneven});
    const std::uint64_t batches =
        size / batch_ + (remainder_ != Remainder::drop && size % batch_ != 0 ? 1 : 0);
    batch_model_ = reference::range(batches);
  }

  void add_batch_op() {
    const std::uint64_t steps = *dataset_->size();
    switch (below(3)) {
      case 0: {
        const std::uint64_t times = 1 + below(3);
        if (steps * times > kMostSteps) return;
        dataset_ = dataset_->repeat(static_cast<std::int64_t>(times));
        batch_model_ = reference::repeat(batch_model_, static_cast<std::uint32_t>(times));
        break;
      }
      case 1:
        dataset_ = dataset_->shuffle();
        batch_model_ = reference::shuffle(batch_model_, RandomKey(seed_, operation_), true);
        break;
      default: {
        const std::uint64_t count = below(30);
        dataset_ = dataset_->take(count);
        batch_model_ = reference::take(batch_model_, count);
      }
    }
    ++operation_;
  }

  void add(Dataset (Dataset::*op)(std::uint64_t) const, Model (*model)(Model, std::uint64_t),
           std::uint64_t count) {
    dataset_ = ((*dataset_).*op)(count);
    model_ = model(model_, count);
    ++operation_;
  }

  std::mt19937_64 random_;
  std::uint64_t seed_;
  std::shared_ptr<testing_support::FakeSource> source_;
  std::optional<Dataset> dataset_;
  Model model_;
  Model batch_model_;
  std::uint32_t operation_ = 0;
  std::uint64_t batch_ = 0;
  std::uint64_t replicas_ = 1;
  Remainder remainder_ = Remainder::keep;
  Split split_ = Split::scatter;
};

// Replicas in `processes` processes, read step by step or device by device.
void expect_as_modelled(RandomPlan& plan, const std::vector<Expected>& expected,
                        std::uint32_t processes, std::uint64_t from) {
  const auto devices = static_cast<std::uint32_t>(plan.replicas()) / processes;
  const Dataset dataset = through_json(plan.dataset())
                              .prefetch_to_devices(host_devices(static_cast<int>(devices)),
                                                   {.depth = static_cast<int>(1 + plan.below(3)),
                                                    .split = plan.split()});
  for (std::uint32_t id = 0; id < processes; ++id) {
    Loader loader = dataset.loader({
        .context = InputContext{.num_input_pipelines = processes, .input_pipeline_id = id},
        .threads = static_cast<int>(1 + plan.below(3)),
    });
    ASSERT_EQ(loader.size(), expected.size());
    LoaderState state = loader.state();
    state.step = from;
    loader.restore(state);
    for (std::uint64_t step = from; step < expected.size(); ++step) {
      const auto found = loader.next();
      ASSERT_TRUE(found.has_value());
      for (std::uint32_t part = 0; part < devices; ++part) {
        const std::uint32_t replica = id * devices + part;
        const auto samples = (*found)[part].samples();
        ASSERT_EQ(Samples(samples.begin(), samples.end()), expected[step].rows[replica])
            << "step " << step << ", replica " << replica;
        ASSERT_EQ((*found)[part].size(), expected[step].delivered[replica]);
        const auto* values = (*found)[part]["number"].data<std::uint64_t>();
        for (std::uint64_t row = 0; row < (*found)[part].size(); ++row)
          ASSERT_EQ(values[2 * row], row < samples.size() ? samples[row].number : 0);
      }
    }
    ASSERT_FALSE(loader.next().has_value());
  }
}

TEST(RandomPlan, DeliversWhatTheModelSays) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    RandomPlan plan(seed);
    SCOPED_TRACE(testing::Message() << "seed " << seed << ": " << plan.dataset().describe());
    const auto expected = plan.expected();
    const std::uint32_t processes = plan.replicas() > 1 && plan.below(3) == 0
                                        ? static_cast<std::uint32_t>(plan.replicas()) / 2
                                        : 1;
    ASSERT_NO_FATAL_FAILURE(expect_as_modelled(plan, expected, processes, 0));
  }
}

TEST(RandomPlan, GoesOnFromAnyStepAsTheModelSays) {
  for (std::uint64_t seed = 5000; seed < 5300; ++seed) {
    RandomPlan plan(seed);
    SCOPED_TRACE(testing::Message() << "seed " << seed << ": " << plan.dataset().describe());
    const auto expected = plan.expected();
    const std::uint64_t stride = 1 + expected.size() / 8;
    for (std::uint64_t from = 0; from <= expected.size(); from += stride)
      ASSERT_NO_FATAL_FAILURE(expect_as_modelled(plan, expected, 1, from));
  }
}

}  // namespace
}  // namespace penstock

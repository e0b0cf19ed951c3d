// Random plans, and what a plain sequential model says of them.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <vector>

#include "tests/loader/fakes.hpp"
#include "tests/order/reference.hpp"

namespace penstock::testing_support {

using reference::Model;
using reference::Samples;

inline constexpr std::uint64_t kMostSamples = 400;
inline constexpr std::uint64_t kMostSteps = 60;

/// Of one step.
struct Expected {
  std::vector<Samples> rows;             // of each replica
  std::vector<std::uint64_t> delivered;  // rows of each replica, padding included
};

/// Operations in a random order over a FakeSource, and the model of each.
class RandomPlan {
 public:
  /// In `any_world` the plan fits every number of replicas, in 1, 2 or 4 processes.
  explicit RandomPlan(std::uint64_t seed, bool any_world = false)
      : random_(seed), seed_(seed), any_world_(any_world) {
    const std::uint64_t size = below(8) == 0 ? below(3) : 1 + below(120);
    source_ = fake(size);
    dataset_.emplace(Dataset(source_).seed(seed));
    model_ = reference::range(size);
    for (std::uint64_t left = 1 + below(4); left != 0; --left) add_sample_op();
    add_batch();
    for (std::uint64_t left = below(3); left != 0; --left) add_batch_op();
  }

  std::uint64_t below(std::uint64_t n) { return random_() % n; }
  [[nodiscard]] FakeSource& source() const { return *source_; }
  [[nodiscard]] const Dataset& dataset() const { return *dataset_; }
  [[nodiscard]] std::uint64_t replicas() const { return replicas_; }
  [[nodiscard]] Split split() const { return split_; }

  /// What every replica should get, step by step.
  [[nodiscard]] std::vector<Expected> expected() const { return expected(replicas_); }
  [[nodiscard]] std::vector<Expected> expected(std::uint64_t replicas) const {
    std::vector<Expected> steps;
    const Samples batches = batch_model_(0, 1000);
    for (std::uint64_t step = 0; step < batches.size(); ++step) {
      const Samples all = model_(batches[step].epoch, kMostSamples);
      const std::uint64_t first = batches[step].number * batch_;
      const std::uint64_t count = std::min(batch_, all.size() - first);
      steps.push_back(divide(replicas, step,
                             {all.begin() + static_cast<long>(first),
                              all.begin() + static_cast<long>(first + count)}));
    }
    return steps;
  }

 private:
  // SEMANTICS D4 and D5, as they are written there.
  [[nodiscard]] Expected divide(std::uint64_t replicas, std::uint64_t step,
                                const Samples& samples) const {
    const bool front = remainder_ == Remainder::pad || split_ == Split::round_robin;
    const std::uint64_t rows = front ? batch_ : samples.size();
    std::vector<std::uint64_t> counts(replicas, rows / replicas);
    for (std::uint64_t j = 0; j < rows % replicas; ++j)
      ++counts[(step * (batch_ % replicas) + j) % replicas];
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
    const std::uint64_t op = below(10);
    // Only these keep the samples the same in every epoch, which shuffle_chunks needs.
    const bool selects = op <= 2 || op == 8;
    if (op == 9 && !is_fixed_) return;
    is_fixed_ = is_fixed_ && selects;
    switch (op) {
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
      case 9: {
        dataset_ = dataset_->shuffle_chunks({.reshuffle_each_epoch = reshuffle});
        const auto chunk_of = [begins = source_->chunks()](std::uint64_t number) {
          return static_cast<std::uint64_t>(std::ranges::upper_bound(begins, number) -
                                            begins.begin());
        };
        model_ = reference::shuffle_chunks(model_, chunk_of, key, reshuffle);
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
    const bool uneven = any_world_ || batch_ % replicas_ != 0;
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
  bool any_world_;
  bool is_fixed_ = true;  // samples and their order are the same in every epoch, so far
  std::shared_ptr<FakeSource> source_;
  std::optional<Dataset> dataset_;
  Model model_;
  Model batch_model_;
  std::uint32_t operation_ = 0;
  std::uint64_t batch_ = 0;
  std::uint64_t replicas_ = 1;
  Remainder remainder_ = Remainder::keep;
  Split split_ = Split::scatter;
};

}  // namespace penstock::testing_support

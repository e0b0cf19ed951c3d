#include <algorithm>
#include <chrono>
#include <functional>
#include <iterator>
#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/loader/fakes.hpp"

namespace penstock {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::drain;
using testing_support::fake;
using testing_support::numbers_of;
using testing_support::Seen;

constexpr std::uint64_t kSamples = 10'000;
constexpr std::uint64_t kBad = 5'000;

std::shared_ptr<testing_support::FakeSource> with_bad(std::set<std::uint64_t> bad) {
  auto source = fake(kSamples);
  source->bad = std::move(bad);
  return source;
}

Dataset batches(const std::shared_ptr<testing_support::FakeSource>& source) {
  return Dataset(source).shuffle({.seed = 3}).batch(32).prefetch_to_devices(host_devices(4));
}

// SEMANTICS F2.
TEST(Faults, NoReplacementHasTheWeightZero) {
  auto source = fake(60);
  for (std::uint64_t k = 0; k < 60; k += 3) source->bad.insert(k);
  std::vector<double> weights(60, 0);
  std::fill_n(weights.begin(), 20, 1);
  Loader loader =
      Dataset(source).seed(1).sample(weights).batch(5).loader({.on_fault = OnFault::replace});
  const auto steps = drain(loader);
  EXPECT_GT(loader.stats().faults, 10U);
  for (const Seen& step : steps)
    for (const SampleId& sample : step.samples) EXPECT_LT(sample.number, 20U);
}

// Weights are those of positions, which a shuffle gives to other samples in each epoch.
TEST(Faults, NoReplacementHasTheWeightZeroBehindOtherOperations) {
  std::vector<double> weights(60, 0);
  std::fill_n(weights.begin(), 20, 1);
  const auto samples_of = [](Loader loader) {
    std::set<std::uint64_t> numbers;
    for (const Seen& step : drain(loader))
      for (const SampleId& sample : step.samples) numbers.insert(sample.number);
    return numbers;
  };
  const auto shuffled = [&](const SourcePtr& source) {
    return Dataset(source).seed(1).shuffle().sample(weights, {.count = 300}).batch(5);
  };
  const auto each = [&](const SourcePtr& source) {
    return Dataset(source).seed(1).repeat_each(2).take(60).sample(weights, {.count = 300}).batch(5);
  };
  const auto twice = [&](const SourcePtr& source) {
    return Dataset(source)
        .seed(1)
        .sample(std::vector<double>(60, 1))
        .sample(weights, {.count = 300})
        .batch(5);
  };
  for (const std::function<Dataset(const SourcePtr&)>& plan :
       {std::function<Dataset(const SourcePtr&)>(shuffled), {each}, {twice}}) {
    const std::set<std::uint64_t> drawn = samples_of(plan(fake(60)).loader());
    auto source = fake(60);
    source->bad.insert(*drawn.begin());
    Loader loader = plan(source).loader({.on_fault = OnFault::replace});
    const std::set<std::uint64_t> delivered = samples_of(std::move(loader));
    EXPECT_TRUE(std::ranges::includes(drawn, delivered));
    EXPECT_LT(delivered.size(), drawn.size());
  }
}

// SEMANTICS proof 8, one process.
TEST(Faults, RaiseNamesTheSampleAtItsStepAndThenAgain) {
  Loader clean = batches(fake(kSamples)).loader();
  std::uint64_t bad_step = 0;
  for (const Seen& step : drain(clean))
    if (std::ranges::count(step.samples, kBad, &SampleId::number) > 0) bad_step = step.step;

  Loader loader = batches(with_bad({kBad})).loader({.threads = 3});
  std::uint64_t delivered = 0;
  try {
    while (loader.next()) ++delivered;
    FAIL() << "no error came";
  } catch (const DataError& error) {
    EXPECT_EQ(delivered, bad_step);
    EXPECT_EQ(error.fault().sample.number, kBad);
    EXPECT_EQ(error.fault().step, bad_step);
    EXPECT_EQ(error.fault().offset, 5U);
    EXPECT_THAT(error.what(),
                AllOf(HasSubstr("sample 5000"), HasSubstr("fake/5000"), HasSubstr("made bad"),
                      HasSubstr("on_fault = mask or replace")));
  }
  EXPECT_THROW((void)loader.next(), DataError);
  EXPECT_THROW((void)loader.next_epoch(), DataError);
  EXPECT_EQ(loader.state().step, bad_step);
}

TEST(Faults, MaskDeliversAllOthersInTheirPlaces) {
  Loader clean = batches(fake(kSamples)).loader();
  const auto expected = drain(clean);
  Loader loader = batches(with_bad({kBad})).loader({.on_fault = OnFault::mask, .threads = 3});
  std::uint64_t valid = 0;
  for (std::size_t at = 0; const auto step = loader.next(); ++at) {
    ASSERT_TRUE(std::ranges::equal(step->samples(), expected[at].samples));
    std::size_t row_of_step = 0;
    for (const DeviceBatch& part : *step)
      for (std::uint64_t row = 0; row < part.size(); ++row, ++row_of_step) {
        const bool is_valid = part["valid"].data<bool>()[row] == 1;
        const std::uint64_t number = part["number"].data<std::uint64_t>()[2 * row];
        valid += is_valid;
        ASSERT_EQ(is_valid, part.samples()[row].number != kBad);
        ASSERT_EQ(number, is_valid ? expected[at].numbers[row_of_step] : 0);
      }
    for (const Fault& fault : step->faults()) EXPECT_EQ(fault.sample.number, kBad);
  }
  EXPECT_EQ(valid, kSamples - 1);
  ASSERT_EQ(loader.faults().size(), 1U);
  EXPECT_EQ(loader.faults()[0].file, "fake/5000");
  EXPECT_EQ(loader.stats().faults, 1U);
}

TEST(Faults, ReplaceKeepsEveryOtherSampleAndAgreesForAllThreads) {
  std::set<std::uint64_t> bad;
  for (std::uint64_t number = 0; number < kSamples; number += 7) bad.insert(number);
  Loader clean = batches(fake(kSamples)).loader();
  const auto expected = numbers_of(drain(clean));
  std::vector<std::uint64_t> reference;
  for (const int threads : {1, 4}) {
    Loader loader =
        batches(with_bad(bad)).loader({.on_fault = OnFault::replace, .threads = threads});
    const auto steps = drain(loader);
    const auto numbers = numbers_of(steps);
    ASSERT_EQ(numbers.size(), kSamples);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      ASSERT_FALSE(bad.contains(numbers[i]));
      ASSERT_TRUE(bad.contains(expected[i]) || numbers[i] == expected[i]);
    }
    for (const Seen& step : steps)  // rows carry the number that was delivered
      for (std::size_t row = 0; row < step.samples.size(); ++row)
        ASSERT_EQ(step.numbers[row], step.samples[row].number);
    if (reference.empty()) reference = numbers;
    ASSERT_EQ(numbers, reference);
    EXPECT_EQ(loader.stats().faults, bad.size());
    EXPECT_EQ(loader.faults().size(), 100U);
  }
}

TEST(Faults, ReplacementsComeFromTheSameShard) {
  auto source = fake(1'000);
  for (std::uint64_t number = 0; number < 1'000; number += 3) source->bad.insert(number);
  Loader loader = Dataset(source)
                      .shard(4, 1)
                      .shuffle({.seed = 1})
                      .batch(10)
                      .loader({.on_fault = OnFault::replace});
  for (const std::uint64_t number : numbers_of(drain(loader))) ASSERT_EQ(number % 4, 1U);
}

// A part for validation that is made by hand.
TEST(Faults, ReplacementsComeFromWhatIsTakenBehindAFixedShuffle) {
  auto source = fake(100);
  for (std::uint64_t number = 0; number < 100; number += 2) source->bad.insert(number);
  const auto numbers = [](const Dataset& part) {
    Loader loader = part.batch(10).loader({.on_fault = OnFault::replace});
    const std::vector<std::uint64_t> all = numbers_of(drain(loader));
    EXPECT_GT(loader.stats().faults, 5U);
    return std::set<std::uint64_t>(all.begin(), all.end());
  };
  const auto disjoint = [&](const Dataset& all) {
    std::set<std::uint64_t> train = numbers(all.take(80).shuffle()), both;
    const std::set<std::uint64_t> validation = numbers(all.skip(80));
    std::ranges::set_intersection(train, validation, std::inserter(both, both.end()));
    EXPECT_THAT(both, testing::IsEmpty());
  };
  disjoint(Dataset(source).seed(1).shuffle({.reshuffle_each_epoch = false}));
  const Dataset both = concatenate({Dataset(source).take(60), Dataset(source).skip(60)}).seed(1);
  disjoint(both.shuffle({.reshuffle_each_epoch = false}));
  disjoint(Dataset(source).seed(1).shuffle_chunks({.reshuffle_each_epoch = false}));
}

TEST(Faults, ReplacementsComeFromTheSamePartOfConcatenatedData) {
  const auto bad = [](std::uint64_t size) {
    auto source = fake(size);
    for (std::uint64_t number = 0; number < size; number += 5) source->bad.insert(number);
    return Dataset(source);
  };
  const Dataset inner = concatenate({bad(50).shuffle({.seed = 4, .reshuffle_each_epoch = false}),
                                     concatenate({bad(30), bad(40).skip(5)}).shard(2, 0)});
  std::vector<std::vector<std::uint64_t>> positions(2);
  for (std::uint64_t k = 0; k < inner.size(); ++k) positions[k % 3 == 0 ? 0 : 1].push_back(k);
  using Numbers = std::set<std::pair<std::uint32_t, std::uint64_t>>;  // with their source
  const auto numbers = [](const Dataset& part, OnFault on_fault) {
    Numbers all;
    Loader loader = part.batch(5).loader({.on_fault = on_fault});
    for (const Seen& step : drain(loader))
      for (const SampleId& sample : step.samples) all.emplace(sample.source, sample.number);
    EXPECT_GT(loader.stats().faults, 3U);
    return all;
  };
  for (const std::vector<std::uint64_t>& chosen : positions) {
    const Dataset part = inner.seed(2).select(chosen);
    const Numbers own = numbers(part, OnFault::mask);
    EXPECT_TRUE(std::ranges::includes(own, numbers(part.shuffle(), OnFault::replace)));
  }
}

TEST(Faults, ReplaceGivesUpWhenAllReplacementsAreBad) {
  auto source = fake(20);
  for (std::uint64_t number = 0; number < 20; ++number) source->bad.insert(number);
  Loader loader = Dataset(source).seed(1).batch(4).loader({.on_fault = OnFault::replace});
  EXPECT_THAT([&] { (void)loader.next(); },
              ThrowsMessage<DataError>(
                  AllOf(HasSubstr("sample 0"), HasSubstr("16 replacements were bad too"))));
}

// A machine that has too little memory at the moment says nothing of the sample: another one in its place would make the
// data depend on the machine.
TEST(Faults, WhereMemoryIsOutNothingIsReplaced) {
  constexpr std::uint64_t kLarge = 70;
  for (const OnFault policy : {OnFault::raise, OnFault::replace, OnFault::mask}) {
    for (const int io_threads : {0, 2}) {
      auto source = fake(200);
      source->on_read = [](std::uint64_t number) {
        if (number == kLarge) throw std::bad_alloc();
      };
      Loader loader = Dataset(source).seed(1).batch(20).loader(
          {.on_fault = policy, .threads = 2, .io_threads = io_threads});
      for (int step = 0; step < 3; ++step) ASSERT_TRUE(loader.next());
      EXPECT_THAT(
          [&] { (void)loader.next(); },
          ThrowsMessage<DataError>(AllOf(HasSubstr("sample 70 "), HasSubstr("out of memory"),
                                         HasSubstr("more memory"))));
      EXPECT_EQ(loader.state().step, 3U);
    }
  }
}

TEST(Faults, AFunctionThatFindsNoMemoryMakesNoBadSample) {
  struct NoShare : std::runtime_error, OutOfMemory {
    using std::runtime_error::runtime_error;
  };
  for (const OnFault policy : {OnFault::raise, OnFault::replace, OnFault::mask}) {
    for (const bool by_type : {false, true}) {
      const auto hungry = map_function(
          {.name = "hungry", .inputs = {"number"}, .outputs = {{"number", DType::u64, {2}}}},
          [by_type](std::span<const ConstTensorView> in, Outputs out, Random&) {
            if (in[0].data<std::uint64_t>()[0] == 7) {
              if (by_type) throw NoShare("7 GiB cannot be had");
              throw std::bad_alloc();
            }
            std::memcpy(out[0].raw(), in[0].raw(), in[0].byte_size());
          });
      Loader loader = Dataset(fake(20)).map(hungry).batch(4).loader({.on_fault = policy});
      ASSERT_TRUE(loader.next());
      EXPECT_THAT([&] { (void)loader.next(); },
                  ThrowsMessage<DataError>(
                      AllOf(HasSubstr("sample 7 "), HasSubstr("more memory"),
                            HasSubstr(by_type ? "7 GiB cannot be had" : "out of memory"))));
    }
  }
}

// The consumer reads the first error while other threads find theirs.
TEST(Faults, ManyThreadsThatFailInOneStepAreOneError) {
  class Lost : public testing_support::FakeSource {
   public:
    using FakeSource::FakeSource;
    [[nodiscard]] std::string location(std::uint64_t number) const override {
      throw std::runtime_error("no place has number " + std::to_string(number));
    }
  };
  auto source = std::make_shared<Lost>(1'000);
  for (std::uint64_t number = 0; number < source->size(); ++number) source->bad.insert(number);
  for (const int io_threads : {0, 2})
    for (int round = 0; round < 100; ++round) {
      Loader loader = Dataset(source).batch(1'000).loader({.threads = 4, .io_threads = io_threads});
      EXPECT_THAT([&] { (void)loader.next(); },
                  ThrowsMessage<std::runtime_error>(HasSubstr("no place has number")));
    }
}

TEST(Faults, BudgetsByCountAndByRateRaiseAtDelivery) {
  auto source = fake(1'000);
  for (std::uint64_t number = 300; number < 360; number += 2) source->bad.insert(number);
  const auto run = [&](LoaderOptions options) {
    options.on_fault = OnFault::mask;
    options.threads = 4;
    Loader loader = Dataset(source).batch(10).loader(options);
    std::uint64_t steps = 0;
    try {
      while (loader.next()) ++steps;
    } catch (const DataError& error) {
      EXPECT_THAT(error.what(), HasSubstr("are tolerated"));
    }
    return steps;
  };
  EXPECT_EQ(run({}), 100U);
  EXPECT_EQ(run({.max_faults = 30}), 100U);
  EXPECT_EQ(run({.max_faults = 29}), 35U);
  EXPECT_EQ(run({.max_faults = 0}), 30U);
  EXPECT_THAT(
      [&] {
        Loader first =
            Dataset(source).batch(100).loader({.on_fault = OnFault::mask, .max_faults = 1});
        while (first.next()) {
        }
      },
      ThrowsMessage<DataError>(AllOf(HasSubstr("sample 302 "), HasSubstr("there were 2 faults"))));
  EXPECT_EQ(run({.max_fault_rate = 0.09}), 100U);
  EXPECT_EQ(run({.max_fault_rate = 0.05}), 33U);  // 20 of 340 are more than 5%, 15 of 330 are not
  // A rate that is passed before the 100 samples from which on it counts. No loader reads the source any more.
  source->bad.clear();
  for (std::uint64_t number = 0; number < 11; ++number) source->bad.insert(number);
  EXPECT_EQ(run({.max_fault_rate = 0.1}), 9U);
  EXPECT_EQ(run({.max_fault_rate = 0.11}), 100U);
}

// A run that is stopped and resumed raises where one that goes on does.
TEST(Faults, BudgetsCountWhatCameBeforeARestore) {
  auto source = fake(400);
  for (std::uint64_t number = 100; number < 300; number += 10) source->bad.insert(number);
  for (LoaderOptions options :
       {LoaderOptions{.max_faults = 12}, LoaderOptions{.max_fault_rate = 0.05}}) {
    options.on_fault = OnFault::mask;
    const Dataset data = Dataset(source).batch(10);
    const auto steps_of = [&](Loader& loader) {
      std::uint64_t steps = 0;
      EXPECT_THAT(
          [&] {
            while (loader.next()) ++steps;
          },
          ThrowsMessage<DataError>(HasSubstr("are tolerated")));
      return steps;
    };
    Loader whole = data.loader(options);
    const std::uint64_t steps = steps_of(whole);
    EXPECT_GT(steps, 15U);
    for (std::uint64_t stop = 0; stop <= steps; ++stop) {
      Loader first = data.loader(options);
      for (std::uint64_t step = 0; step < stop; ++step) (void)first.next();
      const std::string state = first.state().to_json();
      Loader rest = data.loader(options);
      rest.restore(LoaderState::from_json(state));
      EXPECT_EQ(stop + steps_of(rest), steps);
    }
  }
}

TEST(Faults, AUsersExceptionIsAFaultThatKeepsWhatWasThrown) {
  struct Special : std::runtime_error {
    using std::runtime_error::runtime_error;
  };
  const auto picky = map_function(
      {.name = "picky", .inputs = {"number"}, .outputs = {{"number", DType::u64, {2}}}},
      [](std::span<const ConstTensorView> in, Outputs out, Random&) {
        if (in[0].data<std::uint64_t>()[0] == 7) throw Special("I do not like sevens");
        std::memcpy(out[0].raw(), in[0].raw(), in[0].byte_size());
      });
  Loader loader = Dataset(fake(20)).map(picky).batch(4).loader();
  EXPECT_TRUE(loader.next());
  try {
    (void)loader.next();
    FAIL() << "no error came";
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr("I do not like sevens"));
    EXPECT_EQ(error.fault().sample.number, 7U);
    EXPECT_THROW(std::rethrow_exception(error.fault().cause), Special);
  }
}

TEST(Faults, ASourceThatThrowsIsAFaultToo) {
  auto source = fake(10);
  source->on_read = [](std::uint64_t number) {
    if (number == 2) throw std::runtime_error("the cable came out");
  };
  Loader loader = Dataset(source).batch(4).loader();
  EXPECT_THAT([&] { (void)loader.next(); },
              ThrowsMessage<DataError>(HasSubstr("the cable came out")));
}

TEST(Faults, TravelWithTheState) {
  const Dataset dataset = batches(with_bad({1, 2, 3, 4, 5, 6}));
  const LoaderOptions options{.on_fault = OnFault::mask};
  Loader whole = dataset.loader(options);
  (void)drain(whole);
  Loader first = dataset.loader(options);
  (void)drain(first, 150);
  Loader second = dataset.loader(options);
  second.restore(LoaderState::from_json(first.state().to_json()));
  (void)drain(second);
  ASSERT_EQ(second.faults().size(), whole.faults().size());
  for (std::size_t i = 0; i < whole.faults().size(); ++i)
    EXPECT_EQ(second.faults()[i].to_string(), whole.faults()[i].to_string());
  EXPECT_EQ(second.stats().faults, 6U);
}

TEST(Faults, AMaskedRowIsZeroWhereAnEarlierBatchLay) {
  auto source = fake(12);
  source->bad = {9};
  Loader loader = Dataset(source)
                      .batch(4)
                      .prefetch_to_devices(host_devices(1), {.depth = 1})
                      .loader({.on_fault = OnFault::mask});
  const auto steps = drain(loader);
  EXPECT_EQ(steps[2].numbers, (std::vector<std::uint64_t>{8, 0, 10, 11}));
}

}  // namespace
}  // namespace penstock

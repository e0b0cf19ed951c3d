// Dataset::split: disjoint parts of a data set, by classes and by groups.
#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/loader/fakes.hpp"
#include "tests/source/files.hpp"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Lt;
using testing::ThrowsMessage;
using testing_support::drain;
using testing_support::fake;
using testing_support::numbers_of;
using testing_support::through_json;

std::vector<std::uint64_t> numbers_in(const Dataset& part) {
  Loader loader = part.batch(64).loader({.threads = 1});
  return numbers_of(drain(loader));
}

std::vector<std::vector<std::uint64_t>> numbers_in(const std::vector<Dataset>& parts) {
  std::vector<std::vector<std::uint64_t>> all;
  for (const Dataset& part : parts) all.push_back(numbers_in(part));
  return all;
}

std::vector<std::uint64_t> joined(const std::vector<std::vector<std::uint64_t>>& parts) {
  std::vector<std::uint64_t> all;
  for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
  std::ranges::sort(all);
  return all;
}

TEST(Split, PartsAreDisjointCompleteAndTheSameAgain) {
  for (const std::uint64_t count : {2U, 3U, 10U, 11U, 999U, 1000U}) {
    const Dataset all(fake(count));
    for (const double fraction : {0.5, 0.75, 0.9}) {
      if (static_cast<double>(count) * (1 - fraction) < 1) continue;
      const auto parts = numbers_in(all.split({fraction, 1 - fraction}, {.seed = 4}));
      EXPECT_LT(
          std::abs(static_cast<double>(parts[0].size()) - fraction * static_cast<double>(count)),
          1);
      EXPECT_TRUE(std::ranges::is_sorted(parts[0]));
      EXPECT_EQ(joined(parts), numbers_in(all));
      EXPECT_EQ(numbers_in(all.split({fraction, 1 - fraction}, {.seed = 4})), parts);
      if (count > 100) {
        EXPECT_NE(numbers_in(all.split({fraction, 1 - fraction})), parts);
      }
    }
  }
  const auto three = numbers_in(Dataset(fake(1000)).split({0.7, 0.2, 0.1}));
  EXPECT_THAT((std::vector{three[0].size(), three[1].size(), three[2].size()}),
              ElementsAre(700U, 200U, 100U));
  EXPECT_EQ(joined(three), numbers_in(Dataset(fake(1000))));
  // The same on any machine.
  EXPECT_THAT(numbers_in(Dataset(fake(12)).split({0.75, 0.25}, {.seed = 1}))[1],
              ElementsAre(6U, 8U, 9U));
  EXPECT_THAT(numbers_in(Dataset(fake(12)).split(
                  {0.75, 0.25}, {.seed = 1, .by = {0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2}}))[1],
              ElementsAre(1U, 4U, 9U));
  EXPECT_THAT(numbers_in(Dataset(fake(12)).split(
                  {0.75, 0.25}, {.seed = 1, .group = {0, 1, 2, 0, 1, 2, 0, 1, 2, 3, 3, 3}}))[1],
              ElementsAre(0U, 3U, 6U));
}

// Every sample has the same chance.
TEST(Split, IsUniform) {
  std::vector<int> chosen(20);
  const Dataset all(fake(20));
  for (std::uint64_t seed = 0; seed < 400; ++seed)
    for (const std::uint64_t number : numbers_in(all.split({0.75, 0.25}, {.seed = seed})[1]))
      ++chosen[number];
  double chi_square = 0;
  for (const int count : chosen) chi_square += (count - 100.0) * (count - 100.0) / 100;
  EXPECT_LT(chi_square,
            45);  // 19 degrees of freedom: above it in one of 1,000 runs, and the seeds are fixed
}

TEST(Split, EachPartHasItsFractionOfEachClass) {
  constexpr std::uint64_t kSplitSamples = 3000;
  std::vector<std::int64_t> by;
  for (std::uint64_t number = 0; number < kSplitSamples; ++number)
    by.push_back(number % 7 == 0 ? -5 : static_cast<std::int64_t>(number * number % 11));
  std::map<std::int64_t, double> sizes;
  for (const std::int64_t one : by) ++sizes[one];
  const Dataset all(fake(kSplitSamples));
  for (const std::vector<double>& fractions : {std::vector{0.9, 0.1}, {0.6, 0.25, 0.15}}) {
    const auto parts = numbers_in(all.split(fractions, {.seed = 9, .by = by}));
    EXPECT_EQ(joined(parts), numbers_in(all));
    for (std::size_t part = 0; part < parts.size(); ++part) {
      std::map<std::int64_t, double> found;
      for (const std::uint64_t number : parts[part]) ++found[by[number]];
      for (const auto& [one, size] : sizes)
        EXPECT_THAT(std::abs(found[one] - fractions[part] * size), Lt(fractions.size() - 1.0))
            << "class " << one;
      EXPECT_LT(std::abs(static_cast<double>(parts[part].size()) - fractions[part] * kSplitSamples),
                1);
    }
  }
  std::vector<std::int64_t> renamed;
  for (const std::int64_t one : by) renamed.push_back(100 - one);
  EXPECT_EQ(numbers_in(all.split({0.9, 0.1}, {.by = renamed})),
            numbers_in(all.split({0.9, 0.1}, {.by = by})))
      << "what classes are called changes nothing";
}

TEST(Split, NoGroupIsInTwoParts) {
  constexpr std::uint64_t kSplitSamples = 2000;
  std::vector<std::int64_t> group;
  for (std::uint64_t number = 0; number < kSplitSamples; ++number)
    group.push_back(static_cast<std::int64_t>(number % 37 * (number % 5 == 0 ? 1 : 2)));
  const Dataset all(fake(kSplitSamples));
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const auto parts = numbers_in(all.split({0.8, 0.2}, {.seed = seed, .group = group}));
    EXPECT_EQ(joined(parts), numbers_in(all));
    std::set<std::int64_t> first;
    for (const std::uint64_t number : parts[0]) first.insert(group[number]);
    for (const std::uint64_t number : parts[1]) ASSERT_FALSE(first.contains(group[number]));
    EXPECT_NEAR(static_cast<double>(parts[1].size()), 0.2 * kSplitSamples, 60);
  }
}

TEST(Split, IsOfWhatThePlanChoseAndTravels) {
  const Dataset some = concatenate({Dataset(fake(300)).shard(3, 1), Dataset(fake(50)).skip(10)});
  const std::vector<Dataset> parts = some.split({0.5, 0.5}, {.seed = 2});
  EXPECT_EQ(*parts[0].size() + *parts[1].size(), 140U);
  const Dataset plan = parts[0].seed(3).shuffle().batch(8).repeat(2);
  Loader loader = plan.loader({.digest = true});
  for (int step = 0; step < 5; ++step) (void)loader.next();
  const std::string state = loader.state().to_json();
  Loader other = through_json(plan).loader({.digest = true});
  other.restore(LoaderState::from_json(state));
  EXPECT_EQ(drain(other), drain(loader));
  Loader of_other_part = parts[1].seed(3).shuffle().batch(8).repeat(2).loader();
  EXPECT_THROW(of_other_part.restore(LoaderState::from_json(state)), Error);
}

TEST(Split, ClassesAreOfTheSamplesAtThePositions) {
  const auto number_of = [](const RecordInfo& info) {
    return std::stoll(info.key.substr(info.key.find('/') + 1));
  };
  const Dataset some = concatenate({Dataset(fake(5)).skip(3), Dataset(fake(3)).select({2, 0})});
  EXPECT_THAT(some.classify(number_of), ElementsAre(3, 4, 2, 0));
  EXPECT_THAT([&] { (void)some.labels(); },
              ThrowsMessage<Error>(HasSubstr("labels: fake/3 has no label")));
}

TEST(Split, WhatDoesNotFitIsRefused) {
  const Dataset all(fake(10));
  const auto refused = [](const Dataset& plan, const std::vector<double>& fractions,
                          const SplitOptions& options, const std::string& because) {
    EXPECT_THAT([&] { (void)plan.split(fractions, options); },
                ThrowsMessage<std::invalid_argument>(HasSubstr(because)));
  };
  refused(all, {0.9}, {}, "expected fractions that add up to 1, found 0.9");
  refused(all, {}, {}, "add up to 1, found 0");
  refused(all, {1.5, -0.5}, {}, "a fraction is above 0, found -0.5");
  refused(all, {0.99, 0.01}, {}, "part 2 of 2, a fraction of 0.01, would have none of 10 samples");
  refused(all, {0.9, 0.1}, {.group = {0, 0, 0, 0, 0, 1, 1, 1, 1, 1}},
          "would have none of 10 samples: a group goes to one part as a whole");
  refused(all.repeat_each(2), {0.5, 0.5}, {}, "copies of a sample would be in several parts");
  const Dataset both = concatenate({all.take(6), all.skip(5)});
  refused(both, {0.5, 0.5}, {}, "have samples in common, such as fake/5, and copies");
  refused(concatenate({Dataset(source::numbers(9)), Dataset(source::numbers(9))}), {0.5, 0.5}, {},
          "have samples in common");
  // Other data of the same names and sizes.
  const test::TemporaryFolder first, second;
  for (const auto* const folder : {&first, &second})
    for (const char* name : {"a/1.jpg", "b/1.jpg"}) folder->write(name);
  const auto images = [](const test::TemporaryFolder& folder) {
    return Dataset(source::image_folder(folder.path()));
  };
  EXPECT_EQ(concatenate({images(first), images(second)}).split({0.5, 0.5}).size(), 2U);
  refused(concatenate({images(first), images(first)}), {0.5, 0.5}, {}, "have samples in common");
  EXPECT_EQ(concatenate({all.take(5), all.skip(5)}).split({0.5, 0.5}).size(), 2U);
  EXPECT_EQ(both.split({0.5, 0.5}, {.group = {0, 0, 0, 0, 0, 1, 1, 2, 2, 2, 2}}).size(), 2U);
  refused(all, {0.5, 0.5}, {.by = {1, 2}}, "by has 2 values, and there are 10 samples");
  refused(all, {0.5, 0.5},
          {.by = std::vector<std::int64_t>(10), .group = std::vector<std::int64_t>(10)},
          "by and group exclude each other");
  refused(all.shuffle(), {0.5, 0.5}, {}, "put it before shuffle");
  refused(all.repeat(2), {0.5, 0.5}, {}, "put it before repeat");
  refused(all.batch(2), {0.5, 0.5}, {}, "put it before batch");
  refused(mix({all, all}), {0.5, 0.5}, {}, "a mix has another order in each epoch");
  refused(concatenate({all, all.shuffle()}), {0.5, 0.5}, {}, "put it before shuffle");
  EXPECT_THAT([&] { (void)all.shuffle().labels(); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("labels: shuffle")));
}

}  // namespace
}  // namespace penstock

// A sample that is drawn several times in an epoch has its own crop and flip each time, and the
// same ones wherever the draw is delivered.
#include <array>
#include <filesystem>
#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/testing/synthetic.hpp>

#include "tests/loader/fakes.hpp"

namespace penstock {
namespace {

using testing_support::drain;
using testing_support::fake;
using testing_support::Seen;

using Where = std::array<std::int32_t, 8>;  // decode_image's geometry: region, flip and size

struct Row {
  SampleId id;
  Where where{};

  friend bool operator==(const Row&, const Row&) = default;
};
using Rows = std::vector<Row>;

struct Delivered {
  Rows rows;
  Digest digest;

  friend bool operator==(const Delivered&, const Delivered&) = default;
};

constexpr std::uint64_t kPhotographs = 3;
constexpr std::uint64_t kDraws = 64;

Dataset photographs() {
  return synthetic_images({.count = kPhotographs,
                           .cache = std::filesystem::temp_directory_path() / "penstock-test"})
      .seed(7);
}

Dataset drawn() {
  return photographs().sample(std::vector<double>(kPhotographs, 1), {.count = kDraws});
}

// Three times each photograph, and four of one.
Dataset selected() { return photographs().select({0, 1, 2, 2, 1, 0, 0, 1, 2, 2}); }

Dataset batches(const Dataset& samples) {
  return samples
      .map(decode_image({.crop = random_resized_crop(16), .flip = 0.5F, .geometry = "where"}))
      .batch(8);
}

Delivered rows_of(const Step& step) {
  Delivered all{.rows = {}, .digest = step.digest()};
  for (const DeviceBatch& part : step) {
    const auto* values = part["where"].data<std::int32_t>();
    for (const SampleId& id : part.samples()) {
      Row row{.id = id};
      std::copy_n(values, row.where.size(), row.where.begin());
      values += row.where.size();
      all.rows.push_back(row);
    }
  }
  return all;
}

std::vector<Delivered> deliver(Loader& loader) {
  std::vector<Delivered> steps;
  while (const auto step = loader.next()) steps.push_back(rows_of(*step));
  return steps;
}

std::vector<Delivered> deliver(const Dataset& samples) {
  Loader loader = batches(samples).loader({.digest = true});
  return deliver(loader);
}

Rows joined(const std::vector<Delivered>& steps) {
  Rows all;
  for (const Delivered& step : steps) all.insert(all.end(), step.rows.begin(), step.rows.end());
  return all;
}

std::set<Where> crops(const Rows& rows) {
  std::set<Where> all;
  for (const Row& row : rows) all.insert(row.where);
  return all;
}

TEST(Draws, SixtyFourOfThreeImagesAreSixtyFourCrops) {
  const Rows rows = joined(deliver(drawn()));
  ASSERT_EQ(rows.size(), kDraws);
  EXPECT_EQ(crops(rows).size(), kDraws);
  int flipped = 0;
  for (std::size_t k = 0; k < rows.size(); ++k) {
    EXPECT_EQ(rows[k].id.draw, k + 1);
    flipped += rows[k].where[4];
  }
  EXPECT_GT(flipped, 16);
  EXPECT_LT(flipped, 48);
  EXPECT_EQ(crops(joined(deliver(selected()))).size(), 10U);
  EXPECT_EQ(crops(joined(deliver(drawn().repeat(2)))).size(), 2 * kDraws);
}

TEST(Draws, AreTheSameOnAnyThreadsDevicesAndProcesses) {
  for (const Dataset& samples : {drawn(), selected(), drawn().repeat(2).shuffle({.buffer = 20})}) {
    const auto expected = deliver(samples);
    for (const std::uint32_t processes : {1U, 2U, 4U})
      for (const int devices : {1, 2})
        for (const int threads : {1, 3}) {
          std::vector<Delivered> united(expected.size());
          for (std::uint32_t id = 0; id < processes; ++id) {
            Loader loader = batches(samples)
                                .prefetch_to_devices(host_devices(devices))
                                .loader({.context = InputContext{.num_input_pipelines = processes,
                                                                 .input_pipeline_id = id},
                                         .digest = true,
                                         .threads = threads});
            const auto steps = deliver(loader);
            ASSERT_EQ(steps.size(), expected.size());
            for (std::size_t step = 0; step < steps.size(); ++step) {
              united[step].digest += steps[step].digest;
              united[step].rows.insert(united[step].rows.end(), steps[step].rows.begin(),
                                       steps[step].rows.end());
            }
          }
          ASSERT_EQ(united, expected)
              << processes << " processes, " << devices << " devices, " << threads << " threads";
        }
  }
}

TEST(Draws, AreTheSameAfterARestoreAtEveryStepAndThroughBatchAt) {
  for (const Dataset& samples : {drawn(), selected(), drawn().repeat(2).shuffle({.buffer = 20})}) {
    const Dataset dataset = batches(samples);
    const auto expected = deliver(samples);
    Loader walker = dataset.loader({.digest = true});
    Loader random_access = dataset.loader({.digest = true});
    for (std::size_t at = 0; at <= expected.size(); ++at) {
      Loader resumed = dataset.loader({.digest = true});
      resumed.restore(LoaderState::from_json(walker.state().to_json()));
      ASSERT_EQ(deliver(resumed),
                std::vector(expected.begin() + static_cast<std::ptrdiff_t>(at), expected.end()));
      if (at == expected.size()) break;
      ASSERT_EQ(rows_of(random_access.batch_at(expected.size() - 1 - at)),
                expected[expected.size() - 1 - at]);
      (void)walker.next();
    }
  }
}

TEST(Draws, KeepTheirCropsWhereverLaterOperationsPutThem) {
  std::map<std::uint64_t, Row> by_draw;
  for (const Row& row : joined(deliver(drawn()))) by_draw[row.id.draw] = row;
  for (const Dataset& samples : {drawn().shuffle(), drawn().shuffle({.buffer = 9}),
                                 drawn().shard(3, 1), drawn().skip(20).take(30)})
    for (const Row& row : joined(deliver(samples))) ASSERT_EQ(row, by_draw.at(row.id.draw));
}

TEST(Draws, OfDatasetsThatAreMixedAreTheirOwn) {
  const Dataset mixed = mix({drawn(), photographs().repeat(30)}, {.weights = {1, 1}}).seed(7);
  const Rows alone = joined(deliver(drawn()));
  std::uint64_t found = 0;
  for (const Row& row : joined(deliver(mixed))) {
    if (row.id.source == 0)
      ASSERT_EQ(row, alone.at(found++));
    else
      ASSERT_EQ(row.id.draw, 0U);
  }
  EXPECT_EQ(found, alone.size());
}

TEST(Draws, AreNoneWhereNothingComesTwice) {
  const auto draw = [](const Row& row) { return row.id.draw; };
  for (const Dataset& samples :
       {photographs(), photographs().repeat(3), photographs().shuffle().repeat(2),
        photographs().select({2, 0}),
        photographs().filter([](const RecordInfo& info) { return info.label != 1; })})
    for (const Row& row : joined(deliver(samples))) ASSERT_EQ(draw(row), 0U);
}

TEST(Draws, ABatchThatComesAgainIsTheSameOne) {
  const Dataset dataset = batches(photographs().repeat(16)).select({1, 1, 3, 1});
  Loader loader = dataset.loader({.digest = true});
  const auto steps = deliver(loader);
  EXPECT_EQ(steps[0].rows, steps[1].rows);
  EXPECT_EQ(steps[0].rows, steps[3].rows);
  EXPECT_NE(steps[0].rows, steps[2].rows);
  EXPECT_NE(steps[0].digest, steps[1].digest) << "a digest tells the step";
}

TEST(Draws, AReplacementIsNone) {
  const auto source = fake(40);
  source->bad = {1, 2};
  const Dataset dataset = Dataset(source).seed(7).select({3, 1, 2, 1, 3}).batch(5);
  Loader loader = dataset.loader({.on_fault = OnFault::replace});
  const Seen seen = drain(loader).at(0);
  for (const std::size_t row : {1, 2, 3}) {
    EXPECT_EQ(seen.samples[row].number, 3U);
    EXPECT_EQ(seen.samples[row].draw, 0U);
  }
  EXPECT_EQ(seen.samples[0].draw, 1U);
  EXPECT_EQ(seen.samples[4].draw, 5U);

  const auto saved = LoaderState::from_json(loader.state().to_json());
  std::multiset<std::uint64_t> draws;
  for (const Fault& fault : saved.faults) draws.insert(fault.sample.draw);
  EXPECT_THAT(draws, testing::ElementsAre(2, 3, 4));
  EXPECT_THAT(saved.faults.front().to_string(), testing::HasSubstr("draw "));
}

}  // namespace
}  // namespace penstock

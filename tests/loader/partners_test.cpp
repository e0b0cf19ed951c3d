// partners: samples that come with others, which are drawn for each epoch.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/loader/fakes.hpp"

namespace penstock {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::fake;
using testing_support::through_json;

constexpr std::size_t kPartners = 3;

struct Row {
  SampleId sample;
  std::uint64_t number = 0;
  std::vector<std::int64_t> partners;
  std::vector<std::uint64_t> fields;  // "number_1" and so on, the first of their two numbers

  friend bool operator==(const Row&, const Row&) = default;
};

std::vector<Row> rows_of(Loader& loader, std::size_t most = SIZE_MAX) {
  std::vector<Row> rows;
  while (rows.size() < most) {
    const auto step = loader.next();
    if (!step) break;
    std::uint64_t in_step = 0;
    for (const DeviceBatch& part : *step)
      for (std::uint64_t row = 0; row < part.size(); ++row) {
        Row one{.sample = step->samples()[in_step++],
                .number = part["number"].data<std::uint64_t>()[2 * row],
                .partners = {},
                .fields = {}};
        for (std::size_t k = 0; k < kPartners; ++k) {
          one.partners.push_back(part["partners"].data<std::int64_t>()[kPartners * row + k]);
          one.fields.push_back(
              part["number_" + std::to_string(k + 1)].data<std::uint64_t>()[2 * row]);
        }
        rows.push_back(std::move(one));
      }
  }
  return rows;
}

std::vector<Row> rows_of(const Dataset& dataset, const LoaderOptions& options = {}) {
  Loader loader = dataset.loader(options);
  return rows_of(loader);
}

Dataset ten_with_partners(PartnersOptions options = {}) {
  return Dataset(fake(10)).partners(options);
}

TEST(Partners, AreRecordsOfTheSource) {
  std::map<std::int64_t, int> counts;
  std::set<std::vector<std::int64_t>> lists;
  const auto rows = rows_of(ten_with_partners().repeat(400).seed(7).batch(16));
  ASSERT_EQ(rows.size(), 4000U);
  for (const Row& row : rows) {
    ASSERT_EQ(row.number, row.sample.number) << "a sample is what it is without partners";
    for (std::size_t k = 0; k < kPartners; ++k) {
      ASSERT_EQ(row.fields[k], static_cast<std::uint64_t>(row.partners[k]));
      ++counts[row.partners[k]];
    }
    if (row.number == 4) lists.insert(row.partners);
  }
  ASSERT_EQ(counts.size(), 10U);
  // Each is drawn 1200 times but for 33, the standard deviation.
  for (const auto& [number, count] : counts) EXPECT_NEAR(count, 1200, 165) << number;
  EXPECT_GT(lists.size(), 250U) << "others in each epoch, of 1000 lists";
}

TEST(Partners, DependOnTheSampleAlone) {
  const Dataset plan = ten_with_partners().shuffle().repeat(3).seed(7).batch(6);
  const auto expected = rows_of(plan, {.threads = 1});
  EXPECT_EQ(rows_of(plan, {.threads = 4, .io_threads = 3}), expected);
  EXPECT_EQ(rows_of(through_json(plan)), expected);
  EXPECT_EQ(rows_of(plan.prefetch_to_devices(host_devices(3)), {.threads = 2}), expected);
  // In another order, and resumed.
  for (const Row& row : rows_of(ten_with_partners().repeat(3).seed(7).batch(5)))
    EXPECT_THAT(expected, testing::Contains(row));
  for (std::size_t stop = 0; stop < 5; ++stop) {
    Loader first = plan.loader();
    for (std::size_t step = 0; step < stop; ++step) (void)first.next();
    Loader second = plan.loader();
    second.restore(LoaderState::from_json(first.state().to_json()));
    const auto rest = rows_of(second);
    EXPECT_TRUE(std::equal(rest.begin(), rest.end(),
                           expected.begin() + static_cast<std::ptrdiff_t>(6 * stop),
                           expected.end()));
  }
  EXPECT_NE(rows_of(plan.seed(8)), expected);
}

TEST(Partners, OfEachDrawAreOthers) {
  const auto rows = rows_of(ten_with_partners().repeat_each(2).seed(7).batch(20));
  ASSERT_EQ(rows.size(), 20U);
  int same = 0;
  for (std::size_t i = 0; i < rows.size(); i += 2) {
    ASSERT_EQ(rows[i].number, rows[i + 1].number);
    same += rows[i].partners == rows[i + 1].partners ? 1 : 0;
  }
  EXPECT_LT(same, 3);
}

TEST(Partners, EndWithTheirEpochAndComeWithTheirProbability) {
  for (const Row& row :
       rows_of(ten_with_partners({.until_epoch = 2}).repeat(4).seed(7).batch(10))) {
    if (row.sample.epoch < 2) {
      EXPECT_THAT(row.partners, Each(testing::Ge(0)));
    } else {
      EXPECT_THAT(row.partners, ElementsAre(-1, -1, -1));
      EXPECT_THAT(row.fields, ElementsAre(0, 0, 0));
    }
  }
  const auto half = rows_of(ten_with_partners({.probability = 0.5}).repeat(100).seed(7).batch(10));
  const auto with =
      std::ranges::count_if(half, [](const Row& row) { return row.partners[0] >= 0; });
  EXPECT_NEAR(with, 500, 80);
  // The others are those of a probability of 1.
  const auto all = rows_of(ten_with_partners().repeat(100).seed(7).batch(10));
  for (std::size_t i = 0; i < half.size(); ++i) {
    if (half[i].partners[0] >= 0) {
      ASSERT_EQ(half[i], all[i]);
    }
  }
}

TEST(Partners, AreChosenAmongTheSamplesBeforeThem) {
  const auto parts = Dataset(fake(100)).split({0.8, 0.2}, {.seed = 3});
  std::set<std::uint64_t> validation;
  {
    Loader loader = parts[1].batch(20).loader();
    const auto seen = testing_support::drain(loader);
    validation.insert(seen.front().numbers.begin(), seen.front().numbers.end());
  }
  ASSERT_EQ(validation.size(), 20U);
  const auto rows = rows_of(parts[0].partners({}).shuffle().repeat(5).seed(1).batch(20));
  ASSERT_EQ(rows.size(), 400U);
  for (const Row& row : rows)
    for (const std::uint64_t field : row.fields) ASSERT_FALSE(validation.contains(field));
  // Behind them, what a split leaves out may still be a partner.
  const auto behind = rows_of(Dataset(fake(100)).partners({}).take(20).repeat(5).seed(1).batch(20));
  EXPECT_TRUE(std::ranges::any_of(behind, [](const Row& row) { return row.fields[0] >= 20; }));
  EXPECT_TRUE(std::ranges::all_of(behind, [](const Row& row) { return row.number < 20; }));
}

TEST(Partners, ThatAreDamagedAreFaultsOfTheirRow) {
  const auto source = fake(10);
  source->bad = {3};
  const Dataset plan =
      Dataset(source).partners({}).seed(7).batch(10, {.remainder = Remainder::pad});
  Loader loader = plan.loader({.on_fault = OnFault::mask});
  const auto step = loader.next();
  std::size_t bad = 0;
  for (const Fault& fault : step->faults()) {
    if (fault.sample.number == 3) {
      EXPECT_EQ(fault.reason, "made bad");
      EXPECT_THAT(fault.file, HasSubstr("fake/3"));
      continue;
    }
    ++bad;
    EXPECT_THAT(fault.reason, AllOf(HasSubstr("partner "), HasSubstr("fake/3: made bad")));
    EXPECT_EQ(fault.file, "fake/3");
    EXPECT_EQ(fault.offset, 5U);
  }
  EXPECT_GE(bad, 1U);
  EXPECT_LE(bad, 8U) << "the others are whole";
}

TEST(Partners, AreRefusedWhereTheyMakeNoSense) {
  const auto refuses = [](const auto& call, const std::string& words) {
    EXPECT_THAT(call, ThrowsMessage<std::invalid_argument>(HasSubstr(words)));
  };
  const Dataset ten(fake(10));
  refuses([&] { (void)ten.partners({.count = 0}); }, "partners: a sample has 1 to 8 of them");
  refuses([&] { (void)ten.partners({.count = 9}); }, "found 9");
  refuses([&] { (void)ten.partners({.probability = 1.5}); }, "from 0 to 1, found 1.5");
  refuses([&] { (void)ten.shuffle().partners({}); },
          "partners: put shuffle() behind it: before it stand only the source and operations");
  refuses([&] { (void)ten.batch(2).partners({}); }, "put batch(2) behind it");
  refuses([&] { (void)concatenate({ten, ten}).partners({}); }, "the plan begins with concatenate");
  refuses([&] { (void)ten.partners({.count = 1}).partners({.count = 1}); },
          "the samples have a field 'number_1'");
  const TransformPtr plus =
      map_function({.name = "plus", .inputs = {"number"}, .outputs = {{"number", DType::u64, {2}}}},
                   [](std::span<const ConstTensorView>, Outputs, Random&) {});
  refuses([&] { (void)ten.map(plus).partners({}); },
          "partners: put map(plus(number) -> number u64 [2]) behind the transform that takes");
  refuses(
      [&] {
        (void)zip({ten.map(plus), ten.rename({{"number", "other"}})}).partners({});
      },
      "partners: put map(plus(number)");
  // A transform of all of them takes them as they are.
  const TransformPtr all = map_function({.name = "all",
                                         .inputs = {"number_1", "number", "number_2", "number_3"},
                                         .outputs = {{"sum", DType::u64, {2}}}},
                                        [](std::span<const ConstTensorView>, Outputs, Random&) {});
  (void)ten.partners({}).map(all).map(
      map_function({.name = "more", .inputs = {"sum"}, .outputs = {{"sum", DType::u64, {2}}}},
                   [](std::span<const ConstTensorView>, Outputs, Random&) {}));
  refuses([&] { (void)ten.partners({}).map(plus).map(all); },
          "map_function: 'number' is what map_function has made of it, and 'number_1' is as the "
          "source has it");
  static constexpr std::array<std::int64_t, 10> kNumbers{};
  const Dataset indexed =
      memory({{.spec = {"x", DType::i64, {}}, .bytes = std::as_bytes(std::span(kNumbers))}})
          .partners({});
  (void)indexed.column("x");
  for (const char* name : {"x_1", "x_3"}) {
    refuses([&] { (void)indexed.column(name); }, "which differ from epoch to epoch");
    refuses([&] { (void)indexed.where(std::string(name) + " == 0"); }, "so nothing can be chosen");
    refuses([&] { (void)zip({indexed, numbers(10)}).column(name); }, "is of partners");
  }
  refuses([&] { (void)indexed.split({0.5, 0.5}); }, "split: samples of one part would have");
  EXPECT_EQ(ten.seed(3).take(5).partners({}).batch(2).describe(),
            "fake(size=10).take(5).partners(3).seed(3).batch(2)");
  refuses([&] { (void)indexed.rename({{"x", "y"}}); }, "fields of each dataset before partners");
  EXPECT_EQ(ten.take(5).partners({.count = 3, .until_epoch = 90}).describe(),
            "fake(size=10).take(5).partners(3, until_epoch=90)");
}

}  // namespace
}  // namespace penstock

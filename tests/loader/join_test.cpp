// Rows of a table beside the samples that they belong to, against a plain map; and zip of chosen records.
#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/source/arrays.hpp>
#include <penstock/source/images.hpp>

#include "src/source/csv/csv_rows.hpp"
#include "tests/loader/fakes.hpp"
#include "tests/source/files.hpp"

namespace penstock {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::fake;

// Of all samples, in the loader's order.
template <class T>
std::vector<T> all_of(const Dataset& data, const std::string& field) {
  std::vector<T> all;
  Loader loader = data.batch(7).loader({.threads = 2});
  while (const auto step = loader.next()) {
    const auto* const values = (*step)[0][field].data<T>();
    all.insert(all.end(), values, values + (*step)[0].size());
  }
  return all;
}

std::vector<std::string> fields_of(const Dataset& data) {
  std::vector<std::string> names;
  for (const FieldSpec& field : data.fields()) names.push_back(field.name);
  return names;
}

Dataset integers(const std::string& key, const std::vector<std::int64_t>& keys,
                 const std::string& value, const std::vector<std::int64_t>& values) {
  return Dataset(source::memory(
      {source::column(key, std::vector(keys)), source::column(value, std::vector(values))}));
}

Dataset texts(const std::string& key, const std::vector<std::string>& keys,
              const std::string& value, const std::vector<std::int64_t>& values) {
  std::string text = key + "," + value + "\n";
  for (std::size_t row = 0; row < keys.size(); ++row)
    text += "\"" + keys[row] + "\"," + std::to_string(values[row]) + "\n";
  return Dataset(source::csv_rows(text, "t.csv", {{.name = key}, {.name = value}}));
}

// Random keys of both sides: every sample has the value that a map has under its key.
TEST(Join, IsWhatAMapOfTheRowsSays) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    std::mt19937_64 random(seed);
    const auto below = [&](std::uint64_t most) {
      return static_cast<std::int64_t>(random() % most);
    };
    const bool has_texts = below(2) == 0;
    std::vector<std::int64_t> row_keys(static_cast<std::size_t>(1 + below(40)));
    std::iota(row_keys.begin(), row_keys.end(), -3);
    std::ranges::shuffle(row_keys, random);
    std::map<std::int64_t, std::int64_t> model;
    std::vector<std::int64_t> row_values;
    for (const std::int64_t key : row_keys) row_values.push_back(model[key] = below(1000));
    std::vector<std::int64_t> keys(static_cast<std::size_t>(1 + below(60)));
    for (std::int64_t& key : keys) key = below(row_keys.size() + 3) - 3;
    std::vector<std::int64_t> numbers(keys.size());
    std::iota(numbers.begin(), numbers.end(), 0);

    std::vector<std::int64_t> expected_numbers;
    std::vector<std::int64_t> expected;
    for (const std::int64_t number : numbers) {
      const auto found = model.find(keys[static_cast<std::size_t>(number)]);
      if (found == model.end()) continue;
      expected_numbers.push_back(number);
      expected.push_back(found->second);
    }
    const auto named = [&](const std::vector<std::int64_t>& all) {
      std::vector<std::string> names;
      for (const std::int64_t key : all) names.push_back("k" + std::to_string(key));
      return names;
    };
    const Dataset samples =
        has_texts ? texts("key", named(keys), "n", numbers) : integers("key", keys, "n", numbers);
    const Dataset table = has_texts ? texts("key", named(row_keys), "value", row_values)
                                    : integers("key", row_keys, "value", row_values);
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    if (expected.size() < keys.size()) {
      EXPECT_THAT([&] { (void)samples.join(table, {.on = "key"}); },
                  ThrowsMessage<Error>(HasSubstr(
                      "join: " + std::to_string(keys.size() - expected.size()) + " of " +
                      std::to_string(keys.size()) + " samples have no row in the table: ")));
      if (expected.empty()) continue;
    }
    const Dataset joined = samples.join(
        table, {.on = "key",
                .missing = expected.size() < keys.size() ? MissingRows::drop : MissingRows::error});
    EXPECT_THAT(fields_of(joined), ElementsAre("key", "n", "value"));
    ASSERT_EQ(joined.size(), expected.size());
    Record record;
    for (std::uint64_t row = 0; row < expected.size(); ++row) {
      ASSERT_TRUE(joined.source().read(row, record));
      ASSERT_EQ(*record[1].data<std::int64_t>(), expected_numbers[row]);
      ASSERT_EQ(*record[2].data<std::int64_t>(), expected[row]);
    }
    if (has_texts) continue;
    // Shuffled, the rows stay with their samples.
    const Dataset shuffled = joined.seed(seed).shuffle();
    const auto first = all_of<std::int64_t>(shuffled, "key");
    const auto second = all_of<std::int64_t>(shuffled, "value");
    for (std::size_t row = 0; row < first.size(); ++row)
      ASSERT_EQ(second[row], model.at(first[row]));
  }
}

class JoinFiles : public testing::Test {
 protected:
  JoinFiles() {
    for (const char* name : {"a/1.jpg", "a/2.x.jpg", "b/3.jpg"})
      folder_.write(std::string("photos/") + name, "xx");
  }
  [[nodiscard]] Dataset photos() const { return image_folder(folder_.path() / "photos"); }
  static std::vector<std::int64_t> values_of(const Dataset& data) {
    std::vector<std::int64_t> all;
    Record record;
    for (std::uint64_t number = 0; number < data.source().size(); ++number) {
      EXPECT_TRUE(data.source().read(number, record));
      all.push_back(*record[2].data<std::int64_t>());
    }
    return all;
  }

  test::TemporaryFolder folder_;
};

TEST_F(JoinFiles, RowsAreFoundByWhatNamesOfRecordsHave) {
  for (const std::vector<std::string>& keys :
       {std::vector<std::string>{"b/3.jpg", "a/1.jpg", "a/2.x.jpg"},
        {"b/3", "a/1", "a/2.x"},
        {"3.jpg", "1.jpg", "2.x.jpg"},
        {"3", "1", "2.x"}}) {
    const Dataset joined =
        photos().join(texts("file", keys, "value", {30, 10, 20}), {.on = "file"});
    EXPECT_THAT(fields_of(joined), ElementsAre("image", "label", "value"));
    EXPECT_THAT(values_of(joined), ElementsAre(10, 20, 30)) << keys[0];
    EXPECT_EQ(joined.name({.number = 2}).key, "b/3.jpg");
    EXPECT_THAT(joined.labels(), ElementsAre(0, 0, 1));
  }
  folder_.write("photos/b/4.jpg");
  const Dataset by_number = image_folder(folder_.path() / "photos")
                                .join(integers("id", {4, 3}, "value", {7, 8}),
                                      {.on = "id", .missing = MissingRows::drop});
  EXPECT_THAT(values_of(by_number), ElementsAre(8, 7));
}

TEST_F(JoinFiles, OneNameOfTwoRecordsIsAnError) {
  folder_.write("photos/b/1.jpg");
  EXPECT_THAT(
      [&] {
        (void)photos().join(texts("id", {"1", "2.x", "3"}, "value", {1, 2, 3}), {.on = "id"});
      },
      ThrowsMessage<Error>(AllOf(HasSubstr("'1' would be the row of two records, 'a/1.jpg' and "
                                           "'b/1.jpg'"),
                                 HasSubstr("write the whole names into it"))));
}

TEST(Join, RefusesTablesThatDoNotSayOneRow) {
  const Dataset samples = integers("key", {1, 2}, "n", {0, 1});
  const auto refuses = [&](const Dataset& table, const std::string& part,
                           const JoinOptions& options = {.on = "key"}) {
    EXPECT_THAT([&] { (void)samples.join(table, options); },
                ThrowsMessage<std::exception>(HasSubstr(part)));
  };
  refuses(integers("key", {1, 2, 1, 1}, "v", {0, 1, 2, 3}),
          "2 of 4 rows of the table have a value of 'key' that another row has: '1' (rows 0 and 2 "
          "have the first");
  refuses(integers("key", {1, 3}, "v", {0, 1}),
          "1 of 2 samples have no row in the table: '2'; its values of 'key' are '1', '3'; add");
  refuses(integers("key", {8, 9}, "v", {0, 1}), "2 of 2 samples have no row in the table: '1', '2'",
          {.on = "key", .missing = MissingRows::drop});
  refuses(integers("key", {1, 2}, "n", {0, 1}), "both have 'n': rename() it in one of them");
  refuses(integers("key", {1, 2}, "v", {0, 1}), "the table has no field 'x': there are key i64 []",
          {.on = "x"});
  refuses(texts("key", {"a", "b"}, "v", {0, 1}),
          "the samples have key i64 [], and the table key u8 [?]", {.on = "key"});
  refuses(Dataset(source::memory({source::column("key", std::vector<std::int64_t>{1, 2})})),
          "there is nothing to add");
  refuses(Dataset(source::memory({source::column("key", std::vector<float>{1, 2}),
                                  source::column("v", std::vector<float>{1, 2})})),
          "rows are found by integers or texts, found the field key f32 []");
  refuses(integers("key", {1, 2}, "v", {0, 1}).shuffle(), "dataset 1 has more");
  EXPECT_THAT(
      [&] {
        (void)samples.shuffle().join(integers("key", {1, 2}, "v", {0, 1}), {.on = "key"});
      },
      ThrowsMessage<std::invalid_argument>(
          AllOf(HasSubstr("dataset 0 has more"), HasSubstr("after join"))));
}

TEST(Join, SeveralSamplesMayHaveOneRowAndTablesFollowEachOther) {
  const Dataset data = integers("key", {1, 2, 1, 1}, "n", {0, 1, 2, 3})
                           .join(integers("key", {2, 1}, "v", {20, 10}), {.on = "key"})
                           .join(integers("n", {3, 2, 1, 0}, "w", {33, 22, 11, 0}), {.on = "n"});
  EXPECT_THAT(all_of<std::int64_t>(data, "v"), ElementsAre(10, 20, 10, 10));
  EXPECT_THAT(all_of<std::int64_t>(data, "w"), ElementsAre(0, 11, 22, 33));
}

TEST(Join, TakesTheSamplesThatWereChosenAndTheirMaps) {
  const auto negate =
      map_function({.name = "negate", .inputs = {"n"}, .outputs = {{"n", DType::i64, {}}}},
                   [](std::span<const ConstTensorView> in, Outputs out, Random&) {
                     *out[0].data<std::int64_t>() = -*in[0].data<std::int64_t>();
                   });
  const Dataset data =
      integers("key", {5, 6, 7, 8}, "n", {0, 1, 2, 3})
          .select({3, 0})
          .map(negate)
          .join(integers("key", {9, 8, 6, 5}, "v", {9, 8, 6, 5}).skip(1), {.on = "key"});
  EXPECT_THAT(all_of<std::int64_t>(data, "n"), ElementsAre(-3, 0));
  EXPECT_THAT(all_of<std::int64_t>(data, "v"), ElementsAre(8, 5));
}

// A plan of files: as JSON, from any step on, in shards of a split.
TEST_F(JoinFiles, PlansTravelAndResume) {
  const std::filesystem::path csv = folder_.write(
      "meta.csv",
      "id,path,y\n\"3\",photos/b/3.jpg,33\n\"1\",photos/a/1.jpg,11\n2.x,photos/a/2.x.jpg,22\n");
  const Dataset table =
      images_from(csv, {.path = "path", .label = "y", .columns = {{.name = "id"}}})
          .rename({{"image", ""}, {"label", "value"}});
  const auto length =
      map_function({.name = "length", .inputs = {"image"}, .outputs = {{"bytes", DType::i64, {}}}},
                   [](std::span<const ConstTensorView> in, Outputs out, Random&) {
                     *out[0].data<std::int64_t>() = static_cast<std::int64_t>(in[0].byte_size());
                   });
  const Dataset joined = photos().join(table, {.on = "id"});
  EXPECT_THAT(values_of(joined), ElementsAre(11, 22, 33));
  const std::string json = joined.to_json();
  const Dataset same = Dataset::from_json(json);
  EXPECT_EQ(same.to_json(), json);
  EXPECT_EQ(same.describe(), joined.describe());
  EXPECT_THAT(joined.describe(), HasSubstr(".select([1, 2, 0])])"));
  EXPECT_THAT(values_of(same), ElementsAre(11, 22, 33));

  const Dataset plan = joined.map(length).seed(4).shuffle().repeat(3).batch(2);
  Loader whole = plan.loader({.digest = true});
  std::vector<Digest> expected;
  std::vector<LoaderState> states{whole.state()};
  while (const auto step = whole.next()) {
    expected.push_back(step->digest());
    states.push_back(whole.state());
  }
  for (std::size_t at = 0; at < states.size(); ++at) {
    Loader resumed = Dataset::from_json(joined.to_json())
                         .map(length)
                         .seed(4)
                         .shuffle()
                         .repeat(3)
                         .batch(2)
                         .loader({.digest = true});
    resumed.restore(states[at]);
    for (std::size_t step = at; step < expected.size(); ++step)
      ASSERT_EQ(resumed.next()->digest(), expected[step]);
    ASSERT_FALSE(resumed.next().has_value());
    ASSERT_EQ(resumed.digest(), whole.digest());
  }
  // The state of another matching is another plan's.
  const std::filesystem::path other_csv = folder_.write(
      "other.csv",
      "id,path,y\n2.x,photos/a/2.x.jpg,22\n\"3\",photos/b/3.jpg,33\n\"1\",photos/a/1.jpg,11\n");
  const Dataset other_table =
      images_from(other_csv, {.path = "path", .label = "y", .columns = {{.name = "id"}}})
          .rename({{"image", ""}, {"label", "value"}});
  Loader other = photos()
                     .join(other_table, {.on = "id"})
                     .map(length)
                     .seed(4)
                     .shuffle()
                     .repeat(3)
                     .batch(2)
                     .loader();
  EXPECT_THROW(other.restore(states[1]), Error);
}

TEST(Zip, PairsTheRecordsThatOperationsBeforeItChose) {
  const auto column = [](const std::string& name, std::int64_t factor) {
    std::vector<std::int64_t> values(10);
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = factor * static_cast<std::int64_t>(i);
    return Dataset(source::memory({source::column(name, std::move(values))}));
  };
  const Dataset data = zip({column("x", 1).skip(2).take(5), column("y", 10).select({9, 0, 9, 4})});
  EXPECT_THAT(all_of<std::int64_t>(data, "x"), ElementsAre(2, 3, 4, 5));
  EXPECT_THAT(all_of<std::int64_t>(data, "y"), ElementsAre(90, 0, 90, 40));
  const Dataset even = zip(
      {column("x", 1).shard(2, 0), column("y", 10).filter([](const RecordInfo&) { return true; })});
  EXPECT_THAT(all_of<std::int64_t>(even, "x"), ElementsAre(0, 2, 4, 6, 8));
  EXPECT_THAT(all_of<std::int64_t>(even, "y"), ElementsAre(0, 10, 20, 30, 40));
  // Each replica may have an order of its own over them.
  Loader early = data.seed(1)
                     .shuffle()
                     .batch(2)
                     .prefetch_to_devices(host_devices(2), {.split = Split::shard_early})
                     .loader();
  std::vector<std::int64_t> seen;
  while (const auto step = early.next())
    for (const DeviceBatch& part : *step) seen.push_back(*part["x"].data<std::int64_t>());
  std::ranges::sort(seen);
  EXPECT_THAT(seen, ElementsAre(2, 3, 4, 5));
}

TEST(Rename, AnEmptyNameLeavesAFieldOut) {
  const Dataset data = integers("label", {5, 6}, "n", {0, 1});
  EXPECT_THAT(fields_of(data.rename({{"label", ""}})), ElementsAre("n"));
  EXPECT_THAT(all_of<std::int64_t>(data.rename({{"label", ""}, {"n", "m"}}), "m"),
              ElementsAre(0, 1));
  FilesOptions options;
  options.labels.integers = {10, 11};
  const Dataset labelled = files({"a.jpg", "b.jpg"}, options);
  EXPECT_EQ(labelled.source().label(1), 11);
  EXPECT_EQ(labelled.rename({{"label", ""}}).source().label(1), std::nullopt);
  EXPECT_EQ(labelled.rename({{"image", ""}}).source().label(1), 11);
  EXPECT_THAT(
      [&] {
        (void)data.rename({{"label", ""}, {"n", ""}});
      },
      ThrowsMessage<std::invalid_argument>(HasSubstr("no field would be left")));
  EXPECT_THAT(
      [&] {
        (void)data.rename({{"label", ""}, {"label", "x"}});
      },
      ThrowsMessage<std::invalid_argument>(HasSubstr("'label' has a name, and an empty one")));
}

}  // namespace
}  // namespace penstock

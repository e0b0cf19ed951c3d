// Datasets made from several, and choices of samples: mix, concatenate, zip, filter, select,
// sample.
#include <algorithm>
#include <map>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/source/arrays.hpp>
#include <penstock/source/images.hpp>

#include "tests/loader/fakes.hpp"
#include "tests/source/files.hpp"

namespace penstock {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using testing::ThrowsMessage;
using testing_support::drain;
using testing_support::fake;
using testing_support::numbers_of;
using testing_support::see;
using testing_support::Seen;

std::map<std::uint32_t, std::uint64_t> by_source(const std::vector<Seen>& steps) {
  std::map<std::uint32_t, std::uint64_t> counts;
  for (const Seen& step : steps)
    for (const SampleId& id : step.samples) ++counts[id.source];
  return counts;
}

std::shared_ptr<testing_support::FakeSource> named(const std::string& name, std::uint64_t size) {
  auto source = fake(size);
  source->name = name;
  return source;
}

Dataset three_ways() {
  return mix({Dataset(named("a", 70)).shuffle().repeat(), Dataset(named("b", 20)).repeat(),
              Dataset(named("c", 30)).shuffle({.buffer = 5}).repeat()},
             {.weights = {5, 2, 1}});
}

TEST(Mix, GivesEveryDatasetItsShareAndEverySampleItsIdentity) {
  Loader loader = three_ways().seed(7).batch(64).loader({.threads = 2});
  const auto steps = drain(loader, 20);
  EXPECT_THAT(by_source(steps), ElementsAre(Pair(0, 800), Pair(1, 320), Pair(2, 160)));
  for (const Seen& step : steps)
    for (std::size_t row = 0; row < step.samples.size(); ++row)
      ASSERT_EQ(step.numbers[row], step.samples[row].number);
  // 70 samples of the first: what it gave is whole epochs of permutations.
  std::map<std::uint32_t, std::vector<std::uint64_t>> epochs;
  for (const Seen& step : steps)
    for (const SampleId& id : step.samples)
      if (id.source == 0) epochs[id.epoch].push_back(id.number);
  for (std::uint32_t epoch = 0; epoch < 11; ++epoch) {
    std::ranges::sort(epochs[epoch]);
    for (std::uint64_t number = 0; number < 70; ++number) ASSERT_EQ(epochs[epoch][number], number);
  }
}

TEST(Mix, DatasetsThatAreAlikeAreShuffledApart) {
  Loader loader = mix({Dataset(fake(1000)).shuffle(), Dataset(fake(1000)).shuffle()})
                      .seed(7)
                      .batch(100)
                      .loader();
  std::map<std::uint32_t, std::vector<std::uint64_t>> numbers;
  for (const Seen& step : drain(loader))
    for (const SampleId& id : step.samples) numbers[id.source].push_back(id.number);
  EXPECT_EQ(numbers[0].size(), 1000U);
  EXPECT_NE(numbers[0], numbers[1]);
}

TEST(Mix, ADatasetKeepsItsOwnSeed) {
  const auto order = [](const Dataset& dataset) {
    Loader loader = dataset.batch(10).loader();
    std::vector<std::uint64_t> numbers;
    for (const Seen& step : drain(loader))
      for (const SampleId& id : step.samples)
        if (id.source == 0) numbers.push_back(id.number);
    return numbers;
  };
  const Dataset seeded = Dataset(fake(50)).seed(3).shuffle();
  const Dataset other = Dataset(fake(50));
  EXPECT_EQ(order(mix({seeded, other}).seed(1)), order(seeded));
  EXPECT_EQ(order(mix({seeded, other}).seed(2)), order(seeded));
}

TEST(Mix, ResumesAtEveryStepOnAnyNumberOfProcesses) {
  const Dataset dataset = three_ways().seed(7).batch(24);
  Loader whole = dataset.loader({.digest = true});
  const auto expected = drain(whole, 30);
  for (std::uint64_t stop = 0; stop < 30; ++stop) {
    Loader first = dataset.loader({.digest = true});
    drain(first, stop);
    Loader second = dataset.loader({.digest = true});
    second.restore(LoaderState::from_json(first.state().to_json()));
    auto rest = drain(second, 30 - stop);
    ASSERT_TRUE(std::equal(rest.begin(), rest.end(), expected.begin() + stop, expected.end()));
  }
}

TEST(Mix, NewWeightsHoldFromTheirStepAndAreSaved) {
  const Dataset dataset = three_ways().seed(7).batch(64);
  Loader loader = dataset.loader({.digest = true});
  Loader untouched = dataset.loader({.digest = true});
  const auto before = drain(untouched, 6);
  const auto first = drain(loader, 3);
  loader.set_weights(5, {0, 1, 1});
  const auto second = drain(loader, 2);
  EXPECT_TRUE(std::equal(first.begin(), first.end(), before.begin()));
  EXPECT_TRUE(std::equal(second.begin(), second.end(), before.begin() + 3));
  const LoaderState state = LoaderState::from_json(loader.state().to_json());
  EXPECT_THAT(state.weights, ElementsAre(WeightChange{5, {0, 1, 1}}));
  const auto third = drain(loader, 10);
  EXPECT_THAT(by_source(third), ElementsAre(Pair(1, 320), Pair(2, 320)));
  // b and c continue where they were.
  std::uint64_t next = 0;
  for (const auto& steps : {first, second, third})
    for (const Seen& step : steps)
      for (const SampleId& id : step.samples)
        if (id.source == 1) {
          EXPECT_EQ(id.number + 20 * id.epoch, next++);
        }

  Loader resumed = dataset.loader({.digest = true});
  resumed.restore(state);
  EXPECT_EQ(drain(resumed, 10), third);
  EXPECT_EQ(see(resumed.batch_at(4)), second[1]);
  EXPECT_EQ(see(resumed.batch_at(9)), third[4]);
  EXPECT_THAT(
      [&] {
        loader.set_weights(14, {1, 1, 1});
      },
      ThrowsMessage<std::invalid_argument>(HasSubstr("step 14 has been delivered")));
  EXPECT_THAT(
      [&] {
        loader.set_weights(99, {1, 1});
      },
      ThrowsMessage<std::invalid_argument>(HasSubstr("each of 3 inputs, found 2")));
  EXPECT_EQ(loader.next()->number(), 15U);
}

TEST(Mix, WeightsOfAnythingElseCannotChange) {
  const auto refuses = [](const Dataset& dataset) {
    Loader loader = dataset.batch(4).loader();
    EXPECT_THAT(
        [&] {
          loader.set_weights(1, {1, 1, 1});
        },
        ThrowsMessage<std::logic_error>(HasSubstr("batch follows at once")));
  };
  refuses(Dataset(fake(50)));
  refuses(three_ways().shuffle({.buffer = 10}));
}

TEST(Mix, SaysWhichFieldsDiffer) {
  const auto renamed =
      map_function({.name = "f", .inputs = {"number"}, .outputs = {{"x", DType::f32, {3}}}},
                   [](auto, auto, Random&) {});
  EXPECT_THAT(
      [&] {
        (void)mix({Dataset(fake(5)), Dataset(fake(5)).map(renamed)});
      },
      ThrowsMessage<std::invalid_argument>(
          AllOf(HasSubstr("number u64 [2]"), HasSubstr("dataset 1 are (x f32 [3])"))));
  EXPECT_THAT([&] { (void)mix({Dataset(fake(5)).batch(2)}); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("put batch after mix")));
  EXPECT_THROW((void)mix({}), std::invalid_argument);
}

TEST(Mix, ReplacesABadSampleByOneOfItsOwnDataset) {
  const auto bad = named("bad", 40);
  bad->bad = {1, 3, 5, 7, 9, 11};
  Loader loader = mix({Dataset(named("good", 40)), Dataset(bad).take(20)})
                      .seed(7)
                      .batch(10)
                      .loader({.on_fault = OnFault::replace});
  const auto steps = drain(loader);
  std::uint64_t replaced = 0;
  for (const Seen& step : steps)
    for (const SampleId& id : step.samples)
      if (id.source == 1) {
        EXPECT_LT(id.number, 20U);
        EXPECT_FALSE(bad->bad.contains(id.number));
        ++replaced;
      }
  EXPECT_EQ(replaced, 20U);
  EXPECT_EQ(loader.stats().faults, 6U);
  EXPECT_THAT(loader.faults()[0].to_string(), HasSubstr("bad/"));
}

TEST(Concatenate, RunsThroughOneBehindTheOther) {
  Loader loader = concatenate({Dataset(fake(3)), Dataset(fake(2)).repeat(2)}).batch(10).loader();
  const auto steps = drain(loader);
  EXPECT_EQ(numbers_of(steps), (std::vector<std::uint64_t>{0, 1, 2, 0, 1, 0, 1}));
  EXPECT_THAT(by_source(steps), ElementsAre(Pair(0, 3), Pair(1, 4)));
}

TEST(Zip, PairsRecordsAndKeepsThemPairedWhenShuffled) {
  const auto labels = source::memory(
      {source::column("label", std::vector<std::int64_t>{0, 10, 20, 30, 40, 50, 60})});
  Loader loader =
      zip({Dataset(fake(9)), Dataset(labels)}).seed(7).shuffle().repeat(3).batch(5).loader();
  std::uint64_t rows = 0;
  while (const auto step = loader.next()) {
    const DeviceBatch& part = (*step)[0];
    for (std::uint64_t row = 0; row < part.size(); ++row, ++rows)
      EXPECT_EQ(part["label"].data<std::int64_t>()[row],
                static_cast<std::int64_t>(part["number"].data<std::uint64_t>()[2 * row] * 10));
  }
  EXPECT_EQ(rows, 21U);
}

TEST(Zip, KeepsTheMapsOfItsParts) {
  const auto negate =
      map_function({.name = "negate", .inputs = {"label"}, .outputs = {{"label", DType::i64, {}}}},
                   [](std::span<const ConstTensorView> in, Outputs out, Random&) {
                     *out[0].data<std::int64_t>() = -*in[0].data<std::int64_t>();
                   });
  const auto labels = source::memory({source::column("label", std::vector<std::int64_t>{1, 2, 3})});
  Loader loader = zip({Dataset(fake(3)), Dataset(labels).map(negate)}).batch(3).loader();
  const auto step = loader.next();
  EXPECT_EQ((*step)[0]["label"].data<std::int64_t>()[2], -3);
}

TEST(Zip, WarnsOfWhatTheLongerOneHasMore) {
  const auto numbers = [](std::uint64_t size, const char* name) {
    return Dataset(source::memory({source::column(name, std::vector<std::int64_t>(size))}));
  };
  EXPECT_THAT(zip({numbers(3, "x"), numbers(3, "y")}).source().notices(), testing::IsEmpty());
  const std::vector<Notice> notices = zip({numbers(3, "x"), numbers(5, "y")}).source().notices();
  ASSERT_THAT(notices, testing::SizeIs(1));
  EXPECT_TRUE(notices[0].is_warning);
  EXPECT_EQ(
      notices[0].text,
      "zip: the longest data set has 5 samples, the shortest 3: what the longest has more, from "
      "memory row 3 on, is left out");
}

// Photographs and masks, paired in the order of their names.
TEST(Zip, RefusesFilesWhoseNamesSayThatTheyAreNoPair) {
  const auto zipped = [](const std::vector<std::string>& photos,
                         const std::vector<std::string>& masks) {
    const test::TemporaryFolder folder;
    for (const std::string& name : photos) folder.write("photos/" + name);
    for (const std::string& name : masks) folder.write("masks/" + name);
    return zip({image_folder(folder.path() / "photos"),
                image_folder(folder.path() / "masks").rename({{"image", "mask"}, {"label", "m"}})})
        .size();
  };
  EXPECT_EQ(zipped({"a.jpg", "b.jpg", "c.jpeg"}, {"a.png", "b.png", "c.png"}), 3U);
  EXPECT_EQ(zipped({"1.jpg", "2.jpg"}, {"1_mask.png", "2_mask.png"}), 2U) << "other names";
  const auto refuses = [&](const std::vector<std::string>& photos,
                           const std::vector<std::string>& masks, const char* pair) {
    EXPECT_THAT([&] { (void)zipped(photos, masks); },
                ThrowsMessage<std::invalid_argument>(
                    AllOf(HasSubstr("in the order of their names"), HasSubstr(pair))));
  };
  refuses({"a.jpg", "b.jpg", "c.jpg"}, {"a.png", "b.png"}, "3 and 2 of them");
  refuses({"cat.jpg", "cat.mirror.jpg"}, {"cat.png", "cat.mirror.png"}, "photos/cat.jpg' with '");
  refuses({"a.jpg", "b.jpg", "c.jpg"}, {"a.png", "c.png"}, "masks/c.png'");
  refuses({"a.jpg", "c.jpg"}, {"a.png", "b.png", "c.png"}, "photos/c.jpg'");
  refuses({"1.jpg", "10.jpg", "2.jpg"}, {"1_mask.png", "10_mask.png", "2_mask.png"},
          "photos/1.jpg' with '");
  refuses({"a.jpg", "b.jpg", "c.jpg"}, {"b_mask.png", "c_mask.png"}, "masks/b_mask.png'");
  EXPECT_EQ(zipped({"i1.jpg", "i2.jpg"}, {"m_x.png", "m_y.png"}), 2U);
  refuses({"a1.jpg", "b.jpg", "c.jpg"}, {"a0.png", "a00.png", "b.png"}, "photos/b.jpg'");
}

TEST(Zip, LabelsAreThoseOfTheSourceThatHasTheField) {
  const auto labelled = [](std::vector<std::int64_t> labels) {
    FilesOptions options;
    options.labels.integers = labels;
    return files(std::vector<std::string>(labels.size(), "a.jpg"), options);
  };
  const Dataset masks = labelled({10, 11}).rename({{"image", "mask"}, {"label", "m"}});
  EXPECT_THAT(zip({masks, labelled({20, 21})}).source().label(1), 21);
  EXPECT_THAT(zip({labelled({20, 21}), masks}).source().label(1), 21);
  EXPECT_THAT(zip({masks, numbers(2)}).source().info(1).label, 11);
}

TEST(Zip, RefusesWhatWouldPartThePairs) {
  EXPECT_THAT(
      [] {
        (void)zip({Dataset(fake(9)), Dataset(fake(9)).shuffle()});
      },
      ThrowsMessage<std::invalid_argument>(AllOf(HasSubstr("dataset 1"), HasSubstr("after zip"))));
  EXPECT_THAT(
      [] {
        (void)zip({Dataset(fake(9)), Dataset(fake(9))});
      },
      ThrowsMessage<std::invalid_argument>(HasSubstr("field 'number'")));
}

std::vector<std::string> names_of(const Dataset& data) {
  std::vector<std::string> names;
  for (const FieldSpec& field : data.fields()) names.push_back(field.name);
  return names;
}

Dataset columns(std::int32_t offset) {
  std::vector<std::int32_t> x;
  std::vector<std::int32_t> y;
  for (std::int32_t i = 0; i < 10; ++i) {
    x.push_back(100 * i + offset);
    y.push_back(-100 * i - offset);
  }
  return Dataset(source::memory(
      {source::column("x", std::move(x), {}), source::column("y", std::move(y), {})}));
}

TEST(Rename, GivesFieldsOtherNamesAndSeveral) {
  const Dataset data = columns(7).rename({{"x", "a"}, {"y", "y"}, {"x", "b"}});
  EXPECT_THAT(names_of(data), ElementsAre("a", "b", "y"));
  EXPECT_THAT(names_of(columns(0).rename({{"x", "y"}, {"y", "x"}})), ElementsAre("y", "x"));
  Loader loader = data.batch(10).loader();
  const auto step = loader.next();
  for (const auto& [field, sign] : {std::pair("a", 1), std::pair("b", 1), std::pair("y", -1)})
    for (std::size_t row = 0; row < 10; ++row)
      EXPECT_EQ((*step)[0][field].data<std::int32_t>()[row],
                sign * (100 * static_cast<int>(row) + 7));
}

TEST(Rename, MakesSourcesFitBesideEachOther) {
  EXPECT_THAT(
      [] {
        (void)zip({columns(1), columns(2)});
      },
      ThrowsMessage<std::invalid_argument>(HasSubstr("have a field 'x': rename() it")));
  const Dataset both = zip({columns(1), columns(2).rename({{"x", "z"}, {"y", "w"}})});
  EXPECT_THAT(names_of(both), ElementsAre("x", "y", "z", "w"));
  Loader loader = both.seed(3).shuffle().batch(10).loader();
  const auto step = loader.next();
  for (std::size_t row = 0; row < 10; ++row)
    EXPECT_EQ((*step)[0]["x"].data<std::int32_t>()[row] + 1,
              (*step)[0]["z"].data<std::int32_t>()[row]);
}

TEST(Rename, SaysWhatItCannotDo) {
  const auto refused = [](auto make, const std::string& text) {
    EXPECT_THAT(make, ThrowsMessage<std::invalid_argument>(HasSubstr(text)));
  };
  refused(
      [] {
        (void)columns(0).rename({{"z", "a"}});
      },
      "rename: there is no field 'z': there are x i32 [], y i32 []");
  refused([] { (void)columns(0).rename({{"x", "y"}}); }, "rename: two fields would be named 'y'");
  refused(
      [] {
        (void)columns(0).shuffle().rename({{"x", "a"}});
      },
      "comes right behind the source, before shuffle");
  refused(
      [] {
        (void)concatenate({columns(0), columns(1)}).rename({{"x", "a"}});
      },
      "rename the fields of each dataset before they are joined");
}

TEST(Filter, KeepsNumbersAndComesBeforeTheOrder) {
  const auto odd = [](const RecordInfo& info) { return (info.key.back() - '0') % 2 == 1; };
  Loader loader = Dataset(fake(30)).filter(odd).seed(7).shuffle().batch(4).loader();
  auto numbers = numbers_of(drain(loader));
  std::ranges::sort(numbers);
  EXPECT_THAT(numbers, ElementsAre(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29));
  EXPECT_THAT([&] { (void)Dataset(fake(30)).shuffle().filter(odd); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("right after the source")));
  EXPECT_THAT(
      [&] {
        (void)Dataset(fake(30)).filter([](const RecordInfo& info) { return info.label == 3; });
      },
      ThrowsMessage<std::invalid_argument>(
          AllOf(HasSubstr("none of 30"), HasSubstr("label not known"))));
  // The fingerprint knows what was kept.
  EXPECT_NE(Dataset(fake(30)).filter(odd).describe(),
            Dataset(fake(30))
                .filter([](const RecordInfo& info) { return info.key != "fake/3"; })
                .describe());
}

TEST(Select, DeliversItsListAndReplacesWithinIt) {
  const auto source = fake(30);
  source->bad = {8};
  Loader loader =
      Dataset(source).select({9, 8, 2, 9}).seed(7).batch(4).loader({.on_fault = OnFault::replace});
  const auto steps = drain(loader);
  EXPECT_EQ(steps[0].numbers[0], 9U);
  EXPECT_THAT(steps[0].numbers[1], testing::AnyOf(9U, 2U));
  EXPECT_EQ(steps[0].numbers[2], 2U);
}

TEST(Sample, DrawsByWeightAndResumes) {
  const Dataset dataset =
      Dataset(fake(4)).sample({0, 1, 3, 0}, {.count = 1000, .seed = 7}).repeat(2).batch(50);
  Loader loader = dataset.loader();
  const auto steps = drain(loader);
  std::map<std::uint64_t, int> counts;
  for (const std::uint64_t number : numbers_of(steps)) ++counts[number];
  EXPECT_EQ(counts[1] + counts[2], 2000);
  EXPECT_NEAR(counts[1], 500, 100);
  EXPECT_NE(steps[0].numbers, steps[20].numbers);  // new draws each epoch
  Loader second = dataset.loader();
  LoaderState state = second.state();
  state.step = 13;
  second.restore(state);
  EXPECT_EQ(see(*second.next()).numbers, steps[13].numbers);
}

// SEMANTICS proof 11.
TEST(Loaders, TrainingGoesOnBehindAValidationWithItsPrefetchIntact) {
  const auto source = fake(1000);
  std::atomic<int> reads = 0;
  source->on_read = [&](std::uint64_t) { ++reads; };
  const Dataset training = Dataset(source).seed(7).shuffle().repeat().batch(10).prefetch_to_devices(
      host_devices(1), {.depth = 4});
  Loader uninterrupted = training.loader();
  const auto expected = drain(uninterrupted, 20);

  Loader train = training.loader();
  Loader validate = Dataset(fake(30)).batch(10).loader();
  auto found = drain(train, 10);
  // What fills the ring is decoded by now, or will be, without anyone asking.
  while (train.stats()[Stage::slot].busy_s == 0) std::this_thread::yield();
  EXPECT_EQ(drain(validate).size(), 3U);
  const int before = reads;
  const auto rest = drain(train, 10);
  found.insert(found.end(), rest.begin(), rest.end());
  EXPECT_EQ(found, expected);
  EXPECT_LE(reads - before, 10 * 10 + 50);  // nothing was decoded a second time
}

TEST(Loaders, ShareTheCoresOfAThreadBudget) {
  std::atomic<int> working = 0;
  std::atomic<int> most = 0;
  const auto source = fake(100);
  source->on_read = [&](std::uint64_t) {
    const int now = ++working;
    int seen = most;
    while (now > seen && !most.compare_exchange_weak(seen, now)) {
    }
    for (int k = 0; k < 10; ++k) std::this_thread::yield();
    --working;
  };
  const auto cores = std::make_shared<ThreadBudget>(2);
  const auto run = [&](std::shared_ptr<ThreadBudget> budget) {
    std::vector<std::jthread> consumers;
    for (int k = 0; k < 3; ++k)
      consumers.emplace_back([&, budget] {
        Loader loader = Dataset(source).batch(20).loader({.threads = 4, .thread_budget = budget});
        EXPECT_EQ(drain(loader).size(), 5U);
      });
  };
  run(cores);
  EXPECT_LE(most, 2);
  run(nullptr);
  EXPECT_GT(most, 2);
  EXPECT_EQ(Dataset(source).batch(20).loader({.thread_budget = cores}).stats().threads, 2);
  EXPECT_THROW(ThreadBudget(0), std::invalid_argument);
}

TEST(Loaders, RewindBeginsAnew) {
  Loader loader = Dataset(fake(20)).seed(7).shuffle().batch(5).loader({.digest = true});
  const auto first = drain(loader);
  const Digest digest = loader.digest();
  loader.rewind();
  EXPECT_EQ(loader.state().samples, 0U);
  EXPECT_EQ(drain(loader), first);
  EXPECT_EQ(loader.digest(), digest);
}

// Defined for every state: after the end, after an error, after restore, after stop.
TEST(Loaders, NextIsDefinedWhateverCameBefore) {
  const auto source = fake(20);
  source->bad = {13};
  const Dataset dataset = Dataset(source).batch(5);
  Loader loader = dataset.loader();
  const LoaderState start = loader.state();
  drain(loader, 2);
  for (int again = 0; again < 3; ++again) EXPECT_THROW((void)loader.next(), DataError);
  EXPECT_THROW((void)loader.next_epoch(), DataError);
  EXPECT_EQ(loader.state().step, 2U);
  loader.restore(start);
  EXPECT_EQ(drain(loader, 2).size(), 2U);
  loader.stop();  // no reads while the source is repaired
  source->bad.clear();
  loader.restore(loader.state());
  EXPECT_EQ(drain(loader).size(), 2U);
  for (int again = 0; again < 3; ++again) EXPECT_FALSE(loader.next().has_value());
  EXPECT_FALSE(loader.next_epoch().has_value());
  EXPECT_THROW((void)loader.begin(), std::logic_error);
  loader.restore(start);
  loader.stop();
  EXPECT_FALSE(loader.next().has_value());
  loader.restore(start);
  EXPECT_EQ(drain(loader).size(), 4U);
}

TEST(Mix, WarnsOfDataSetsWhoseLabelsMeanDifferentClasses) {
  const test::TemporaryFolder folder;
  for (const char* name : {"one/ant/1.jpg", "one/bee/1.jpg", "two/bee/1.jpg", "flat/1.jpg"})
    folder.write(name);
  const auto open = [&](const char* name, std::vector<std::string> classes = {}) {
    return Dataset(source::image_folder(folder / name, {.classes = std::move(classes)}));
  };
  const auto notices = [](const Dataset& plan) {
    return plan.map(decode_image({.crop = resize_to(2)})).batch(1).loader().notices();
  };
  for (const Dataset& plan : {mix({open("one"), open("two").take(1)}),
                              concatenate({open("one"), open("flat"), open("two")})}) {
    const auto found = notices(plan.seed(1));
    ASSERT_EQ(found.size(), 1U);
    EXPECT_TRUE(found[0].is_warning);
    EXPECT_THAT(found[0].text, AllOf(HasSubstr("label 0 is 'ant' in one data set (image_folder("),
                                     HasSubstr("one')) and 'bee' in another (image_folder("),
                                     HasSubstr("option classes")));
  }
  const Dataset joined = concatenate({open("one"), open("two", {"ant", "bee"}), open("flat")});
  EXPECT_TRUE(notices(joined).empty());
  EXPECT_EQ(joined.source().class_names().size(), 2U);
  EXPECT_EQ(open("two", {"ant", "bee"}).source().info(0).label, 1);
}

}  // namespace
}  // namespace penstock

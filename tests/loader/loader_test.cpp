#include <algorithm>
#include <atomic>
#include <numeric>
#include <stdexcept>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/report/report.hpp>
#include <penstock/source/images.hpp>

#include "tests/loader/fakes.hpp"
#include "tests/source/files.hpp"

namespace penstock {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::drain;
using testing_support::fake;
using testing_support::numbers_of;
using testing_support::see;
using testing_support::Seen;

Dataset plan(std::uint64_t samples, std::uint64_t batch, int devices = 1, int depth = 2) {
  return Dataset(fake(samples))
      .batch(batch)
      .prefetch_to_devices(host_devices(devices), {.depth = depth});
}

TEST(Loader, DeliversEverySampleInOrder) {
  Loader loader = plan(10, 4).loader({.threads = 2});
  const auto steps = drain(loader);
  ASSERT_EQ(steps.size(), 3U);
  EXPECT_THAT(steps[0].numbers, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(steps[1].numbers, ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(steps[2].numbers, ElementsAre(8, 9));
  EXPECT_EQ(steps[2].step, 2U);
}

// SEMANTICS proof 1.
TEST(Loader, SplitsAnUnevenEndOverFourDevicesWithoutLossOrHang) {
  std::vector<std::uint64_t> all(103);
  std::iota(all.begin(), all.end(), 0);
  for (int run = 0; run < 100; ++run) {
    for (const Remainder remainder : {Remainder::keep, Remainder::pad, Remainder::drop}) {
      Loader loader = Dataset(fake(103))
                          .shuffle({.seed = static_cast<std::uint64_t>(run)})
                          .batch(16, {.remainder = remainder})
                          .prefetch_to_devices(host_devices(4))
                          .loader({.threads = 1 + run % 4});
      const auto steps = drain(loader);
      ASSERT_EQ(steps.size(), remainder == Remainder::drop ? 6U : 7U);
      EXPECT_EQ(loader.next(), std::nullopt);  // and on every later call
      EXPECT_EQ(loader.next(), std::nullopt);
      auto numbers = numbers_of(steps);
      std::ranges::sort(numbers);
      if (remainder == Remainder::drop) {
        ASSERT_EQ(numbers.size(), 96U);
        ASSERT_EQ(std::ranges::adjacent_find(numbers), numbers.end());
      } else {
        ASSERT_THAT(numbers, ElementsAreArray(all));
      }
      const std::vector<std::uint64_t> short_rows{2, 2, 2, 1};
      const std::vector<std::uint64_t> full_rows{4, 4, 4, 4};
      ASSERT_EQ(steps.back().rows, remainder == Remainder::keep ? short_rows : full_rows);
    }
  }
}

TEST(Loader, PadsWithZeroesAndAMask) {
  Loader loader = Dataset(fake(103))
                      .skip(96)
                      .batch(16, {.remainder = Remainder::pad})
                      .prefetch_to_devices(host_devices(4))
                      .loader();
  const auto step = loader.next();
  ASSERT_TRUE(step);
  std::vector<std::size_t> samples;
  for (const DeviceBatch& part : *step) {
    samples.push_back(part.samples().size());
    const auto* valid = part["valid"].data<bool>();
    const auto* number = part["number"].data<std::uint64_t>();
    for (std::uint64_t row = 0; row < part.size(); ++row) {
      EXPECT_EQ(valid[row], row < part.samples().size() ? 1 : 0);
      EXPECT_EQ(number[2 * row], row < part.samples().size() ? part.samples()[row].number : 0);
    }
  }
  EXPECT_THAT(samples, ElementsAre(4, 3, 0, 0));
}

TEST(Loader, PadsOverWhatAnEarlierBatchLeftInTheSlot) {
  // Two slots, so the padded batch lies where a full one was.
  Loader loader = Dataset(fake(17))
                      .skip(1)
                      .batch(5, {.remainder = Remainder::pad})
                      .prefetch_to_devices(host_devices(1), {.depth = 1})
                      .loader();
  const auto steps = drain(loader);
  ASSERT_EQ(steps.size(), 4U);
  EXPECT_THAT(steps.back().numbers, ElementsAre(16, 0, 0, 0, 0));
}

TEST(Loader, DeliversEmptyPartsRatherThanHang) {
  Loader loader = plan(17, 16, 4).loader();
  const auto steps = drain(loader);
  ASSERT_EQ(steps.size(), 2U);
  EXPECT_THAT(steps[1].rows, ElementsAre(1, 0, 0, 0));
}

TEST(Loader, GivesTheSameBytesForAnyThreadsAndDevices) {
  const auto run = [](int threads, int devices, int depth) {
    Loader loader = Dataset(fake(1'000))
                        .shuffle({.seed = 7, .buffer = 100})
                        .repeat(2)
                        .batch(24)
                        .prefetch_to_devices(host_devices(devices), {.depth = depth})
                        .loader({.digest = true, .threads = threads});
    const auto steps = drain(loader);
    return std::pair(numbers_of(steps), loader.digest());
  };
  const auto reference = run(1, 1, 2);
  EXPECT_NE(reference.second, Digest{});
  for (const int threads : {1, 2, 4, 8, 32})
    for (const int devices : {1, 2, 4})
      for (const int depth : {1, 5}) ASSERT_EQ(run(threads, devices, depth), reference);
}

TEST(Loader, MapsTheSameBeforeAndAfterShuffle) {
  const auto noise = map_function(
      {.name = "noise", .inputs = {"number"}, .outputs = {{"number", DType::u64, {2}}}},
      [](std::span<const ConstTensorView> in, Outputs out, Random& random) {
        out[0].data<std::uint64_t>()[0] = in[0].data<std::uint64_t>()[0];
        out[0].data<std::uint64_t>()[1] = random.u64();
      });
  const auto digest = [](const Dataset& dataset) {
    Loader loader = dataset.batch(8).loader({.digest = true});
    (void)drain(loader);
    return loader.digest();
  };
  const Dataset source = Dataset(fake(50)).seed(3);
  EXPECT_EQ(digest(source.map(noise).shuffle()), digest(source.shuffle().map(noise)));
  EXPECT_NE(digest(source.map(noise).shuffle()), digest(source.seed(4).map(noise).shuffle()));
}

TEST(Loader, KeepsEachEpochsRemainderWhenRepeatStandsAfterBatch) {
  const auto rows = [](const Dataset& dataset) {
    Loader loader = dataset.loader();
    std::vector<std::size_t> result;
    for (const Seen& step : drain(loader)) result.push_back(step.samples.size());
    return result;
  };
  EXPECT_THAT(rows(Dataset(fake(10)).batch(4).repeat(2)), ElementsAre(4, 4, 2, 4, 4, 2));
  EXPECT_THAT(rows(Dataset(fake(10)).repeat(2).batch(4)), ElementsAre(4, 4, 4, 4, 4));
}

TEST(Loader, IteratesEpochByEpoch) {
  Loader loader = Dataset(fake(10)).shuffle({.seed = 1}).batch(4).repeat(3).loader();
  std::vector<std::uint32_t> epochs;
  std::vector<std::size_t> steps;
  for (const Epoch epoch : loader.epochs()) {
    epochs.push_back(epoch.number());
    steps.push_back(0);
    for (const Step& step : epoch) {
      EXPECT_EQ(step.epoch(), epoch.number());
      ++steps.back();
    }
  }
  EXPECT_THAT(epochs, ElementsAre(0, 1, 2));
  EXPECT_THAT(steps, ElementsAre(3, 3, 3));
}

TEST(Loader, SkipsTheRestOfAnEpochThatIsLeftEarly) {
  Loader loader = Dataset(fake(10)).batch(4).repeat(2).loader();
  std::vector<std::uint64_t> first_steps;
  for (const Epoch epoch : loader.epochs())
    for (const Step& step : epoch) {
      first_steps.push_back(step.number());
      break;
    }
  EXPECT_THAT(first_steps, ElementsAre(0, 3));
}

TEST(Loader, RefusesASecondLoopRatherThanStaySilent) {
  Loader loader = plan(10, 4).loader();
  int steps = 0;
  for (const Step& step : loader) steps += step.size() > 0;
  EXPECT_EQ(steps, 3);
  EXPECT_THAT([&] { (void)loader.begin(); },
              ThrowsMessage<std::logic_error>(HasSubstr("epochs()")));
  EXPECT_THROW((void)loader.epochs(), std::logic_error);
}

TEST(Loader, RaisesWhenTheCallerHoldsEverySlot) {
  Loader loader = plan(100, 4, 2, 2).loader();
  std::vector<Step> held;
  for (int i = 0; i < 3; ++i) held.push_back(*loader.next());
  EXPECT_EQ(loader.stats().held_slots, 3U);
  EXPECT_THAT(
      [&] { (void)loader.next(); },
      ThrowsMessage<Error>(AllOf(HasSubstr("all 3 batches"), HasSubstr("raise depth, now 2"))));
  // A part alone keeps the slot as well.
  const DeviceBatch part = held.back()[1];
  held.clear();
  EXPECT_EQ(loader.stats().held_slots, 1U);
  EXPECT_EQ(see(*loader.next()).step, 3U);  // the error was not the end
  EXPECT_EQ(part["number"].data<std::uint64_t>()[0], 10U);
}

TEST(Loader, WaitsForABatchThatAnotherThreadIsAboutToRelease) {
  Loader loader = plan(100, 4, 2, 1).loader();
  std::vector<Step> held;
  for (int i = 0; i < 2; ++i) held.push_back(*loader.next());
  std::jthread releasing([last = std::move(held.back())]() mutable {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const Step released = std::move(last);
  });
  held.pop_back();
  EXPECT_EQ(loader.next()->number(), 2U);
}

TEST(Loader, LetsBatchesOutliveIt) {
  std::optional<Step> step;
  {
    Loader loader = plan(100, 4).loader();
    step = loader.next();
  }
  EXPECT_THAT(see(*step).numbers, ElementsAre(0, 1, 2, 3));
}

TEST(Loader, ReadsNothingBeforeItIsAsked) {
  auto source = fake(10);
  std::atomic<int> reads = 0;
  source->on_read = [&](std::uint64_t) { ++reads; };
  Loader loader = Dataset(source).batch(2).loader();
  EXPECT_EQ(reads, 0);
  (void)drain(loader);
  EXPECT_EQ(reads, 10);
}

TEST(Loader, RebuildsAnyBatchWithoutMoving) {
  Loader loader = Dataset(fake(40))
                      .shuffle({.seed = 7, .buffer = 9})
                      .repeat()
                      .batch(8)
                      .prefetch_to_devices(host_devices(2))
                      .loader({.digest = true});
  const auto steps = drain(loader, 12);
  for (const std::uint64_t step : {11U, 0U, 5U}) EXPECT_EQ(see(loader.batch_at(step)), steps[step]);
  EXPECT_EQ(see(*loader.next()).step, 12U);
}

TEST(Loader, SaysThatAPlanHasNoSuchStep) {
  const Loader loader = plan(10, 4).loader();
  EXPECT_EQ(loader.size(), 3U);
  EXPECT_THAT([&] { (void)loader.batch_at(3); },
              ThrowsMessage<std::out_of_range>(HasSubstr("no step 3")));
}

TEST(Loader, DividesAGlobalBatchOverProcesses) {
  const Dataset dataset =
      Dataset(fake(50)).seed(5).shuffle().batch(8).prefetch_to_devices(host_devices(2));
  Loader whole = Dataset(fake(50)).seed(5).shuffle().batch(8).loader();
  std::vector<Loader> processes;
  for (std::uint32_t id = 0; id < 2; ++id)
    processes.push_back(dataset.loader(
        {.context = InputContext{.num_input_pipelines = 2, .input_pipeline_id = id}}));
  while (const auto step = whole.next()) {
    std::vector<std::uint64_t> united;
    for (Loader& process : processes) {
      const Seen seen = see(*process.next());
      EXPECT_EQ(seen.step, step->number());
      united.insert(united.end(), seen.numbers.begin(), seen.numbers.end());
    }
    EXPECT_EQ(united, see(*step).numbers);
  }
  for (Loader& process : processes) EXPECT_EQ(process.next(), std::nullopt);
  EXPECT_THAT(
      [&] {
        (void)Dataset(fake(50)).shuffle().batch(8).loader(
            {.context = InputContext{.num_input_pipelines = 2}});
      },
      ThrowsMessage<std::invalid_argument>(HasSubstr(".seed(")));
}

TEST(Loader, NamesTheFieldsThereAre) {
  Loader loader = plan(4, 2).loader();
  const auto step = loader.next();
  EXPECT_THAT([&] { (void)(*step)[0]["image"]; },
              ThrowsMessage<std::invalid_argument>(
                  AllOf(HasSubstr("'image'"), HasSubstr("number u64 [2]"))));
  EXPECT_EQ((*step)[0]["number"].shape(), (Shape{2, 2}));
  EXPECT_EQ((*step)[0].bytes(), 2U * 16U);
}

TEST(Loader, StaysWithinItsBudgetOrSaysWhatItNeeds) {
  // 1 MiB samples: a slot of 8 MiB.
  const auto big = map_function(
      {.name = "big", .inputs = {"number"}, .outputs = {{"x", DType::u8, {1 << 20}}}},
      [](auto, Outputs out, Random&) { std::memset(out[0].raw(), 1, out[0].byte_size()); });
  const Dataset dataset =
      Dataset(fake(100)).map(big).batch(8).prefetch_to_devices(host_devices(1), {.depth = 9});
  Loader free = dataset.loader({.threads = 2});
  EXPECT_EQ(free.stats().slots, 10U);
  const std::size_t budget = std::size_t{30} << 20;
  Loader bounded = dataset.loader({.threads = 2, .budget_bytes = budget});
  while (bounded.next()) {
  }
  EXPECT_EQ(bounded.stats().slots, 3U);
  EXPECT_LE(bounded.stats().memory_peak_bytes, budget);
  EXPECT_THAT(
      [&] { (void)dataset.loader({.threads = 2, .budget_bytes = std::size_t{10} << 20}); },
      ThrowsMessage<Error>(AllOf(HasSubstr("10.0 MiB is too small"), HasSubstr("need 18.0 MiB"))));
}

TEST(Loader, RefusesALoopThatWouldDeliverNothingAndSaysWhy) {
  const Dataset ten(fake(10));
  const auto refuses = [](const Dataset& plan, const char* why, const LoaderOptions& options = {}) {
    EXPECT_THAT([&] { (void)plan.loader(options); },
                testing::ThrowsMessage<std::invalid_argument>(testing::HasSubstr(why)));
  };
  const BatchOptions drop{.remainder = Remainder::drop};
  refuses(ten.batch(16, drop),
          "deliver nothing: 10 samples fill no batch of 16 with the remainder drop");
  refuses(ten.batch(16, drop).repeat(), "10 samples fill no batch of 16");
  refuses(ten.repeat(2).shuffle({.seed = 1}).batch(32, drop), "20 samples fill no batch of 32");
  refuses(Dataset(fake(0)).batch(1), "fake(size=0) has no samples");
  refuses(Dataset(fake(0)).repeat().batch(1), "fake(size=0) has no samples");
  refuses(ten.take(0).batch(1), "take(0) leaves none of 10 samples");
  refuses(ten.skip(10).batch(1), "skip(10) leaves none of 10 samples");
  refuses(ten.select({}).batch(1), "select([]) leaves none of 10 samples");
  refuses(ten.batch(4).take(0), "take(0) leaves none of 3 batches");
  refuses(ten.batch(10).shard(2, 1), "leaves none of 1 batch");
  refuses(mix({ten, Dataset(fake(0))}).batch(1), "has no samples");
  refuses(concatenate({ten.take(0), ten.take(0)}).batch(1), "has no samples");
  const InputContext two{.num_input_pipelines = 2};
  refuses(ten.seed(1).batch(12, drop), "5 samples fill no batch of 6",
          {.context = two, .mode = InputMode::per_worker});
  EXPECT_EQ(ten.batch(16).loader().size(), 1U);
  EXPECT_EQ(ten.batch(16, {.remainder = Remainder::pad}).loader().size(), 1U);
}

TEST(Loader, NamesWhatItsDataSetsLeftOut) {
  const test::TemporaryFolder folder;
  folder.write("a/1.jpg", "\xFF\xD8\xFF");
  folder.write("a/2.bmp", std::string("BM\x10\0\0\0\0\0\0\0", 10));
  folder.write("a/.hidden");
  const Dataset images(source::image_folder(folder.path()));
  const TransformPtr decode = decode_image({.field = "photo", .crop = resize_to(2)});
  const Dataset photos = images.rename({{"image", "photo"}});
  // Two data sets of one folder are one notice; also below other names.
  const Loader loader = mix({photos, photos}).map(decode).batch(1).loader();
  const std::vector<Notice> notices = loader.notices();
  ASSERT_EQ(notices.size(), 1U);
  EXPECT_TRUE(notices[0].is_warning);
  EXPECT_THAT(notices[0].text, HasSubstr("left out 1 .bmp, 1 hidden name"));
  EXPECT_THAT(Report::of(loader).to_text(), HasSubstr("left out 1 .bmp"));
  EXPECT_TRUE(plan(4, 2).loader().notices().empty());
}

TEST(Loader, WarnsOfAStateWhoseImagesOtherLibrariesDecoded) {
  const test::TemporaryFolder folder;
  folder.write("a/1.jpg", "\xFF\xD8\xFF");
  const Dataset photos = Dataset(source::image_folder(folder.path()))
                             .map(decode_image({.crop = resize_to(2)}))
                             .batch(1);
  Loader loader = photos.loader();
  LoaderState state = loader.state();
  EXPECT_EQ(state.image_libraries, image_libraries());
  EXPECT_THAT(plan(4, 2).loader().state().image_libraries, testing::IsEmpty());
  state.image_libraries.push_back({"libother", "1.2"});
  state = LoaderState::from_json(state.to_json());
  loader.restore(state);
  ASSERT_EQ(loader.notices().size(), 1U);
  EXPECT_TRUE(loader.notices()[0].is_warning);
  EXPECT_EQ(loader.notices()[0].text,
            "this state was saved with libother 1.2, and here there is none: images that it "
            "decodes are faults");
  if (!image_libraries().empty()) {
    state.image_libraries = {image_libraries()[0]};
    state.image_libraries[0].version = "0.1";
    loader.restore(state);
    ASSERT_EQ(loader.notices().size(), 1U) << "of the last state only";
    EXPECT_THAT(loader.notices()[0].text,
                HasSubstr(" 0.1, and here it is " + image_libraries()[0].version + ": images"));
  }
  loader.restore(photos.loader().state());
  EXPECT_TRUE(loader.notices().empty());
}

TEST(Loader, RunsBesideAnotherWithoutDisturbingIt) {
  Loader train =
      Dataset(fake(1'000)).shuffle({.seed = 1}).repeat().batch(10).loader({.threads = 2});
  Loader validate = plan(30, 10).loader({.threads = 2});
  Loader reference =
      Dataset(fake(1'000)).shuffle({.seed = 1}).repeat().batch(10).loader({.threads = 1});
  const auto expected = drain(reference, 20);
  auto seen = drain(train, 10);
  EXPECT_EQ(drain(validate).size(), 3U);
  for (const Seen& step : drain(train, 10)) seen.push_back(step);
  EXPECT_EQ(seen, expected);
}

}  // namespace
}  // namespace penstock

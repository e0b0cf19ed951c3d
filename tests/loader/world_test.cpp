// Who owns the order, and what each process gets: SEMANTICS D8 to D11, S2 in another world.
#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/penstock.hpp>

#include "tests/loader/fakes.hpp"
#include "tests/source/files.hpp"

namespace penstock {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::drain;
using testing_support::fake;
using testing_support::numbers_of;
using testing_support::see;
using testing_support::Seen;

// take(6) would deliver 6 of each shard, and select others than were chosen.
TEST(World, RefusesPositionsWhereEachOrderHasAShard) {
  const Dataset ten(source::numbers(10));
  const LoaderOptions two{.context = InputContext{.num_input_pipelines = 2},
                          .mode = InputMode::per_worker};
  LoaderOptions whole = two;
  whole.shards = ShardPolicy::off;
  for (const Dataset& plan :
       {ten.take(6), ten.skip(4), ten.select({1, 2}), ten.shard(2, 1), ten.shuffle().take(6),
        ten.sample(std::vector<double>(10, 1)), concatenate({ten.take(3), ten.skip(7)})}) {
    const Dataset batches = plan.seed(1).batch(2);
    EXPECT_THAT([&] { (void)batches.loader(two); },
                ThrowsMessage<std::invalid_argument>(HasSubstr("goes by positions")))
        << plan.describe();
    EXPECT_THAT(
        [&] {
          (void)batches.prefetch_to_devices(host_devices(2), {.split = Split::shard_early})
              .loader();
        },
        ThrowsMessage<std::invalid_argument>(HasSubstr("goes by positions")));
    EXPECT_NO_THROW((void)batches.loader(whole)) << plan.describe();
  }
  EXPECT_NO_THROW((void)ten.seed(1).shuffle().batch(2).take(3).loader(two));
  EXPECT_NO_THROW(
      (void)ten.filter([](const RecordInfo&) { return true; }).seed(1).batch(2).loader(two));
}

TEST(World, AnExchangeThatLacksAProcessIsAnErrorAtOnce) {
  const auto with = [](std::uint32_t processes, const Exchange& exchange) {
    return Dataset(source::numbers(12))
        .seed(1)
        .batch(6)
        .loader({.context = InputContext{.num_input_pipelines = processes}, .exchange = exchange});
  };
  Loader lacks = with(3, [](const std::string& own) { return std::vector{own, own}; });
  for (int again = 0; again < 2; ++again)
    EXPECT_THAT(
        [&] { (void)lacks.next(); },
        ThrowsMessage<Error>(HasSubstr("the exchange gave 2 texts, and this dataset is read "
                                       "by 3 processes: it gives every process the texts")));
  Loader empty = with(1, [](const std::string&) { return std::vector<std::string>{}; });
  EXPECT_THAT([&] { (void)empty.next(); },
              ThrowsMessage<Error>(HasSubstr("gave 0 texts, and this dataset is read by 1")));
  // Of more processes than read, such as several that read the same for one model.
  Loader more = with(2, [](const std::string& own) { return std::vector{own, own, own, own}; });
  EXPECT_TRUE(more.next());
}

TEST(World, RefusesMoreReplicasAndThreadsThanThereCanBe) {
  const Dataset plan =
      Dataset(source::numbers(10)).seed(1).batch(4).prefetch_to_devices(host_devices(4));
  EXPECT_THAT(
      [&] {
        (void)plan.loader({.context = InputContext{.num_input_pipelines = (1U << 30) + 1,
                                                   .input_pipeline_id = 5}});
      },
      ThrowsMessage<std::invalid_argument>(HasSubstr("more than 16777216 replicas")));
  for (const int threads : {-1, 4097, 1'000'000}) {
    EXPECT_THAT([&] { (void)plan.loader({.threads = threads}); },
                ThrowsMessage<std::invalid_argument>(HasSubstr("threads must be 1 to 4096")));
    EXPECT_THAT([&] { (void)plan.loader({.io_threads = threads}); },
                ThrowsMessage<std::invalid_argument>(HasSubstr("io_threads must be 0 to 4096")));
  }
}

TEST(World, NeedsASeedOnlyWhereSomethingIsRandom) {
  const LoaderOptions two{.context = InputContext{.num_input_pipelines = 2}};
  const Dataset ten(source::numbers(10));
  const test::TemporaryFolder folder;
  folder.write("a/1.jpg");
  folder.write("a/2.jpg");
  const Dataset photos(source::image_folder(folder.path()));
  const auto evaluated = [&](const Crop& crop, float flip = 0) {
    return photos.map(decode_image({.crop = crop, .flip = flip})).batch(2);
  };
  for (const Dataset& plan :
       {ten.batch(4), ten.skip(2).take(6).repeat(2).batch(4).repeat(),
        concatenate({ten, ten}).batch(2), evaluated(center_crop(2)), evaluated(resize_to(2), 1),
        evaluated(cover_crop(2)), evaluated(resize_to(2)).transform_on_device({.mean = {0.5}}),
        zip({photos, ten}).map(decode_image({.crop = letterbox(2)})).batch(2)}) {
    EXPECT_EQ(plan.loader(two).seed(), 0U) << plan.describe();
  }
  const auto needs = [](const Dataset& plan, const LoaderOptions& options) {
    EXPECT_THAT([&] { (void)plan.loader(options); },
                ThrowsMessage<std::invalid_argument>(HasSubstr("need one seed")))
        << plan.describe();
    EXPECT_EQ(plan.seed(7).loader(options).seed(), 7U);
  };
  for (const Dataset& plan :
       {ten.shuffle().batch(4), ten.batch(4).shuffle({.buffer = 2}),
        ten.sample(std::vector<double>(10, 1)).batch(2), mix({ten, ten}).batch(2),
        concatenate({ten.shuffle(), ten}).batch(2), evaluated(random_resized_crop(2)),
        evaluated(random_crop(2)), evaluated(scale_jitter(2)),
        evaluated(cover_crop(2, {.position = CropPosition::random})), evaluated(resize_to(2), 0.5F),
        evaluated(resize_to(2)).transform_on_device({.flip = 0.5}),
        evaluated(resize_to(2)).transform_on_device({.erase = {.probability = 1}}),
        photos.map(decode_image({.crop = resize_to(2)}))
            .map(augment_image({.operations = {trivial_augment_wide()}}))
            .batch(2),
        Dataset(fake(10)).batch(2)})
    needs(plan, two);
  LoaderOptions replacing = two;
  replacing.on_fault = OnFault::replace;
  needs(ten.batch(4), replacing);
  EXPECT_NE(ten.batch(4).loader().seed(), ten.batch(4).loader().seed());  // drawn, as before
}

// Records in files of unequal size, as shards are.
class InFiles final : public Source {
 public:
  InFiles(std::uint64_t size, std::vector<std::uint64_t> first) : all_(fake(size)), first_(first) {}
  [[nodiscard]] std::uint64_t size() const noexcept override { return all_->size(); }
  [[nodiscard]] std::span<const FieldSpec> fields() const noexcept override {
    return all_->fields();
  }
  Result<void> read(std::uint64_t number, Record& record) const override {
    return all_->read(number, record);
  }
  [[nodiscard]] std::string location(std::uint64_t number) const override {
    return all_->location(number);
  }
  [[nodiscard]] std::string fingerprint() const override { return all_->fingerprint(); }
  [[nodiscard]] std::uint64_t files() const noexcept override { return first_.size(); }
  [[nodiscard]] std::uint64_t file_of(std::uint64_t number) const override {
    return static_cast<std::uint64_t>(std::ranges::upper_bound(first_, number) - first_.begin()) -
           1;
  }

 private:
  SourcePtr all_;
  std::vector<std::uint64_t> first_;
};

LoaderOptions process(std::uint32_t id, std::uint32_t of, InputMode mode = InputMode::one,
                      ShardPolicy shards = ShardPolicy::data) {
  return {.context = InputContext{.num_input_pipelines = of, .input_pipeline_id = id},
          .mode = mode,
          .shards = shards,
          .digest = true};
}

std::vector<std::vector<Seen>> run_all(const Dataset& dataset, std::uint32_t processes,
                                       InputMode mode, ShardPolicy shards) {
  std::vector<std::vector<Seen>> all;
  for (std::uint32_t id = 0; id < processes; ++id) {
    Loader loader = dataset.loader(process(id, processes, mode, shards));
    all.push_back(drain(loader));
  }
  return all;
}

TEST(World, GlobalBatchesAreTheSameForEveryNumberOfProcessesAndDevices) {
  const Dataset dataset = Dataset(fake(103)).seed(7).shuffle().batch(16);
  Loader whole = dataset.loader({.digest = true});
  const auto expected = drain(whole);
  for (const auto split : {Split::scatter, Split::round_robin})
    for (const int devices : {1, 2, 4})
      for (const std::uint32_t processes : {1U, 2U, 4U}) {
        Digest sum;
        std::vector<std::vector<SampleId>> united(expected.size());
        for (std::uint32_t id = 0; id < processes; ++id) {
          Loader loader = dataset.prefetch_to_devices(host_devices(devices), {.split = split})
                              .loader(process(id, processes));
          const auto steps = drain(loader);
          ASSERT_EQ(steps.size(), expected.size());
          for (std::size_t step = 0; step < steps.size(); ++step)
            united[step].insert(united[step].end(), steps[step].samples.begin(),
                                steps[step].samples.end());
          sum += loader.digest();
        }
        for (std::size_t step = 0; step < expected.size(); ++step)
          ASSERT_EQ(united[step], expected[step].samples);
        ASSERT_EQ(sum, whole.digest());
      }
}

// SEMANTICS proof 7.
TEST(World, AStateOfFourReplicasGoesOnWithEightAndThenWithTwo) {
  const Dataset dataset = Dataset(fake(1000)).seed(7).shuffle({.buffer = 50}).repeat(2).batch(16);
  Loader whole = dataset.loader({.digest = true});
  const auto expected = drain(whole);
  std::vector<Seen> found;
  LoaderState state;
  for (const auto& [processes, devices, steps] :
       {std::tuple(1U, 4, 30U), std::tuple(2U, 4, 41U), std::tuple(2U, 1, 1000U)}) {
    std::vector<Seen> united;
    LoaderState next;
    for (std::uint32_t id = 0; id < processes; ++id) {
      Loader loader =
          dataset.prefetch_to_devices(host_devices(devices)).loader(process(id, processes));
      if (!found.empty()) loader.restore(LoaderState::from_json(state.to_json()));
      const auto some = drain(loader, steps);
      if (id == 0) united = some;
      for (std::size_t step = 0; id > 0 && step < some.size(); ++step) {
        united[step].samples.insert(united[step].samples.end(), some[step].samples.begin(),
                                    some[step].samples.end());
        united[step].digest += some[step].digest;
      }
      next = loader.state();
    }
    found.insert(found.end(), united.begin(), united.end());
    state = next;
  }
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t step = 0; step < expected.size(); ++step) {
    EXPECT_EQ(found[step].step, expected[step].step);
    EXPECT_EQ(found[step].samples, expected[step].samples);
    EXPECT_EQ(found[step].digest, expected[step].digest);
  }
}

// SEMANTICS proof 10.
TEST(World, EachWorkerDecodesAQuarterAndNothingElse) {
  std::vector<std::uint64_t> read_by_all;
  for (std::uint32_t id = 0; id < 4; ++id) {
    const auto source = fake(100);
    std::mutex mutex;
    std::vector<std::uint64_t> read;
    source->on_read = [&](std::uint64_t number) {
      const std::lock_guard lock(mutex);
      read.push_back(number);
    };
    Loader loader = Dataset(source).seed(7).shuffle().batch(20).loader(process(id, 4));
    drain(loader);
    EXPECT_EQ(read.size(), 25U);
    read_by_all.insert(read_by_all.end(), read.begin(), read.end());
  }
  std::ranges::sort(read_by_all);
  std::vector<std::uint64_t> all(100);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(read_by_all, all);
}

TEST(World, FewerFilesThanWorkersIsAnError) {
  const Dataset dataset =
      Dataset(std::make_shared<InFiles>(90, std::vector<std::uint64_t>{0, 30, 60}))
          .seed(7)
          .batch(8);
  EXPECT_THAT(
      [&] { (void)dataset.loader(process(0, 4, InputMode::per_worker, ShardPolicy::file)); },
      ThrowsMessage<std::invalid_argument>(
          AllOf(HasSubstr("3 files"), HasSubstr("4 to share"), HasSubstr("shard policy data"))));
}

TEST(World, FileGivesEachWorkerItsFilesWhole) {
  const auto source = std::make_shared<InFiles>(100, std::vector<std::uint64_t>{0, 10, 50, 55, 80});
  const auto all = run_all(Dataset(source).seed(7).shuffle().batch(8), 2, InputMode::per_worker,
                           ShardPolicy::file);
  ASSERT_EQ(all[0].size(), all[1].size());  // the same number of steps, although 35 : 65
  EXPECT_EQ(all[0].size(), 17U);
  std::set<std::uint64_t> seen;
  for (std::size_t worker = 0; worker < 2; ++worker)
    for (const std::uint64_t number : numbers_of(all[worker])) {
      EXPECT_EQ(source->file_of(number) % 2, worker);
      EXPECT_TRUE(seen.insert(number).second);
    }
  EXPECT_EQ(seen.size(), 100U);
}

TEST(World, PerWorkerShardsDisjointAndCompleteWithOrdersOfTheirOwn) {
  const Dataset dataset =
      Dataset(fake(101)).seed(7).shuffle().batch(16).prefetch_to_devices(host_devices(2));
  const auto all = run_all(dataset, 2, InputMode::per_worker, ShardPolicy::data);
  std::set<std::uint64_t> seen;
  for (std::size_t worker = 0; worker < 2; ++worker) {
    ASSERT_EQ(all[worker].size(), 7U);
    EXPECT_THAT(all[worker][0].rows, ElementsAre(4, 4));
    for (const std::uint64_t number : numbers_of(all[worker])) {
      EXPECT_EQ(number % 2, worker);
      EXPECT_TRUE(seen.insert(number).second);
    }
  }
  EXPECT_EQ(seen.size(), 101U);
  // 51 and 50 samples: the last step has 3 and 2.
  EXPECT_THAT(all[0].back().rows, ElementsAre(2, 1));
  EXPECT_THAT(all[1].back().rows, ElementsAre(1, 1));
}

TEST(World, OffGivesEveryPipelineAllSamplesInAnOrderOfItsOwn) {
  const Dataset dataset = Dataset(fake(64)).seed(7).shuffle().batch(16);
  const auto all = run_all(dataset, 2, InputMode::per_worker, ShardPolicy::off);
  for (const auto& worker : all) {
    auto numbers = numbers_of(worker);
    std::ranges::sort(numbers);
    std::vector<std::uint64_t> every(64);
    std::iota(every.begin(), every.end(), 0);
    EXPECT_EQ(numbers, every);
  }
  EXPECT_NE(numbers_of(all[0]), numbers_of(all[1]));
}

TEST(World, PerReplicaWithDataIsShardEarly) {
  const Dataset dataset = Dataset(fake(64)).seed(7).shuffle().batch(16);
  Loader replicas =
      dataset.prefetch_to_devices(host_devices(4)).loader({.mode = InputMode::per_replica});
  Loader early =
      dataset.prefetch_to_devices(host_devices(4), {.split = Split::shard_early}).loader();
  EXPECT_EQ(numbers_of(drain(replicas)), numbers_of(drain(early)));
}

TEST(World, RefusesAShardThatWouldShardTwice) {
  const Dataset dataset = Dataset(fake(100)).seed(7).shard(4, 1).batch(8);
  EXPECT_THAT([&] { (void)dataset.loader(process(1, 4)); },
              ThrowsMessage<std::invalid_argument>(
                  AllOf(HasSubstr("shard(4, 1)"), HasSubstr("leave shard out"))));
  EXPECT_NO_THROW((void)dataset.loader(process(2, 4)));
  EXPECT_NO_THROW((void)dataset.loader(process(1, 4, InputMode::per_worker, ShardPolicy::off)));
}

TEST(World, RefusesPoliciesThatNeedOrdersOfTheirOwn) {
  EXPECT_THAT(
      [] {
        (void)Dataset(fake(100)).seed(7).batch(8).loader(
            process(0, 2, InputMode::one, ShardPolicy::file));
      },
      ThrowsMessage<std::invalid_argument>(
          AllOf(HasSubstr("shard policy file"), HasSubstr("per_worker"))));
  EXPECT_THAT(
      [] {
        (void)Dataset(fake(100)).seed(7).batch(9).loader(process(0, 2, InputMode::per_worker));
      },
      ThrowsMessage<std::invalid_argument>(HasSubstr("2 orders of their own")));
}

TEST(World, OrdersOfTheirOwnAreBoundToTheirWorld) {
  const Dataset dataset = Dataset(fake(100)).seed(7).shuffle().batch(8);
  Loader saver = dataset.loader(process(0, 2, InputMode::per_worker));
  drain(saver, 3);
  Loader same = dataset.loader(process(1, 2, InputMode::per_worker));
  same.restore(LoaderState::from_json(saver.state().to_json()));
  EXPECT_EQ(same.next()->number(), 3U);
  Loader four = dataset.loader(process(0, 4, InputMode::per_worker));
  EXPECT_THAT([&] { four.restore(saver.state()); },
              ThrowsMessage<Error>(
                  AllOf(HasSubstr("another world"), HasSubstr("2 orders"), HasSubstr("4 orders"))));
}

// SEMANTICS proof 8.
TEST(World, HalfTheRecordsBadAreReplacedAlikeOnOneAndFourProcesses) {
  const auto source = fake(10'000);
  for (std::uint64_t number = 0; number < 10'000; number += 2) source->bad.insert(number);
  source->bad.erase(0);
  source->bad.insert(5001);
  const Dataset dataset = Dataset(source).seed(7).shuffle().batch(100);
  const auto run = [&](std::uint32_t id, std::uint32_t of) {
    LoaderOptions options = process(id, of);
    options.on_fault = OnFault::replace;
    Loader loader = dataset.loader(options);
    return drain(loader);
  };
  const auto one = run(0, 1);
  std::vector<std::vector<std::uint64_t>> united(one.size());
  for (std::uint32_t id = 0; id < 4; ++id) {
    const auto own = run(id, 4);
    for (std::size_t step = 0; step < own.size(); ++step)
      united[step].insert(united[step].end(), own[step].numbers.begin(), own[step].numbers.end());
  }
  for (std::size_t step = 0; step < one.size(); ++step) ASSERT_EQ(united[step], one[step].numbers);
}

}  // namespace
}  // namespace penstock

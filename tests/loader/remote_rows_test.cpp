#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <penstock/testing/synthetic.hpp>

#include "tests/asleep.hpp"
#include "tests/loader/fakes.hpp"
#include "tests/loader/makers.hpp"

namespace penstock {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::drain;
using testing_support::fake;
using testing_support::FakeSource;
using testing_support::Makers;
using testing_support::see;
using testing_support::Seen;
using testing_support::through_json;

Dataset plan_of(SourcePtr source, int devices = 1, Remainder remainder = Remainder::pad) {
  return Dataset(std::move(source))
      .seed(7)
      .shuffle()
      .repeat(2)
      .batch(24, {.remainder = remainder})
      .prefetch_to_devices(host_devices(devices), {.depth = 3});
}

std::shared_ptr<FakeSource> with_bad() {
  auto source = fake(500);
  source->bad = {3, 77, 78, 201, 499};
  return source;
}

std::vector<Dataset> copies(const Dataset& plan, std::size_t count) {
  std::vector<Dataset> all;
  for (std::size_t i = 0; i < count; ++i) all.push_back(plan);
  return all;
}

struct Setting {
  std::size_t makers;
  bool threads_too;
  int devices;
  OnFault on_fault;
  std::uint64_t max_rows;
  std::optional<int> io_threads{};
};

class RowsMadeElsewhere : public testing::TestWithParam<Setting> {};

TEST_P(RowsMadeElsewhere, AreThoseThatTheLoaderMakes) {
  const Setting& setting = GetParam();
  const LoaderOptions options{
      .on_fault = setting.on_fault, .digest = true, .threads = 2, .io_threads = setting.io_threads};
  const Dataset plan = plan_of(with_bad(), setting.devices);
  Loader alone = plan.loader(options);
  const auto expected = drain(alone);

  Loader loader = plan.loader(options);
  loader.enable_local_rows(setting.threads_too);
  Makers makers(loader, copies(plan_of(with_bad(), setting.devices), setting.makers),
                setting.max_rows, {.threads = 2, .io_threads = setting.io_threads});
  EXPECT_EQ(drain(loader), expected);
  EXPECT_EQ(loader.digest(), alone.digest());
  EXPECT_EQ(loader.state().to_json(), alone.state().to_json());
  makers.stop();
  if (!setting.threads_too) {
    EXPECT_EQ(makers.rows(), 1000U);
  }
  ASSERT_EQ(loader.faults().size(), alone.faults().size());
  for (std::size_t i = 0; i < loader.faults().size(); ++i)
    EXPECT_EQ(loader.faults()[i].to_string(), alone.faults()[i].to_string());
  EXPECT_EQ(loader.stats().bytes_read, alone.stats().bytes_read);
}

INSTANTIATE_TEST_SUITE_P(, RowsMadeElsewhere,
                         testing::Values(Setting{1, false, 1, OnFault::replace, 24},
                                         Setting{1, true, 1, OnFault::mask, 5},
                                         Setting{4, false, 3, OnFault::replace, 100},
                                         Setting{4, true, 3, OnFault::replace, 3},
                                         Setting{4, true, 2, OnFault::mask, 7},
                                         Setting{2, true, 2, OnFault::replace, 4, 2},
                                         Setting{2, false, 2, OnFault::mask, 12, 2}));

TEST(RemoteRows, GivenBackAreMadeByOthers) {
  const Dataset plan = plan_of(fake(500), 2);
  Loader alone = plan.loader({.digest = true});
  const auto expected = drain(alone);
  for (const bool threads_too : {true, false}) {
    Loader loader = plan.loader({.digest = true, .threads = 2});
    loader.enable_local_rows(false);
    std::atomic<std::uint64_t> dropped = 0;
    Makers makers(loader, copies(plan, 3), 4);
    makers.drops = [&](const RowTask&) { return dropped++ % 3 == 0; };
    loader.start();
    while (dropped == 0) std::this_thread::yield();  // else its threads may leave nothing to drop
    loader.enable_local_rows(threads_too);
    EXPECT_EQ(drain(loader), expected);
    EXPECT_GT(dropped, 0U);
  }
}

TEST(RemoteRows, OfAStepBeforeRestoreAreNotWanted) {
  const Dataset plan = plan_of(fake(500));
  Loader alone = plan.loader();
  const auto expected = drain(alone);
  Loader loader = plan.loader({.threads = 1});
  loader.enable_local_rows(false);
  loader.start();
  RowMaker maker(plan, loader.row_settings(), {.threads = 1});
  auto old = *loader.take_task(24, 300s);
  const RowBytes made = maker.make(old.request());
  const LoaderState state = loader.state();
  ASSERT_TRUE(old.is_pending());

  loader.restore(state);
  EXPECT_FALSE(old.is_pending());
  EXPECT_FALSE(old.finish(made.bytes()));
  old.fail(std::make_exception_ptr(Error("nobody should see this")));
  loader.start();
  auto fresh = *loader.take_task(24, 300s);
  EXPECT_TRUE(std::ranges::equal(fresh.request(), old.request()));
  EXPECT_TRUE(fresh.finish(made.bytes()));
  EXPECT_FALSE(fresh.is_pending());
  EXPECT_FALSE(fresh.finish(made.bytes())) << "once only";
  loader.enable_local_rows(true);
  EXPECT_EQ(drain(loader), expected);
}

TEST(RemoteRows, FollowNewWeights) {
  const auto plan = [] {
    return mix({Dataset(fake(300)).seed(1).shuffle().repeat(), Dataset(fake(200)).repeat()},
               {.weights = {1, 1}})
        .batch(16)
        .prefetch_to_devices(host_devices(1), {.depth = 4});
  };
  const auto run = [&](std::size_t count) {
    Loader loader = plan().loader({.digest = true, .threads = 1});
    if (count > 0) loader.enable_local_rows(false);
    Makers makers(loader, copies(plan(), count), 5);
    auto seen = drain(loader, 10);
    loader.set_weights(12, {3, 1});
    for (const Seen& step : drain(loader, 20)) seen.push_back(step);
    return seen;
  };
  EXPECT_EQ(run(2), run(0));
}

TEST(RemoteRows, RestoreAtEveryStep) {
  const Dataset plan = plan_of(with_bad(), 2);
  const LoaderOptions options{.on_fault = OnFault::replace, .digest = true, .threads = 1};
  Loader whole = plan.loader(options);
  const auto expected = drain(whole);
  LoaderState state = plan.loader(options).state();
  for (std::size_t step = 0; step < expected.size(); ++step) {
    Loader loader = plan.loader(options);
    loader.restore(state);
    const bool elsewhere = step % 2 == 0;
    loader.enable_local_rows(!elsewhere);
    Makers makers(loader, copies(plan, elsewhere ? 2 : 0), 5);
    const auto next = loader.next();
    ASSERT_TRUE(next);
    EXPECT_EQ(see(*next), expected[step]);
    state = LoaderState::from_json(loader.state().to_json());
  }
  EXPECT_EQ(state.digest, whole.digest());
}

TEST(RemoteRows, FailAtTheirStep) {
  Loader loader = plan_of(fake(500)).loader({.threads = 1});
  loader.enable_local_rows(false);
  loader.start();
  RowMaker maker(plan_of(fake(500)), loader.row_settings(), {.threads = 1});
  auto first = *loader.take_task(24, 300s);
  auto second = *loader.take_task(24, 300s);
  second.fail(std::make_exception_ptr(std::domain_error("the second one")));
  ASSERT_TRUE(first.finish(maker.make(first.request()).bytes()));
  EXPECT_EQ(loader.next()->number(), 0U);
  EXPECT_THAT([&] { (void)loader.next(); }, ThrowsMessage<std::domain_error>("the second one"));
}

TEST(RemoteRows, AreWaitedForByName) {
  Loader loader = plan_of(fake(500)).loader({.threads = 1});
  loader.enable_local_rows(false);
  auto source = fake(500);
  std::atomic<int> reads = 0;
  source->on_read = [&](std::uint64_t) {
    std::this_thread::sleep_for(1ms);
    const int read = reads++;
    if (read % 24 != 0 || read >= 240) return;
    // Each of the ten steps is made only when its consumer has waited, for most of the time so far.
    for (;;) {
      const Stats now = loader.stats();
      const double waited = now[Stage::remote].wait_s;
      if (waited > 0.025 * (read / 24 + 1) && waited > 0.75 * now.seconds) return;
      std::this_thread::sleep_for(1ms);
    }
  };
  const auto begin = std::chrono::steady_clock::now();
  Makers makers(loader, {plan_of(source)}, 24);
  (void)drain(loader, 10);
  const Stats stats = loader.stats();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  EXPECT_EQ(stats.bottleneck(), "remote");
  EXPECT_GT(stats[Stage::remote].wait_s, 0.2);
  EXPECT_NEAR(stats.consume_s + stats.wait_s(), stats.seconds, 1e-6);
  EXPECT_GE(stats.remote.rows, 240U);
  EXPECT_EQ(stats.remote.rows, 24 * stats.remote.tasks);
  EXPECT_GT(stats.remote.bytes, 240U * 17);
  EXPECT_EQ(stats.remote.cancelled, 0U);
  EXPECT_GT(stats.remote.made_s, 0.2);
  EXPECT_GE(stats.remote.wait_s, stats.remote.made_s);
  EXPECT_LT(stats.remote.wait_s + stats.remote.copy_s, seconds.count());
}

TEST(RemoteRows, AreWaitedForWhileNobodyMakesThem) {
  Loader loader = plan_of(fake(500)).loader({.threads = 1});
  loader.enable_local_rows(false);
  loader.start();
  auto task = loader.take_task(24, 300s);
  EXPECT_FALSE(loader.wait_for(30ms));
  const double before = loader.stats()[Stage::remote].wait_s;
  std::jthread consumer([&] { (void)loader.next(); });
  // It is counted while it goes on.
  while (loader.stats()[Stage::remote].wait_s < before + 0.05) std::this_thread::sleep_for(1ms);
  task.reset();  // gives it back
  loader.enable_local_rows(true);
  consumer.join();
  EXPECT_EQ(loader.stats().remote.cancelled, 1U);
}

TEST(RemoteRows, AreNoneWhenTimeIsOver) {
  Loader loader = plan_of(fake(500)).loader({.threads = 1});
  EXPECT_FALSE(loader.take_task(24, 1ms)) << "not started";
  loader.start();
  (void)drain(loader);
  EXPECT_FALSE(loader.take_task(24, 1ms)) << "ended";
  loader.stop();
  EXPECT_FALSE(loader.take_task(24, 1ms)) << "stopped";
  EXPECT_THROW((void)loader.take_task(0, 1ms), std::invalid_argument);
}

TEST(RemoteRows, StopDoesNotWaitForThem) {
  Loader loader = plan_of(fake(500)).loader({.threads = 1});
  loader.enable_local_rows(false);
  loader.start();
  auto task = *loader.take_task(24, 300s);
  std::atomic<pid_t> thread = 0;
  std::jthread waiting([&] {
    thread = ::gettid();
    std::vector<RowTask> others;  // takes all there are, and waits for more
    while (auto other = loader.take_task(24, 10s)) others.push_back(*std::move(other));
  });
  while (thread == 0) std::this_thread::yield();
  test::await_asleep(thread);
  loader.stop();  // would wait for ever for a task that nobody ends
  waiting.join();
  EXPECT_FALSE(task.is_pending());
  EXPECT_FALSE(loader.next());
  loader.rewind();
  loader.enable_local_rows(true);
  EXPECT_EQ(drain(loader).size(), 42U);
}

TEST(RemoteRows, OutliveTheirLoader) {
  std::optional<RowTask> task;
  {
    Loader loader = plan_of(fake(500)).loader({.threads = 1});
    loader.enable_local_rows(false);
    loader.start();
    task = loader.take_task(24, 300s);
  }
  ASSERT_TRUE(task);
  EXPECT_FALSE(task->is_pending());
  EXPECT_FALSE(task->finish({}));
  EXPECT_EQ(task->request().size(), 48U + 24U * 24U);
}

TEST(RemoteRows, ThatDoNotFitAreRefusedAndStillWanted) {
  Loader loader = plan_of(fake(500)).loader({.threads = 1});
  loader.enable_local_rows(false);
  loader.start();
  RowMaker maker(plan_of(fake(500)), loader.row_settings(), {.threads = 1});
  auto task = *loader.take_task(10, 300s);
  auto other = *loader.take_task(10, 300s);
  const RowBytes made = maker.make(task.request());
  const RowBytes not_ours = maker.make(other.request());
  const auto finish = [&](std::span<const std::byte> bytes) {
    return [&task, bytes] { task.finish(bytes); };
  };
  EXPECT_THAT(
      finish(not_ours.bytes()),
      ThrowsMessage<Error>(
          "these are rows 10 to 20 of step 0, for replica 0, and rows 0 to 10 of step 0, for "
          "replica 0 were asked for"));
  EXPECT_THAT(finish(task.request()), ThrowsMessage<Error>(HasSubstr("are no rows")));
  for (std::size_t size = 0; size < made.size; ++size)
    EXPECT_THROW(task.finish(made.bytes().first(size)), Error) << size;
  // Whatever becomes of a message, it is taken or refused.
  std::vector<std::byte> damaged(made.bytes().begin(), made.bytes().end());
  const std::size_t rows_end = 64 + 2 * 256;  // of number and valid
  for (std::size_t at = 0; at < damaged.size(); ++at) {
    if (at >= 64 && at < rows_end) continue;  // pixels, which may be any
    const std::byte was = std::exchange(damaged[at], std::byte{0xFF});
    EXPECT_THROW(task.finish(damaged), Error) << at;
    damaged[at] = was;
  }
  EXPECT_TRUE(task.is_pending());
  EXPECT_TRUE(task.finish(made.bytes()));
}

TEST(RowMakers, RefuseWhatIsNotTheLoadersPlan) {
  Loader loader = plan_of(fake(500)).loader();
  const std::string settings = loader.row_settings();
  const auto make = [&](const Dataset& plan, const std::string& text) {
    return [plan, text] { RowMaker maker(plan, text); };
  };
  EXPECT_THAT(make(plan_of(fake(499)), settings),
              ThrowsMessage<Error>(AllOf(HasSubstr("another dataset than its own"),
                                         HasSubstr("fake:499"), HasSubstr("the same files"))));
  EXPECT_THAT(
      make(plan_of(fake(500), 1, Remainder::drop), settings),
      ThrowsMessage<Error>(AllOf(HasSubstr("another plan than its own"), HasSubstr("drop"))));
  EXPECT_THROW(make(plan_of(fake(500)), "{}")(), Error);
  EXPECT_THROW(make(plan_of(fake(500)), "no JSON")(), Error);
  std::string other_version = settings;
  other_version.replace(other_version.find("\"penstock\":\"") + 12, 1, "9");
  EXPECT_THAT(make(plan_of(fake(500)), other_version),
              ThrowsMessage<Error>(
                  AllOf(HasSubstr("the loader runs penstock 9"), HasSubstr("the same version"))));
}

TEST(RowMakers, RefuseWhatIsNoRequest) {
  Loader loader = plan_of(fake(500)).loader({.threads = 1});
  loader.enable_local_rows(false);
  loader.start();
  const auto task = *loader.take_task(10, 300s);
  RowMaker maker(plan_of(fake(500)), loader.row_settings(), {.threads = 1});
  const auto request = task.request();
  for (std::size_t size = 0; size < request.size(); ++size)
    EXPECT_THROW((void)maker.make(request.first(size)), Error) << size;
  std::vector<std::byte> damaged(request.begin(), request.end());
  const auto with = [&](std::size_t at, std::uint64_t value) {
    damaged.assign(request.begin(), request.end());
    std::memcpy(damaged.data() + at, &value, sizeof value);
    return [&] { (void)maker.make(damaged); };
  };
  EXPECT_THAT(with(48, 500), ThrowsMessage<Error>(HasSubstr("sample 500 of 500")));
  EXPECT_THAT(with(16, 1), ThrowsMessage<Error>(HasSubstr("bucket 1 of 1")));
  EXPECT_THAT(with(40, 1), ThrowsMessage<Error>(HasSubstr("replica 1 of 1")));
  EXPECT_THAT(with(32, std::uint64_t{1} << 62), ThrowsMessage<Error>(HasSubstr("damaged")));
}

TEST(RowMakers, ServeTheEarliestStepFirst) {
  Loader loader = plan_of(fake(500)).loader({.threads = 1});
  loader.enable_local_rows(false);
  loader.start();
  std::vector<RowTask> tasks;
  for (int i = 0; i < 3; ++i) tasks.push_back(*loader.take_task(24, 300s));
  auto slow = fake(500);
  std::atomic<bool> begun = false;
  std::atomic<bool> go = false;
  std::vector<std::uint64_t> read;  // by the maker's one thread
  slow->on_read = [&](std::uint64_t number) {
    begun = true;
    while (!go) std::this_thread::sleep_for(1ms);
    read.push_back(number);
  };
  RowMaker maker(plan_of(slow), loader.row_settings(), {.threads = 1, .io_threads = 0});
  std::vector<std::jthread> threads;
  for (const std::size_t i :
       {1, 2, 0}) {  // a row of the first one is begun at once, the others wait
    std::atomic<pid_t> thread = 0;
    threads.emplace_back([&, i] {
      thread = ::gettid();
      (void)maker.make(tasks[i].request());
    });
    while (thread == 0 || !begun) std::this_thread::yield();
    test::await_asleep(thread);  // until its rows are made
  }
  go = true;
  threads.clear();
  Loader alone = plan_of(fake(500)).loader();
  auto expected = testing_support::numbers_of(drain(alone, 3));
  std::rotate(expected.begin(), expected.begin() + 24, expected.begin() + 25);
  EXPECT_EQ(read, expected);
}

// Draws a number for each sample, and throws for one of them.
TransformPtr draw_and_throw() {
  return map_function(
      {.name = "draw_and_throw", .inputs = {"number"}, .outputs = {{"number", DType::u64, {2}}}},
      [](std::span<const ConstTensorView> in, Outputs out, Random& random) {
        const auto* const number = in[0].data<std::uint64_t>();
        if (number[0] == 42) throw std::range_error("not 42");
        out[0].data<std::uint64_t>()[0] = number[0];
        out[0].data<std::uint64_t>()[1] = random.below(1'000'000);
      });
}

TEST(RemoteRows, DrawTheRandomNumbersOfTheirSamples) {
  const auto plan = [] {
    return Dataset(fake(300))
        .seed(5)
        .shuffle()
        .map(draw_and_throw())
        .repeat(2)
        .batch(16)
        .prefetch_to_devices(host_devices(2));
  };
  const LoaderOptions options{.on_fault = OnFault::replace, .digest = true, .threads = 2};
  Loader alone = plan().loader(options);
  const auto expected = drain(alone);
  Loader loader = plan().loader(options);
  loader.enable_local_rows(false);
  Makers makers(loader, copies(plan(), 2), 5);
  EXPECT_EQ(drain(loader), expected);
  EXPECT_EQ(loader.digest(), alone.digest());
  // What the function threw is told, and the text of it at least.
  ASSERT_EQ(loader.faults().size(), 2U);
  ASSERT_TRUE(loader.faults()[0].cause);
  EXPECT_THAT([&] { std::rethrow_exception(loader.faults()[0].cause); },
              ThrowsMessage<Error>("not 42"));
}

// What one store of JPEGs' indices learns is in the other's file.
TEST(RemoteRows, BringWhatWasLearnedOfJpegs) {
  static const std::filesystem::path kPhotos = source::synthetic_image_folder(
      {.count = 20, .cache = std::filesystem::temp_directory_path() / "penstock-test"});
  const auto with = [](std::shared_ptr<JpegIndexStore> index) {
    return image_folder(kPhotos)
        .seed(7)
        .map(decode_image({.crop = random_resized_crop({32, 32}), .index = std::move(index)}))
        .batch(5)
        .prefetch_to_devices(host_devices(1));
  };
  const auto run = [&](const Dataset& plan, const Dataset& elsewhere) {
    Loader loader = plan.loader({.digest = true});
    loader.enable_local_rows(false);
    Makers makers(loader, {elsewhere}, 3);
    while (loader.next()) {
    }
    return loader.digest();
  };
  const auto here = std::make_shared<MemoryJpegIndex>();
  const auto there = std::make_shared<MemoryJpegIndex>();
  EXPECT_EQ(with(here).jpeg_index(), here);
  EXPECT_EQ(with(nullptr).jpeg_index(), nullptr);
  const Digest digest = run(with(here), with(there));
  EXPECT_EQ(here->size(), 20U);
  EXPECT_EQ(here->to_bytes().size(), there->to_bytes().size());
  EXPECT_EQ(run(with(here), with(nullptr)), digest);
  EXPECT_EQ(run(with(nullptr), with(std::make_shared<MemoryJpegIndex>())), digest);
}

TEST(RemoteRows, CarryWhatAFunctionThrew) {
  const auto plan = [] {
    return Dataset(fake(100)).map(draw_and_throw()).batch(10).prefetch_to_devices(host_devices(1));
  };
  Loader loader = plan().loader({.threads = 1});
  loader.enable_local_rows(false);
  loader.start();
  const ExceptionCodec carrier{
      .encode = [](const std::exception_ptr&) { return std::string("\0a range\xFF", 9); },
      .decode =
          [](const std::string& text) {
            return std::make_exception_ptr(std::range_error(std::to_string(text.size())));
          }};
  RowMaker maker(plan(), loader.row_settings(), {.threads = 1, .causes = carrier});
  for (std::uint64_t step = 0; step < 5; ++step) {
    auto task = *loader.take_task(10, 300s);
    EXPECT_TRUE(task.finish(maker.make(task.request()).bytes(), carrier));
    if (step < 4) {
      ASSERT_TRUE(loader.next());
    }
  }
  try {
    (void)loader.next();
    FAIL() << "no error came";
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("sample 42"), HasSubstr("not 42"),
                                    HasSubstr("correct the function")));
    EXPECT_THAT([&] { std::rethrow_exception(error.fault().cause); },
                ThrowsMessage<std::range_error>("9"));
  }
}

// Bad where said, and of some numbers nothing more can be found out.
class Lost final : public FakeSource {
 public:
  using FakeSource::FakeSource;
  std::set<std::uint64_t> lost;
  [[nodiscard]] std::string location(std::uint64_t number) const override {
    if (lost.contains(number)) throw std::runtime_error("no place has that number");
    return FakeSource::location(number);
  }
};

TEST(RemoteRows, ThatFailInOneThreadLeaveWhatOthersStillWriteTo) {
  const auto source = std::make_shared<Lost>(2'000);
  for (std::uint64_t number = 0; number < source->size(); number += 50) source->bad.insert(number);
  source->lost = source->bad;
  source->on_read = [](std::uint64_t) { std::this_thread::sleep_for(20us); };
  const Dataset plan =
      Dataset(source).batch(1'000).prefetch_to_devices(host_devices(1), {.depth = 2});
  for (const int io_threads : {0, 2}) {
    Loader loader = plan.loader({.threads = 1});
    loader.enable_local_rows(false);
    loader.start();
    const auto task = *loader.take_task(1'000, 300s);
    RowMaker maker(plan, loader.row_settings(), {.threads = 4, .io_threads = io_threads});
    for (int round = 0; round < 20; ++round)
      EXPECT_THAT([&] { (void)maker.make(task.request()); },
                  ThrowsMessage<std::runtime_error>(HasSubstr("no place has that number")));
  }
}

TEST(RemoteRows, KnowNothingOfFaultsInARequestThatFailed) {
  const auto source = std::make_shared<Lost>(40);
  source->bad = {18, 19};
  source->lost = {19};
  const Dataset plan = Dataset(source).batch(20).prefetch_to_devices(host_devices(1), {.depth = 2});
  Loader loader = plan.loader({.on_fault = OnFault::mask, .threads = 1});
  loader.enable_local_rows(false);
  loader.start();
  auto first = *loader.take_task(20, 300s);
  auto second = *loader.take_task(20, 300s);
  RowMaker maker(plan, loader.row_settings(), {.threads = 1, .io_threads = 0});
  EXPECT_THROW((void)maker.make(first.request()), std::runtime_error);
  const RowBytes made = maker.make(second.request());
  source->lost = {};
  EXPECT_TRUE(first.finish(maker.make(first.request()).bytes()));
  EXPECT_TRUE(second.finish(made.bytes()));
  ASSERT_TRUE(loader.next());
  EXPECT_EQ(loader.faults().size(), 2U);
  ASSERT_TRUE(loader.next());
  EXPECT_EQ(loader.faults().size(), 2U) << "those of the first request are not the second's";
}

}  // namespace
}  // namespace penstock

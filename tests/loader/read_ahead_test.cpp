#include <atomic>
#include <chrono>
#include <cstring>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/asleep.hpp"
#include "tests/loader/fakes.hpp"

namespace penstock {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::fake;
using testing_support::FakeSource;
using testing_support::see;
using testing_support::Seen;

Dataset shuffled(SourcePtr source) {
  return Dataset(std::move(source))
      .seed(7)
      .shuffle()
      .repeat(2)
      .batch(16)
      .prefetch_to_devices(host_devices(2), {.depth = 3});
}

std::vector<Seen> run(const Dataset& plan, LoaderOptions options) {
  options.digest = true;
  Loader loader = plan.loader(options);
  std::vector<Seen> seen;
  while (auto step = loader.next()) seen.push_back(see(*step));
  return seen;
}

TEST(ReadAhead, DeliversWhatDecodersWouldHaveReadThemselves) {
  auto source = fake(500);
  source->bad = {3, 77, 499};
  for (const OnFault policy : {OnFault::replace, OnFault::mask}) {
    const auto alone = run(shuffled(source), {.on_fault = policy, .threads = 1, .io_threads = 0});
    for (const int io_threads : {1, 3, 16})
      EXPECT_EQ(run(shuffled(source), {.on_fault = policy, .threads = 3, .io_threads = io_threads}),
                alone);
  }
}

TEST(ReadAhead, ReadsInTheOrderOfTheSamples) {
  auto source = fake(200);
  std::mutex mutex;
  std::vector<std::uint64_t> numbers;
  source->on_read = [&](std::uint64_t number) {
    const std::lock_guard lock(mutex);
    numbers.push_back(number);
  };
  Loader loader = shuffled(source).loader({.threads = 2, .io_threads = 1});
  std::vector<std::uint64_t> delivered;
  while (auto step = loader.next())
    for (const SampleId& id : step->samples()) delivered.push_back(id.number);
  EXPECT_EQ(numbers, delivered);
}

// Eight reads at a time: the first eight wait for each other.
TEST(ReadAhead, SlowReadsOverlap) {
  auto source = fake(10'000);
  std::atomic<int> now = 0;
  std::atomic<int> most = 0;
  const auto patience = std::chrono::steady_clock::now() + 300s;
  source->on_read = [&](std::uint64_t number) {
    const int here = ++now;
    for (int seen = most; here > seen && !most.compare_exchange_weak(seen, here);) {
    }
    do std::this_thread::sleep_for(5ms);
    while (number < 8 && most < 8 && std::chrono::steady_clock::now() < patience);
    --now;
  };
  Loader loader = Dataset(source).batch(32).loader({.threads = 1, .io_threads = 8});
  for (int step = 0; step < 10; ++step) ASSERT_TRUE(loader.next());
  EXPECT_EQ(most, 8);
  EXPECT_EQ(loader.stats().io_threads, 8);
  EXPECT_EQ(loader.stats().bottleneck(), "read");
}

TEST(ReadAhead, IsTheDefaultWhereASourceMayWait) {
  class Remote final : public FakeSource {
   public:
    using FakeSource::FakeSource;
    [[nodiscard]] bool is_blocking() const noexcept override { return true; }
  };
  EXPECT_EQ(Dataset(fake(10)).batch(1).loader().stats().io_threads, 0);
  const Dataset remote = Dataset(std::make_shared<Remote>(10)).batch(1);
  EXPECT_EQ(remote.loader().stats().io_threads, 4);
  EXPECT_EQ(remote.loader({.io_threads = 0}).stats().io_threads, 0);
}

TEST(ReadAhead, GivesWayToTheBudget) {
  const auto plan = Dataset(fake(100)).batch(4);
  const auto readers = [&](std::size_t mib) {
    return plan.loader({.threads = 1, .io_threads = 8, .budget_bytes = mib << 20})
        .stats()
        .io_threads;
  };
  EXPECT_EQ(readers(64), 8);
  EXPECT_EQ(readers(6), 2);
  EXPECT_EQ(readers(2), 0);
}

TEST(ReadAhead, RestoresAndRewinds) {
  const Dataset plan = shuffled(fake(300));
  const auto whole = run(plan, {.threads = 2, .io_threads = 0});
  for (std::size_t stop_at = 0; stop_at < whole.size(); stop_at += 7) {
    Loader first = plan.loader({.digest = true, .threads = 2, .io_threads = 4});
    for (std::size_t step = 0; step < stop_at; ++step) ASSERT_TRUE(first.next());
    const LoaderState state = first.state();
    first.restore(state);
    for (std::size_t step = stop_at; step < whole.size(); ++step)
      ASSERT_EQ(see(*first.next()), whole[step]);
    first.rewind();
    ASSERT_EQ(see(*first.next()), whole[0]);
  }
}

TEST(ReadAhead, CanBeDestroyedAtAnyMoment) {
  for (int round = 0; round < 200; ++round) {
    auto source = fake(1'000);
    if (round % 2 == 0) source->on_read = [](std::uint64_t) { std::this_thread::sleep_for(1ms); };
    Loader loader = shuffled(source).loader({.threads = 2, .io_threads = 3});
    loader.start();
    for (int step = 0; step < round % 4; ++step) ASSERT_TRUE(loader.next());
  }
}

// ---- sources that make samples ----

/// Record n is a random number.
class Drawn final : public Source {
 public:
  explicit Drawn(const std::string& field = "value") : fields_{{field, DType::u64, {}}} {}
  [[nodiscard]] std::uint64_t size() const noexcept override { return 40; }
  [[nodiscard]] std::span<const FieldSpec> fields() const noexcept override { return fields_; }
  Result<void> read(std::uint64_t, Record& record) const override {
    record.reset(1);
    const std::uint64_t value = record.random().u64();
    std::byte* const bytes = record.allocate(sizeof value)->data();
    std::memcpy(bytes, &value, sizeof value);
    record.set(0, bytes, DType::u64, {});
    return {};
  }
  [[nodiscard]] std::string location(std::uint64_t number) const override {
    return std::to_string(number);
  }
  [[nodiscard]] std::string fingerprint() const override { return "drawn"; }

 private:
  std::vector<FieldSpec> fields_;
};

std::vector<std::uint64_t> values_of(const Dataset& plan, const std::string& field,
                                     const LoaderOptions& options) {
  std::vector<std::uint64_t> values;
  for (const Step& step : plan.batch(4).loader(options)) {
    const TensorView view = step[0][field];
    const auto* const data = view.data<std::uint64_t>();
    values.insert(values.end(), data, data + view.shape()[0]);
  }
  return values;
}

TEST(RecordRandom, IsAFunctionOfSeedEpochNumberAndDraw) {
  const Dataset plan = Dataset(std::make_shared<Drawn>()).seed(3);
  const auto twice = values_of(plan.repeat(2), "value", {.threads = 1, .io_threads = 0});
  EXPECT_EQ(values_of(plan.repeat(2), "value", {.threads = 3, .io_threads = 4}), twice);
  EXPECT_EQ(std::set(twice.begin(), twice.end()).size(), 80U) << "two epochs have other numbers";
  EXPECT_NE(values_of(plan.seed(4), "value", {}).front(), twice.front());
  const auto drawn = values_of(plan.select({5, 5, 5, 5}), "value", {});
  EXPECT_EQ(std::set(drawn.begin(), drawn.end()).size(), 4U);
}

TEST(RecordRandom, PartsOfAZipHaveNumbersOfTheirOwn) {
  const Dataset plan =
      zip({Dataset(std::make_shared<Drawn>()), Dataset(std::make_shared<Drawn>("other"))}).seed(3);
  EXPECT_NE(values_of(plan, "value", {}), values_of(plan, "other", {}));
}

// ---- reading again ----

/// Fails for some time, as a network file system that was away.
class Flaky final : public Source {
 public:
  Flaky(std::uint64_t size, int failures) : inner_(size), failures_(failures) {}
  [[nodiscard]] std::uint64_t size() const noexcept override { return inner_.size(); }
  [[nodiscard]] std::span<const FieldSpec> fields() const noexcept override {
    return inner_.fields();
  }
  Result<void> read(std::uint64_t number, Record& record) const override {
    {
      const std::lock_guard lock(mutex_);
      // One in a hundred.
      if (number % 100 == 17 && failed_[number]++ < failures_)
        return Fault{.reason = "Stale file handle", .file = "far/17", .transient = true};
    }
    return inner_.read(number, record);
  }
  [[nodiscard]] std::string location(std::uint64_t number) const override {
    return inner_.location(number);
  }
  [[nodiscard]] std::string fingerprint() const override { return inner_.fingerprint(); }
  [[nodiscard]] bool has_failed() const {
    const std::lock_guard lock(mutex_);
    return !failed_.empty();
  }

 private:
  FakeSource inner_;
  int failures_;
  mutable std::mutex mutex_;
  mutable std::map<std::uint64_t, int> failed_;
};

// What was read ahead and drawn is wanted no longer: a stop takes as long as one sample.
TEST(ReadAhead, StopDropsWhatIsQueued) {
  std::atomic<int> begun = 0;
  std::atomic<bool> held = false;
  const auto slow =
      map_function({.name = "slow", .inputs = {"number"}, .outputs = {{"number", DType::u64, {2}}}},
                   [&](std::span<const ConstTensorView> in, Outputs out, Random&) {
                     ++begun;
                     while (held) std::this_thread::sleep_for(1ms);
                     std::memcpy(out[0].raw(), in[0].raw(), in[0].byte_size());
                   });
  for (const int io_threads : {0, 4})
    for (const std::uint64_t batch : {64, 4000}) {
      Loader loader = Dataset(fake(10'000))
                          .map(slow)
                          .repeat()
                          .batch(batch)
                          .loader({.threads = 2, .io_threads = io_threads});
      begun = 0;
      held = true;
      loader.start();
      while (begun < 2) std::this_thread::sleep_for(1ms);
      std::atomic<pid_t> thread = 0;
      std::jthread stops([&] {
        thread = ::gettid();
        loader.stop();
      });
      while (thread == 0) std::this_thread::yield();
      test::await_asleep(thread);  // it waits for the two samples
      held = false;
      stops.join();
      EXPECT_EQ(begun, 2) << io_threads << " threads read, batches of " << batch;
      EXPECT_FALSE(loader.next());
    }
}

TEST(Retry, ReadsAgainWhatMayPassAndLosesNothing) {
  const auto expected = run(shuffled(fake(500)), {.threads = 2});
  for (const int io_threads : {0, 4}) {
    Loader loader = shuffled(std::make_shared<Flaky>(500, 2))
                        .loader({.digest = true,
                                 .threads = 2,
                                 .io_threads = io_threads,
                                 .retry = {.attempts = 3, .initial_backoff = 1ms}});
    std::vector<Seen> seen;
    while (auto step = loader.next()) seen.push_back(see(*step));
    EXPECT_EQ(seen, expected);
    EXPECT_EQ(loader.stats().retries, 10U);  // 5 records, 2 each
    EXPECT_EQ(loader.stats().faults, 0U);
  }
}

TEST(Retry, HasALimitAndSaysHowOftenItTried) {
  Loader loader = shuffled(std::make_shared<Flaky>(500, 1'000))
                      .loader({.retry = {.attempts = 3, .initial_backoff = 1ms}});
  EXPECT_THAT(
      [&] {
        while (loader.next()) {
        }
      },
      ThrowsMessage<DataError>(
          testing::AllOf(HasSubstr("far/17"), HasSubstr("Stale file handle (3 attempts)"))));
}

TEST(Retry, DoesNotHoldUpALoaderThatIsDestroyed) {
  const auto begin = std::chrono::steady_clock::now();
  for (const int io_threads : {0, 2}) {
    const auto source = std::make_shared<Flaky>(1'000, 1'000);
    Loader loader = Dataset(source).batch(18).loader(
        {.threads = 1, .io_threads = io_threads, .retry = {.attempts = 2, .initial_backoff = 1h}});
    loader.start();
    while (!source->has_failed()) std::this_thread::yield();
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 30min);
}

TEST(Retry, RefusesWhatMakesNoSense) {
  EXPECT_THAT([] { (void)Dataset(fake(1)).batch(1).loader({.retry = {.attempts = 0}}); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("attempts")));
  EXPECT_THAT([] { (void)Dataset(fake(1)).batch(1).loader({.io_threads = -1}); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("io_threads")));
}

}  // namespace
}  // namespace penstock
